//! Groups of IPv4: of which ones programs of this host are members, being one for them on other networks, and giving
//! packets to members.
//!
//! What the kernel tells (`/proc/net/igmp`, `/proc/net/mcfilter`) counts this process, too, which is taken off. Sockets that
//! hold memberships receive nothing: a socket that is bound and is no member itself receives what the host is a member of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rustix::net::ipproto;
use socket2::{Domain, Protocol, Socket, Type};

const MEMBERS: &str = "/proc/thread-self/net/igmp";
const SOURCES: &str = "/proc/thread-self/net/mcfilter";

/// That programs are members of a group on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Name of the interface.
    pub interface: String,
    /// The group.
    pub group: Ipv4Addr,
    /// How many sockets are.
    pub users: u32,
    /// Sources that some of them want alone, with how many those are.
    pub sources: BTreeMap<Ipv4Addr, u32>,
}

impl Membership {
    /// Whether a socket takes packets of any source, as far as can be told.
    pub fn takes_any(&self) -> bool {
        self.users > self.sources.values().sum()
    }
}

/// All memberships of the network namespace of the calling thread, this process's own included.
///
/// # Errors
/// The kernel does not tell.
pub fn memberships() -> io::Result<Vec<Membership>> {
    let members = fs::read_to_string(MEMBERS)?;
    // It may have no such file where nobody has chosen sources.
    let sources = fs::read_to_string(SOURCES).unwrap_or_default();
    Ok(read(&members, &sources))
}

/// What the two files say.
fn read(members: &str, sources: &str) -> Vec<Membership> {
    let mut found: Vec<Membership> = Vec::new();
    let mut interface = "";
    for line in members.lines().skip(1) {
        let mut words = line.split_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else {
            continue;
        };
        if !line.starts_with(char::is_whitespace) {
            interface = second.trim_end_matches(':');
            continue;
        }
        // As it lies in memory.
        let group = u32::from_str_radix(first, 16).map(|bits| Ipv4Addr::from(bits.to_ne_bytes()));
        if let (Ok(group), Ok(users)) = (group, second.parse()) {
            found.push(Membership {
                interface: interface.to_owned(),
                group,
                users,
                sources: BTreeMap::new(),
            });
        }
    }
    for line in sources.lines().skip(1) {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, interface, group, source, included, _] = words[..] else {
            continue;
        };
        let address = |word: &str| {
            let bits = u32::from_str_radix(word.trim_start_matches("0x"), 16);
            bits.map(Ipv4Addr::from_bits)
        };
        let (Ok(group), Ok(source), Ok(count @ 1..)) =
            (address(group), address(source), included.parse())
        else {
            continue;
        };
        let its = |it: &&mut Membership| it.interface == interface && it.group == group;
        if let Some(membership) = found.iter_mut().find(its) {
            membership.sources.insert(source, count);
        }
    }
    found
}

/// What of a group is wanted on an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Packets of any source.
    pub any: bool,
    /// Packets of these.
    pub sources: BTreeSet<Ipv4Addr>,
}

impl Wanted {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        !self.any && self.sources.is_empty()
    }
}

/// Memberships of this process. They end with it.
#[derive(Debug)]
pub struct Joins {
    /// Member of groups with any source, and with some, so that one is held before the other is given up.
    any: Socket,
    some: Socket,
    /// By the host's address on the interface.
    held: BTreeMap<(Ipv4Addr, Ipv4Addr), Wanted>,
}

