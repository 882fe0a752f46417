//! Groups of IPv4 and IPv6: of which ones programs of this host are members, being one for them on other networks, and giving
//! packets to members.
//!
//! What the kernel tells (`/proc/net/igmp`, `/proc/net/mcfilter` and their likes of IPv6) counts this process, too, which is taken
//! off. Sockets that hold memberships receive nothing: a socket that is bound and is no member itself receives what the host is a
//! member of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bumpless_net_linux::multicast;
use rustix::net::ipproto;
use socket2::{Domain, Protocol, Socket, Type};

const MEMBERS: &str = "/proc/thread-self/net/igmp";
const SOURCES: &str = "/proc/thread-self/net/mcfilter";
const MEMBERS_V6: &str = "/proc/thread-self/net/igmp6";
const SOURCES_V6: &str = "/proc/thread-self/net/mcfilter6";

/// That programs are members of a group on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Name of the interface.
    pub interface: String,
    /// The kernel's number of it.
    pub index: u32,
    /// The group.
    pub group: IpAddr,
    /// How many sockets are.
    pub users: u32,
    /// Sources that some of them want alone, with how many those are.
    pub sources: BTreeMap<IpAddr, u32>,
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
    let mut found = members(&fs::read_to_string(MEMBERS)?);
    // A host may have no IPv6, and no such file where nobody has chosen sources.
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    found.extend(members_v6(&text(MEMBERS_V6)));
    for path in [SOURCES, SOURCES_V6] {
        add_sources(&mut found, &text(path));
    }
    Ok(found)
}

/// What `igmp` says: a line for each interface, and below it one for each of its groups.
fn members(text: &str) -> Vec<Membership> {
    let mut found = Vec::new();
    let mut on = (0, "");
    for line in text.lines().skip(1) {
        let mut words = line.split_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else {
            continue;
        };
        if !line.starts_with(char::is_whitespace) {
            on = (first.parse().unwrap_or(0), second.trim_end_matches(':'));
            continue;
        }
        // As it lies in memory.
        let group = u32::from_str_radix(first, 16).map(|bits| Ipv4Addr::from(bits.to_ne_bytes()));
        if let (Ok(group), Ok(users)) = (group, second.parse()) {
            found.push(membership(on, group.into(), users));
        }
    }
    found
}

