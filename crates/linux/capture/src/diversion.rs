//! A way for datagrams out of the host's output that costs neither a queue in the kernel nor a call to read each packet (eBPF).
//!
//! The firewall gives datagrams that are wanted a mark, and lets them go on. Behind it a program of the kernel's, which sees what sockets
//! send before the neighbour is asked for, copies them into a ring that this process reads, and gives them another mark; a second one,
//! at each interface, takes those off. What cannot be handed over, since the ring is full, say, leaves as it is. Programs and rules go
//! with the process, however it ends: then everything leaves as it is.
//!
//! Marks are drawn by chance, as the first program sees packets of all network namespaces, and only those of its own are its.

mod diverted;
mod plain;
mod program;

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;

use bumpless_bpf::{Link, Map, MapKind, Program, Purpose, Ring};
use bumpless_net_linux::capabilities::{Capability, Effective};

pub use diverted::Diverted;

/// The kernel's name of our programs and maps, as `bpftool` and others show it.
const NAME: &str = "bumpless_iprp";
/// Bytes of the ring: four thousand short packets, or a thousand of the longest.
const RING: usize = 2 << 20;
/// Interfaces that are watched at once, at most.
const INTERFACES: usize = 1024;
/// Packets that are longer are not handed over.
pub const DIVERTED_MAX: usize = program::LONGEST;

/// Marks of packets (SO_MARK), as the kernel's programs and rules know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Of those that are wanted.
    pub wanted: u32,
    /// Of those that were handed over.
    pub handed_over: u32,
    /// Of those that are to leave as they are.
    pub plain: u32,
}

impl Marks {
    fn from_random(drawn: u64) -> Self {
        // Positive as a number of 32 bits with a sign, which is how the kernel's machine compares.
        let base = (drawn as u32 & 0x7FFF_FFFC).max(4);
        Self {
            wanted: base,
            handed_over: base | 1,
            plain: base | 2,
        }
    }
}

/// Why there is no such way on this host.
#[derive(Debug)]
pub enum Undiverted {
    /// A right is missing.
    Forbidden,
    /// There is no tree of cgroups of version 2.
    NoGroups,
    /// The kernel lacks something, or refuses.
    System {
        /// What was attempted.
        what: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
}

impl fmt::Display for Undiverted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden => {
                let name = Capability::Bpf.name();
                write!(
                    f,
                    "{name} is missing, or this is a user namespace: run it as root, or grant {name} as well"
                )
            }
            Self::NoGroups => f.write_str(
                "no cgroup2 is mounted: `mount -t cgroup2 none /sys/fs/cgroup/unified`, say",
            ),
            Self::System { what, cause } => {
                write!(f, "cannot {what}: {cause} (it takes Linux 6.6)")
            }
        }
    }
}

impl std::error::Error for Undiverted {}

fn failed(what: &'static str) -> impl Fn(io::Error) -> Undiverted {
    move |cause| match cause.kind() {
        io::ErrorKind::PermissionDenied => Undiverted::Forbidden,
        _ => Undiverted::System { what, cause },
    }
}

/// The way, as long as this is held. What it hands over comes to the [`Diverted`] that was made with it.
#[derive(Debug)]
pub struct Diversion {
    marks: Marks,
    watched: Map,
    full: Map,
    take_off: Program,
    at: Vec<(u32, Link)>,
    _hand_over: Link,
}

