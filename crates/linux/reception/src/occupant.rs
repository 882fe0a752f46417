//! What the kernel says of an interface: whether its frames are Ethernet's, and who else has a program on it, so that it can be named.

use std::fmt;
use std::fs;
use std::io;

use bumpless_capture::netlink::{Message, Netlink, attributes};

const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const DUMP: u16 = 0x300;
const LINK_LEN: usize = 16;
const XDP: u16 = 43;
/// The number of the program in each mode; the last one that is there.
const PROGRAMS: [u16; 4] = [4, 5, 6, 7];

/// A program of somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The kernel's number of the program.
    pub program: u32,
    /// Its name; empty where it has none or the kernel does not tell.
    pub name: String,
    /// Processes that hold it, with their names; none where it was attached by a tool that has ended.
    pub processes: Vec<(u32, String)>,
}

impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() {
            "without a name"
        } else {
            &self.name
        };
        write!(f, "program {} ({name})", self.program)?;
        let all: Vec<_> = self
            .processes
            .iter()
            .map(|(id, name)| format!("{name}, process {id}"))
            .collect();
        match all.is_empty() {
            true => Ok(()),
            false => write!(f, " of {}", all.join(" and ")),
        }
    }
}

/// What there is to know of an interface before a program comes to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its kind, as the kernel numbers them (linux/if_arp.h).
    pub kind: u16,
    /// Who has a program on it.
    pub occupant: Option<Occupant>,
}

impl Found {
    /// Whether its frames begin with an Ethernet header, as those of the loopback interface do, too.
    pub const fn has_ethernet(&self) -> bool {
        matches!(self.kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK)
    }
}

/// The interface with this number; `None`: it is not there.
///
/// # Errors
/// The kernel does not tell.
pub fn find(interface: u32) -> io::Result<Option<Found>> {
    let netlink = Netlink::open(None)?;
    let question = Message::new()
        .begin_quiet(GET_LINK, DUMP)
        .raw(&[0; LINK_LEN]);
    let mut found = None;
    netlink.dump(question.bytes(), |kind, body| {
        let of_it = body
            .get(4..8)
            .is_some_and(|it| it == interface.to_ne_bytes());
        let of_kind = body.get(2..4).and_then(<[u8]>::first_chunk);
        if let (NEW_LINK, true, Some(of_kind)) = (kind, of_it, of_kind) {
            found = Some((u16::from_ne_bytes(*of_kind), program_in(body)));
        }
    })?;
    let occupant = |program| Occupant {
        program,
        name: bumpless_bpf::program_name(program).unwrap_or_default(),
        processes: holders(program),
    };
    Ok(found.map(|(kind, program)| Found {
        kind,
        occupant: program.map(occupant),
    }))
}

fn program_in(body: &[u8]) -> Option<u32> {
    /// Set on attributes that contain others.
    const NESTED: u16 = 1 << 15;
    let (_, xdp) = attributes(body, LINK_LEN).find(|(kind, _)| kind & !NESTED == XDP)?;
    let of_program = attributes(xdp, 0).filter(|(kind, _)| PROGRAMS.contains(kind));
    let mut numbers =
        of_program.filter_map(|(_, value)| value.first_chunk().map(|it| u32::from_ne_bytes(*it)));
    numbers.find(|&number| number != 0)
}

/// Processes with a descriptor of the program or of a link of it, as far as this one may look.
fn holders(program: u32) -> Vec<(u32, String)> {
    let line = format!("prog_id:\t{program}");
    let holds = |process: u32| {
        let files = fs::read_dir(format!("/proc/{process}/fdinfo")).ok()?;
        let mut texts = files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
        texts.find(|text| text.lines().any(|it| it == line))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten();
    let processes = processes.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    let named = |process: u32| {
        holds(process)?;
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        Some((process, name.trim().to_owned()))
    };
    processes.filter_map(named).collect()
}