/// What `igmp6` says: a line for each group of an interface.
fn members_v6(text: &str) -> Vec<Membership> {
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [index, interface, group, users, ..] = words[..] else {
            return None;
        };
        let on = (index.parse().ok()?, interface);
        Some(membership(on, address(group)?, users.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn membership((index, interface): (u32, &str), group: IpAddr, users: u32) -> Membership {
    Membership {
        interface: interface.to_owned(),
        index,
        group,
        users,
        sources: BTreeMap::new(),
    }
}

/// Adds what `mcfilter` or `mcfilter6` says, which cut names of interfaces short: their numbers count.
fn add_sources(found: &mut [Membership], text: &str) {
    for line in text.lines().skip(1) {
        let words: Vec<_> = line.split_whitespace().collect();
        let [index, _, group, source, included, _] = words[..] else {
            continue;
        };
        let (Ok(index), Some(group), Some(source), Ok(count @ 1..)) = (
            index.parse::<u32>(),
            address(group),
            address(source),
            included.parse(),
        ) else {
            continue;
        };
        let its = |it: &&mut Membership| it.index == index && it.group == group;
        if let Some(membership) = found.iter_mut().find(its) {
            membership.sources.insert(source, count);
        }
    }
}

/// An address as these files have it: 0x and 8 digits, or 32 digits.
fn address(word: &str) -> Option<IpAddr> {
    match word.strip_prefix("0x") {
        Some(word) => {
            let bits = u32::from_str_radix(word, 16).ok()?;
            Some(Ipv4Addr::from_bits(bits).into())
        }
        None if word.len() == 32 => {
            let bits = u128::from_str_radix(word, 16).ok()?;
            Some(Ipv6Addr::from_bits(bits).into())
        }
        None => None,
    }
}

/// What of a group is wanted on an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Packets of any source.
    pub any: bool,
    /// Packets of these.
    pub sources: BTreeSet<IpAddr>,
}

impl Wanted {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        !self.any && self.sources.is_empty()
    }

    /// Whether packets of `source` are.
    pub fn takes(&self, source: IpAddr) -> bool {
        self.any || self.sources.contains(&source)
    }
}

/// Sockets that are members of groups with any source, and with some, so that one is held before the other is given up.
#[derive(Debug)]
struct Members {
    any: Socket,
    some: Socket,
}

impl Members {
    fn new(domain: Domain) -> io::Result<Self> {
        let open = || Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
        Ok(Self {
            any: open()?,
            some: open()?,
        })
    }
}

/// Memberships of this process. They end with it.
#[derive(Debug)]
pub struct Joins {
    v4: Members,
    /// Where the host has IPv6.
    v6: Option<Members>,
    /// By the kernel's number of the interface.
    held: BTreeMap<(u32, IpAddr), Wanted>,
}

impl Joins {
    /// None as yet, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The system has no socket.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            v4: Members::new(Domain::IPV4)?,
            v6: Members::new(Domain::IPV6).ok(),
            held: BTreeMap::new(),
        })
    }

    /// What is held of `group` on the interface with the number `on`.
    pub fn held(&self, on: u32, group: IpAddr) -> Option<&Wanted> {
        self.held.get(&(on, group))
    }

    /// Interfaces, by number, and groups of which something is held.
    pub fn all(&self) -> impl Iterator<Item = (u32, IpAddr)> {
        self.held.keys().copied()
    }

    /// Holds what is `wanted`, beside what is held already.
    ///
    /// # Errors
    /// The kernel refuses some of it: there is no such interface, no IPv6, or it is more than `igmp_max_memberships`,
    /// `igmp_max_msf` or `mld_max_msf` permit. The rest is held.
    pub fn add(&mut self, on: u32, group: IpAddr, wanted: &Wanted) -> io::Result<()> {
        let members = match group {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => self
                .v6
                .as_ref()
                .ok_or_else(|| io::Error::other("this host has no IPv6"))?,
        };
        let mut result = Ok(());
        let held = self.held.entry((on, group)).or_default();
        if wanted.any && !held.any {
            match multicast::join(&members.any, on, group, None) {
                Ok(()) => held.any = true,
                Err(error) => result = Err(error),
            }
        }
        for source in &wanted.sources {
            if held.sources.contains(source) {
                continue;
            }
            match multicast::join(&members.some, on, group, Some(*source)) {
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
    pub fn keep(&mut self, on: u32, group: IpAddr, wanted: &Wanted) {
        let members = match group {
            IpAddr::V4(_) => Some(&self.v4),
            IpAddr::V6(_) => self.v6.as_ref(),
        };
        let (Some(members), Some(held)) = (members, self.held.get_mut(&(on, group))) else {
            return;
        };
        // What the kernel has given up itself, with the interface, is given up.
        if held.any && !wanted.any {
            let _ = multicast::leave(&members.any, on, group, None);
            held.any = false;
        }
        held.sources.retain(|source| {
            let is_wanted = wanted.sources.contains(source);
            if !is_wanted {
                let _ = multicast::leave(&members.some, on, group, Some(*source));
            }
            is_wanted
        });
        if held.is_nothing() {
            self.held.remove(&(on, group));
        }
    }

    /// Takes what is held off what the kernel tells of an interface and a group.
    pub fn without_own(&self, mut it: Membership) -> Membership {
        let Some(held) = self.held(it.index, it.group) else {
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
/// A packet with no hop to take goes to members on the host and no further, **if the host is a member on the interface**: in IPv4 for packets of the
/// interface's own address, in IPv6 for those of the packet's source (Linux; otherwise it leaves). [`Joins`] is to hold that.
#[derive(Debug)]
pub struct MemberInjector {
    /// One for each interface, of the family of its address.
    sockets: Vec<Socket>,
}

impl MemberInjector {
    /// One for interfaces of which these are an address, and the kernel's number.
    ///
    /// # Errors
    /// The right to it (CAP_NET_RAW) is missing.
    pub fn open(interfaces: &[(IpAddr, u32)]) -> io::Result<Self> {
        let open = |(address, index): &(IpAddr, u32)| {
            let raw = Protocol::from(ipproto::RAW.as_raw().get() as i32);
            let domain = match address {
                IpAddr::V4(_) => Domain::IPV4,
                IpAddr::V6(_) => Domain::IPV6,
            };
            let socket = Socket::new(domain, Type::RAW, Some(raw))?;
            socket.set_nonblocking(true)?;
            match address {
                IpAddr::V4(address) => socket.set_multicast_if_v4(address)?,
                IpAddr::V6(_) => socket.set_multicast_if_v6(*index)?,
            }
            Ok(socket)
        };
        let sockets = interfaces.iter().map(open).collect::<io::Result<_>>()?;
        Ok(Self { sockets })
    }

    /// Gives a whole packet to the members of `group` as if it had come by the interface with number `on`. Never blocks.
    ///
    /// # Errors
    /// The interface is gone or has no address of the group's family, or the host has no room at present.
    pub fn give(&self, on: usize, packet: &[u8], group: IpAddr) -> io::Result<()> {
        let socket = self.sockets.get(on);
        let socket = socket.ok_or(io::ErrorKind::AddrNotAvailable)?;
        socket.send_to(packet, &SocketAddr::new(group, 0).into())?;
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
        let igmp = format!(
            "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
             1\tlo        :     1      V3\n\t\t\t\t{all:08X}     1 0:00000000\t\t0\n\
             3\tenp3s0f1  :     2      V3\n\t\t\t\t{g:08X}     3 0:00000000\t\t0\n\t\t\t\t{all:08X}     1 0:00000000\t\t0\n"
        );
        let sources = "Idx Device        MCA        SRC    INC    EXC\n\
             \x20 3 enp3s0 0xef010203 0x0a010009      2      0\n\
             \x20 3 enp3s0 0xef010203 0x0a010002      0      1\n\
             \x20 4 enp3s0 0xef010203 0x0a010007      1      0\n";
        let mut found = members(&igmp);
        add_sources(&mut found, sources);
        assert_eq!(found.len(), 3);
        let group = &found[1];
        assert_eq!((group.interface.as_str(), group.index), ("enp3s0f1", 3));
        assert_eq!(group.group, Ipv4Addr::new(239, 1, 2, 3));
        assert_eq!(group.users, 3);
        let expected = BTreeMap::from([(IpAddr::from([10, 1, 0, 9]), 2)]);
        assert_eq!(group.sources, expected, "by number, as names are cut short");
        assert!(group.takes_any());
        assert_eq!(members(""), []);
        add_sources(&mut [], "rubbish\nx\n");
    }

    #[test]
    fn what_the_kernel_tells_of_ipv6_is_read() {
        let igmp6 = "\
             1    lo              ff020000000000000000000000000001     1 0000000C 0\n\
             3    na              ff3500000000000000000000000000a9     2 00000004 0\n\
             3    na              short     2 00000004 0\nx\n";
        let sources = "Idx Device                Multicast Address                   Source Address    INC    EXC\n\
             \x20 3     na ff3500000000000000000000000000a9 fd00000a000000000000000000000001      1      0\n";
        let mut found = members_v6(igmp6);
        add_sources(&mut found, sources);
        assert_eq!(found.len(), 2);
        let group = &found[1];
        assert_eq!((group.interface.as_str(), group.index), ("na", 3));
        assert_eq!(group.group, "ff35::a9".parse::<IpAddr>().unwrap());
        let source: IpAddr = "fd00:a::1".parse().unwrap();
        assert_eq!(group.sources, BTreeMap::from([(source, 1)]));
        assert!(group.takes_any(), "the other one does");
    }
}
