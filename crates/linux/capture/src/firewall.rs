//! The host's firewall rules that are ours: one table for each IP version, with nothing of others in it
//! (nf_tables; linux/netfilter/nf_tables.h).
//!
//! A table belongs to the socket that made it: the kernel removes it when the process ends, however that happens (Linux
//! 5.12 and later). On older kernels one that was left behind is removed by the next start.

mod batch;
mod expression;
mod incoming;
mod losses;
mod rules;
mod tables;

use std::io;
use std::net::IpAddr;

use rustix::io::Errno;
use rustix::net::netlink;

use self::batch::{
    APPEND, CREATE, DELETE_ELEMENT, DELETE_RULE, DELETE_TABLE, DIVERTING, FROM, INPUT, IPV4, IPV6,
    LOCAL_IN, LOCAL_OUT, NEW_CHAIN, NEW_ELEMENT, NEW_RULE, NEW_SET, NEW_TABLE, OUTPUT, OWNED,
    PRIORITY, SETS, TO, begin, end,
};
use self::expression::{Expressions, QueueKind};
pub use self::incoming::{queue_forwarded, queue_incoming};
pub use self::losses::{Loss, lose_incoming, lost_incoming};
pub use self::rules::{Captured, Diverting, FirewallError, Mss, Rules, Side, Watched};
pub use self::tables::{owner, tables};
use crate::diversion::Marks;
use crate::neighbours::Hop;
use crate::netlink::{Message, Netlink};

/// Changes of what is captured that the kernel is told in one go.
const STEP: usize = 256;

/// The rules, in force. They end with this value and with the process.
#[derive(Debug)]
pub struct Firewall {
    netlink: Netlink,
    name: String,
    queue: QueueKind,
}

impl Firewall {
    /// Makes the tables `name` with `rules`, whole or not at all. Nothing is captured yet.
    ///
    /// # Errors
    /// [`FirewallError`].
    pub fn install(name: &str, rules: &Rules) -> Result<Self, FirewallError> {
        let netlink = Netlink::open(Some(netlink::NETFILTER)).map_err(FirewallError::System)?;
        let mut firewall = Self {
            netlink,
            name: name.to_owned(),
            queue: QueueKind::Native,
        };
        firewall.remove().map_err(|error| firewall.told(error))?;
        // What kernels lack: `queue` where only the targets of iptables are built, owners before 5.12.
        let ways = [
            (QueueKind::Native, OWNED),
            (QueueKind::Target, OWNED),
            (QueueKind::Native, 0),
            (QueueKind::Target, 0),
        ];
        let mut made = Ok(());
        for (queue, flags) in ways {
            firewall.queue = queue;
            made = firewall.make(rules, flags);
            if made.is_ok() {
                break;
            }
        }
        made.map_err(|error| firewall.told(error))?;
        Ok(firewall)
    }

    /// Puts other rules in the place of those that are in force, in one step; what is captured stays.
    ///
    /// # Errors
    /// The kernel refuses; the rules are as they were.
    pub fn replace(&mut self, rules: &Rules) -> io::Result<()> {
        let mut batch = begin();
        for family in [IPV4, IPV6] {
            for chain in [OUTPUT, INPUT] {
                batch = batch
                    .begin(DELETE_RULE, 0)
                    .netfilter(family, 0)
                    .text(1, &self.name)
                    .text(2, chain);
            }
            batch = self.rules(batch, family, rules);
        }
        self.netlink.transact(end(batch).bytes())
    }

