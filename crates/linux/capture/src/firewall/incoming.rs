//! The rule of a host whose packets are all held back, those that come in or those that it forwards: a table with one
//! chain and one rule in it.

use std::io;

use rustix::net::netlink;

use super::batch::{
    APPEND, CREATE, FORWARD, FORWARDED, INPUT, IPV4, IPV6, LOCAL_IN, NEW_CHAIN, NEW_RULE,
    NEW_TABLE, PRIORITY, begin, end,
};
use super::expression::{Expressions, QueueKind};
use crate::netlink::Netlink;

/// Hands all packets of one IP version that come in from a network to queue `number`, in the network namespace of the
/// calling thread, by the table `name`. They pass while nobody has the queue. The table stays with the namespace.
///
/// # Errors
/// The kernel lacks nf_tables or NFQUEUE, or the right to it (CAP_NET_ADMIN) is missing.
pub fn queue_incoming(name: &str, v6: bool, number: u16) -> io::Result<()> {
    queue_at((INPUT, LOCAL_IN), name, v6, number)
}

/// The same with all packets that the namespace forwards.
///
/// # Errors
/// As [`queue_incoming`].
pub fn queue_forwarded(name: &str, v6: bool, number: u16) -> io::Result<()> {
    queue_at((FORWARDED, FORWARD), name, v6, number)
}

fn queue_at((chain, hook): (&str, u32), name: &str, v6: bool, number: u16) -> io::Result<()> {
    let netlink = Netlink::open(Some(netlink::NETFILTER))?;
    let family = if v6 { IPV6 } else { IPV4 };
    let made = |kind| {
        let batch = begin()
            .begin(NEW_TABLE, CREATE)
            .netfilter(family, 0)
            .text(1, name)
            .begin(NEW_CHAIN, CREATE)
            .netfilter(family, 0)
            .text(1, name)
            .text(3, chain)
            .nested(4, |it| it.number(1, hook).number(2, PRIORITY as u32))
            .text(7, "filter")
            .begin(NEW_RULE, CREATE | APPEND)
            .netfilter(family, 0)
            .text(1, name)
            .text(2, chain)
            .nested(4, |it| {
                Expressions(it).except_from_loopback().queue(kind, number).0
            });
        netlink.transact(end(batch).bytes())
    };
    // Kernels have the one, or what iptables uses; a batch is taken whole or not at all.
    made(QueueKind::Native).or_else(|_| made(QueueKind::Target))
}