impl Diversion {
    /// Opens it, in the network namespace of the calling thread. Nothing is handed over before interfaces are
    /// [watched](Self::watch) and rules give packets its [marks](Self::marks). `drawn` is a random number.
    ///
    /// # Errors
    /// [`Undiverted`].
    pub fn open(drawn: u64) -> Result<(Self, Diverted), Undiverted> {
        if !Effective::of_this_thread().may_have(Capability::Bpf) {
            return Err(Undiverted::Forbidden);
        }
        let marks = Marks::from_random(drawn);
        let map = failed("make a map");
        let watched = Map::new(NAME, MapKind::Hash, 4, 4, INTERFACES).map_err(&map)?;
        let full = Map::new(NAME, MapKind::Array, 4, 8, 1).map_err(&map)?;
        let ring = Ring::new(NAME, RING).map_err(failed("make a ring"))?;
        let maps = program::Maps {
            watched: watched.number(),
            ring: ring.number(),
            full: full.number(),
        };
        let load = failed("load a program");
        let code = program::hand_over(marks, maps);
        let hand_over = Program::load(NAME, Purpose::Sent, &code).map_err(&load)?;
        let code = program::take_off(marks);
        let take_off = Program::load(NAME, Purpose::Leaving, &code).map_err(&load)?;
        let attach = failed("attach a program");
        // That links of interfaces are to be had is seen before anything depends on them.
        drop(take_off.attach_behind(LOOPBACK).map_err(&attach)?);
        let folder = group_folder().ok_or(Undiverted::NoGroups)?;
        let hand_over = hand_over.attach_to_group(folder.as_fd()).map_err(&attach)?;
        let diverted = Diverted::new(ring, marks.plain);
        let diversion = Self {
            marks,
            watched,
            full,
            take_off,
            at: Vec::new(),
            _hand_over: hand_over,
        };
        Ok((diversion, diverted))
    }

    /// What rules give to packets that are wanted, and what packets have that are to leave as they are.
    pub const fn marks(&self) -> Marks {
        self.marks
    }

    /// Interfaces that are watched.
    pub fn watched(&self) -> impl Iterator<Item = u32> + '_ {
        self.at.iter().map(|(number, _)| *number)
    }

    /// Whether other interfaces than these are watched.
    pub fn watches_others_than(&self, interfaces: &[u32]) -> bool {
        let is_there = |(number, link): &(u32, Link)| interfaces.contains(number) && link.holds();
        self.at.len() != interfaces.len() || !self.at.iter().all(is_there)
    }

    /// Watches these interfaces and no others. One at which that fails is left out.
    pub fn watch(&mut self, interfaces: &[u32]) {
        let watched = &self.watched;
        self.at.retain(|(number, link)| {
            let stays = interfaces.contains(number) && link.holds();
            // Where it cannot be said that an interface is watched no more, it stays so.
            stays || watched.remove(&number.to_ne_bytes()).is_err()
        });
        for number in interfaces.iter().take(INTERFACES) {
            if self.watched().any(|it| it == *number) {
                continue;
            }
            let Ok(link) = self.take_off.attach_behind(*number) else {
                continue;
            };
            if self
                .watched
                .put(&number.to_ne_bytes(), &1u64.to_ne_bytes())
                .is_ok()
            {
                self.at.push((*number, link));
            }
        }
    }

    /// Packets that have left as they are since the ring was full.
    pub fn passed_by(&self) -> u64 {
        let value = self.full.get(&0u32.to_ne_bytes()).unwrap_or_default();
        value.first_chunk().map_or(0, |it| u64::from_ne_bytes(*it))
    }
}

/// The loopback device has this number in every network namespace.
const LOOPBACK: u32 = 1;

/// The folder of all processes in the tree of cgroups of version 2.
fn group_folder() -> Option<File> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    File::open(group_mount(&mounts)?).ok()
}

fn group_mount(mounts: &str) -> Option<String> {
    let mut lines = mounts.lines().map(|line| line.split(' '));
    lines.find_map(|mut words| {
        let (folder, kind) = (words.nth(1)?, words.next()?);
        // The kernel writes spaces in octal.
        (kind == "cgroup2").then(|| folder.replace("\\040", " "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_groups_is_found_where_it_is_mounted() {
        let both = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                    cgroup2 /sys/fs/cgroup/my\\040groups cgroup2 rw 0 0\n";
        assert_eq!(
            group_mount(both).as_deref(),
            Some("/sys/fs/cgroup/my groups")
        );
        assert_eq!(group_mount("cgroup /c cgroup rw 0 0\n\nx\n"), None);
    }

    #[test]
    fn marks_differ_and_are_never_none_whatever_was_drawn() {
        for drawn in [0, 1, 3, 4, u64::MAX, 0x8000_0000, 0xFFFF_FFFF_8000_0001] {
            let Marks {
                wanted,
                handed_over,
                plain,
            } = Marks::from_random(drawn);
            let all = [wanted, handed_over, plain];
            assert!(all.iter().all(|it| *it != 0 && *it >> 31 == 0), "{all:?}");
            assert!(wanted != handed_over && handed_over != plain && wanted != plain);
        }
    }
}