    /// Captures these packets from here on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn capture(&mut self, packets: &Captured) -> io::Result<()> {
        self.transact(&[(*packets, true)])
    }

    /// Captures these packets no more. One that was not captured is no error.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn release(&mut self, packets: &Captured) -> io::Result<()> {
        match self.transact(&[(*packets, false)]) {
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(()),
            result => result,
        }
    }

    /// Captures packets (`true`) or does so no more, in this order. What became of each, as [`capture`](Self::capture) and
    /// [`release`](Self::release) tell it.
    ///
    /// Each step of the kernel's takes milliseconds, however little it changes; so many changes take one step.
    pub fn change(&mut self, changes: &[(Captured, bool)]) -> Vec<io::Result<()>> {
        let mut results = Vec::with_capacity(changes.len());
        for step in changes.chunks(STEP) {
            self.change_some(step, &mut results);
        }
        results
    }

    /// Lets what is handed over be what would leave by these next hops, and no others: what leaves by others is queued.
    ///
    /// # Errors
    /// The kernel refuses; they are what they were.
    pub fn divert_by(&mut self, hops: &[Hop]) -> io::Result<()> {
        let mut batch = begin();
        for family in [IPV4, IPV6] {
            let set = |batch: Message, kind: u16, flags: u16| {
                batch
                    .begin_quiet(kind, flags)
                    .netfilter(family, 0)
                    .text(1, &self.name)
                    .text(2, DIVERTING)
            };
            // Without elements, all of them.
            batch = set(batch, DELETE_ELEMENT, 0);
            for (interface, address) in hops.iter().filter(|it| it.1.is_ipv4() == (family == IPV4))
            {
                let mut key = interface.to_ne_bytes().to_vec();
                match address {
                    IpAddr::V4(address) => key.extend(address.octets()),
                    IpAddr::V6(address) => key.extend(address.octets()),
                }
                batch = set(batch, NEW_ELEMENT, CREATE).nested(3, |elements| {
                    elements.nested(1, |element| element.nested(1, |it| it.attribute(1, &key)))
                });
            }
        }
        self.netlink.transact(end(batch).bytes())
    }

    fn change_some(&mut self, changes: &[(Captured, bool)], results: &mut Vec<io::Result<()>>) {
        match changes {
            [(packets, true)] => results.push(self.capture(packets)),
            [(packets, false)] => results.push(self.release(packets)),
            _ if self.transact(changes).is_ok() => results.extend(changes.iter().map(|_| Ok(()))),
            // Nothing of it was done. Halves find what was refused, and keep the rest from nothing.
            _ => {
                let (first, second) = changes.split_at(changes.len() / 2);
                self.change_some(first, results);
                self.change_some(second, results);
            }
        }
    }

    /// Does all of it or nothing.
    fn transact(&self, changes: &[(Captured, bool)]) -> io::Result<()> {
        let mut batch = begin();
        for (packets, begin) in changes {
            let (family, key) = key(packets);
            let set = match packets.side {
                Side::Destination => TO,
                Side::Source => FROM,
            };
            let (kind, flags) = match begin {
                true => (NEW_ELEMENT, CREATE),
                false => (DELETE_ELEMENT, 0),
            };
            // Errors are told. Answers to all of them might not find room.
            batch = batch
                .begin_quiet(kind, flags)
                .netfilter(family, 0)
                .text(1, &self.name)
                .text(2, set)
                .nested(3, |elements| {
                    elements.nested(1, |element| element.nested(1, |it| it.attribute(1, &key)))
                });
        }
        self.netlink.transact(end(batch).bytes())
    }

    fn make(&self, rules: &Rules, flags: u32) -> io::Result<()> {
        let mut batch = begin();
        for (number, family) in [IPV4, IPV6].into_iter().enumerate() {
            batch = batch
                .begin(NEW_TABLE, CREATE)
                .netfilter(family, 0)
                .text(1, &self.name)
                .number(2, flags);
            for (chain, hook) in [(OUTPUT, LOCAL_OUT), (INPUT, LOCAL_IN)] {
                batch = batch
                    .begin(NEW_CHAIN, CREATE)
                    .netfilter(family, 0)
                    .text(1, &self.name)
                    .text(3, chain)
                    .nested(4, |it| it.number(1, hook).number(2, PRIORITY as u32))
                    .text(7, "filter");
            }
            for (place, set) in SETS.into_iter().enumerate() {
                // Its number in this batch.
                let id = (SETS.len() * number + place + 1) as u32;
                batch = batch
                    .begin(NEW_SET, CREATE)
                    .netfilter(family, 0)
                    .text(1, &self.name)
                    .text(2, set)
                    .number(3, 0)
                    .number(4, 0)
                    .number(5, key_len(set, family))
                    .number(10, id);
            }
            batch = self.rules(batch, family, rules);
        }
        self.netlink.transact(end(batch).bytes())
    }

    fn rules(&self, mut batch: Message, family: u8, rules: &Rules) -> Message {
        let v6 = family == IPV6;
        let mss = if v6 { rules.mss.v6 } else { rules.mss.v4 };
        // Before packets are queued, which ends their way through the chain.
        for watched in rules
            .watched
            .iter()
            .filter(|it| it.protocol == expression::TCP)
        {
            let clamp = |it| Expressions(it).opening_of(watched).clamp(mss).0;
            batch = self.rule(batch, family, OUTPUT, clamp);
        }
        if let Some(diverting) = &rules.diverting {
            batch = self.divert(batch, family, diverting);
        }
        for (set, side) in [(TO, Side::Destination), (FROM, Side::Source)] {
            let capture = |it| {
                Expressions(it)
                    .except_kept_on_host(v6)
                    .look_up(set, side, v6)
                    .queue(self.queue, rules.queue)
                    .0
            };
            batch = self.rule(batch, family, OUTPUT, capture);
        }
        for watched in &rules.watched {
            let show = |it| {
                Expressions(it)
                    .except_from_loopback()
                    .except_kept_on_host(v6)
                    .coming(watched)
                    .show(rules.group)
                    .0
            };
            batch = self.rule(batch, family, INPUT, show);
        }
        batch
    }

    /// What is handed over gets its mark and ends its way through the chain, before anything is queued.
    fn divert(&self, mut batch: Message, family: u8, diverting: &Diverting) -> Message {
        let v6 = family == IPV6;
        let (of_v4, of_v6) = diverting.longest;
        let longest = if v6 { of_v6 } else { of_v4 };
        let Marks { wanted, plain, .. } = diverting.marks;
        let as_they_are = |it| Expressions(it).marked(plain).accept().0;
        batch = self.rule(batch, family, OUTPUT, as_they_are);
        for (set, side) in [(TO, Side::Destination), (FROM, Side::Source)] {
            let divert = |it| {
                Expressions(it)
                    .except_kept_on_host(v6)
                    .datagrams_up_to(longest)
                    .look_up(set, side, v6)
                    .except_to_groups(v6)
                    .marked(0)
                    .of_a_socket()
                    .leaving_by(DIVERTING, v6)
                    .mark(wanted)
                    .accept()
                    .0
            };
            batch = self.rule(batch, family, OUTPUT, divert);
        }
        batch
    }

    fn rule(
        &self,
        batch: Message,
        family: u8,
        chain: &str,
        expressions: impl FnOnce(Message) -> Message,
    ) -> Message {
        batch
            .begin(NEW_RULE, CREATE | APPEND)
            .netfilter(family, 0)
            .text(1, &self.name)
            .text(2, chain)
            .nested(4, expressions)
    }

    /// Removes both tables, if they are there.
    fn remove(&self) -> io::Result<()> {
        for family in [IPV4, IPV6] {
            let batch = begin()
                .begin(DELETE_TABLE, 0)
                .netfilter(family, 0)
                .text(1, &self.name);
            match self.netlink.transact(end(batch).bytes()) {
                Err(error) if error.raw_os_error() != Some(Errno::NOENT.raw_os_error()) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn told(&self, error: io::Error) -> FirewallError {
        let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
        if is(Errno::PERM) || is(Errno::EXIST) {
            FirewallError::Taken(self.name.clone())
        } else if is(Errno::NOENT) || is(Errno::OPNOTSUPP) || is(Errno::INVAL) {
            FirewallError::Unsupported(error)
        } else {
            FirewallError::System(error)
        }
    }
}

impl Drop for Firewall {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// Bytes of a set's key, all in words of four bytes: protocol, address and port; of next hops, interface and address.
fn key_len(set: &str, family: u8) -> u32 {
    let address = if family == IPV6 { 16 } else { 4 };
    address + if set == DIVERTING { 4 } else { 8 }
}

fn key(packets: &Captured) -> (u8, Vec<u8>) {
    let mut key = vec![packets.protocol, 0, 0, 0];
    let family = match packets.destination {
        IpAddr::V4(address) => {
            key.extend(address.octets());
            IPV4
        }
        IpAddr::V6(address) => {
            key.extend(address.octets());
            IPV6
        }
    };
    key.extend(packets.port.to_be_bytes());
    key.extend([0, 0]);
    (family, key)
}