impl Joins {
    /// None as yet, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The system has no socket.
    pub fn new() -> io::Result<Self> {
        let open = || Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP));
        Ok(Self {
            any: open()?,
            some: open()?,
            held: BTreeMap::new(),
        })
    }

    /// What is held of `group` on the interface with the address `on`.
    pub fn held(&self, on: Ipv4Addr, group: Ipv4Addr) -> Option<&Wanted> {
        self.held.get(&(on, group))
    }

    /// Interfaces, by address, and groups of which something is held.
    pub fn all(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> {
        self.held.keys().copied()
    }

    /// Holds what is `wanted`, beside what is held already.
    ///
    /// # Errors
    /// The kernel refuses some of it: there is no such interface, or it is more than `igmp_max_memberships` or `igmp_max_msf`
    /// permit. The rest is held.
    pub fn add(&mut self, on: Ipv4Addr, group: Ipv4Addr, wanted: &Wanted) -> io::Result<()> {
        let mut result = Ok(());
        let held = self.held.entry((on, group)).or_default();
        if wanted.any && !held.any {
            match self.any.join_multicast_v4(&group, &on) {
                Ok(()) => held.any = true,
                Err(error) => result = Err(error),
            }
        }
        for source in &wanted.sources {
            if held.sources.contains(source) {
                continue;
            }
            match self.some.join_ssm_v4(source, &group, &on) {
                Ok(()) => drop(held.sources.insert(*source)),
                Err(error) => result = Err(error),
            }
        }
        if held.is_nothing() {
            self.held.remove(&(on, group));
        }
        result
    }

    /// Gives up what is held and not `wanted`.
    pub fn keep(&mut self, on: Ipv4Addr, group: Ipv4Addr, wanted: &Wanted) {
        let Some(held) = self.held.get_mut(&(on, group)) else {
            return;
        };
        // What the kernel has given up itself, with the interface, is given up.
        if held.any && !wanted.any {
            let _ = self.any.leave_multicast_v4(&group, &on);
            held.any = false;
        }
        let some = &self.some;
        held.sources.retain(|source| {
            let is_wanted = wanted.sources.contains(source);
            if !is_wanted {
                let _ = some.leave_ssm_v4(source, &group, &on);
            }
            is_wanted
        });
        if held.is_nothing() {
            self.held.remove(&(on, group));
        }
    }

    /// Takes what is held on the interface with the address `on` off what the kernel tells of it.
    pub fn without_own(&self, on: Ipv4Addr, mut it: Membership) -> Membership {
        let Some(held) = self.held(on, it.group) else {
            return it;
        };
        let own = u32::from(held.any) + u32::from(!held.sources.is_empty());
        it.users = it.users.saturating_sub(own);
        for source in &held.sources {
            if let Some(count) = it.sources.get_mut(source) {
                *count = count.saturating_sub(1);
            }
        }
        it.sources.retain(|_, count| *count > 0);
        it
    }
}

/// Gives packets to programs of this host that are members of a group, as if they had come by one of its interfaces.
///
/// A packet whose time to live is 0 goes to members on the host and no further, **if the host is a member on the interface for packets of the
/// interface's own address** (Linux; otherwise it leaves): [`Joins`] is to hold that.
#[derive(Debug)]
pub struct MemberInjector {
    /// One for each interface; none where that has no address of IPv4.
    sockets: Vec<Option<Socket>>,
}

impl MemberInjector {
    /// One for interfaces with these addresses.
    ///
    /// # Errors
    /// The right to it (CAP_NET_RAW) is missing.
    pub fn open(addresses: &[IpAddr]) -> io::Result<Self> {
        let open = |address: &IpAddr| {
            let IpAddr::V4(address) = address else {
                return Ok(None);
            };
            let raw = Protocol::from(ipproto::RAW.as_raw().get() as i32);
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(raw))?;
            socket.set_nonblocking(true)?;
            socket.set_multicast_if_v4(address)?;
            Ok(Some(socket))
        };
        let sockets = addresses.iter().map(open).collect::<io::Result<_>>()?;
        Ok(Self { sockets })
    }

    /// Gives a whole packet to the members of `group` as if it had come by the interface with number `on`. Never blocks.
    ///
    /// # Errors
    /// The interface is gone, or the host has no room at present.
    pub fn give(&self, on: usize, packet: &[u8], group: Ipv4Addr) -> io::Result<()> {
        let socket = self.sockets.get(on).and_then(Option::as_ref);
        let socket = socket.ok_or(io::ErrorKind::AddrNotAvailable)?;
        socket.send_to(packet, &SocketAddr::new(group.into(), 0).into())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_read() {
        // As a kernel of a machine of this byte order writes it.
        let [g, all] = [[239, 1, 2, 3], [224, 0, 0, 1]].map(u32::from_ne_bytes);
        let members = format!(
            "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
             1\tlo        :     1      V3\n\t\t\t\t{all:08X}     1 0:00000000\t\t0\n\
             3\tna        :     2      V3\n\t\t\t\t{g:08X}     3 0:00000000\t\t0\n\t\t\t\t{all:08X}     1 0:00000000\t\t0\n"
        );
        let sources = "Idx Device        MCA        SRC    INC    EXC\n\
             \x20 3     na 0xef010203 0x0a010009      2      0\n\
             \x20 3     na 0xef010203 0x0a010002      0      1\n";
        let found = read(&members, sources);
        assert_eq!(found.len(), 3);
        let group = &found[1];
        assert_eq!(group.interface, "na");
        assert_eq!(group.group, Ipv4Addr::new(239, 1, 2, 3));
        assert_eq!(group.users, 3);
        let expected = BTreeMap::from([(Ipv4Addr::new(10, 1, 0, 9), 2)]);
        assert_eq!(group.sources, expected);
        assert!(group.takes_any());
        assert_eq!(read("", "rubbish\nx\n"), []);
    }
}
