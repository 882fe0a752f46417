//! This host's own members of groups, as far as packets need to know them.

use std::net::IpAddr;

use bumpless_base::{Duration, Instant};
use bumpless_capture::{Queued, Verdict, keep_on_host};
use bumpless_iprp::Flow;

use crate::exchange::Attached;
use crate::members::Member;
use crate::snapshot::Passed;

/// How long after this host has become a member no packet is left that was sent before.
const SETTLED: Duration = Duration::from_millis(200);

/// Groups in which programs of this host are.
#[derive(Default)]
pub struct KnownMembers {
    /// Each with since when.
    all: Vec<(Member, Instant)>,
    /// When the queue was empty last.
    drained: Option<Instant>,
}

impl KnownMembers {
    /// Programs of the group `destination`, if it is one in which some are.
    pub fn of(&self, destination: IpAddr) -> Option<&Member> {
        let mut all = self.all.iter();
        let found = all.find(|(it, _)| destination == it.group);
        found.map(|(member, _)| member)
    }

    /// These are in groups from `now` on, some of them from before.
    pub fn become_these(&mut self, now: Instant, members: Vec<Member>) {
        let since = |member: &Member| {
            let is_it =
                |it: &&(Member, Instant)| (it.0.group, it.0.card) == (member.group, member.card);
            self.all.iter().find(is_it).map_or(now, |(_, since)| *since)
        };
        let all = members.into_iter().map(|it| {
            let since = since(&it);
            (it, since)
        });
        self.all = all.collect();
    }

    /// Whether a packet of this host for a group of IPv4 can be kept for its own members: one that was sent before the host was
    /// a member itself would leave.
    fn is_settled(&self, now: Instant, destination: IpAddr) -> bool {
        let mut all = self.all.iter();
        let Some((_, since)) = all.find(|(it, _)| destination == it.group) else {
            return false;
        };
        let is_settled = |at: &Instant| *at >= *since + SETTLED;
        is_settled(&now) && self.drained.as_ref().is_some_and(is_settled)
    }

    /// The queue was empty at `now`.
    pub const fn drained(&mut self, now: Instant) {
        self.drained = Some(now);
    }
}

/// What becomes of a packet whose copies have left. Programs of this host that are members of its group have it from their host: of
/// IPv4 the packet itself, of IPv6, where that can leave, one that is made of it.
pub fn keep_for_own(
    now: Instant,
    (members, attached): (&KnownMembers, &Attached),
    (packet, flow): (&Queued<'_>, &Flow),
    room: &mut [u8],
    passed: &mut Passed,
) -> Verdict {
    let card = attached.indexes.iter().position(|it| *it == packet.out);
    let (Some(card), Some(member)) = (card, members.of(flow.destination)) else {
        return Verdict::Drop;
    };
    if member.group.is_ipv4() {
        return match members.is_settled(now, flow.destination) {
            true => Verdict::Keep,
            false => Verdict::Drop,
        };
    }
    if let Some(made) = room.get_mut(..packet.bytes.len())
        && member.keeps(card, flow.source)
    {
        made.copy_from_slice(packet.bytes);
        keep_on_host(made);
        if attached.injector.give(card, made, member.group).is_err() {
            passed.not_given += 1;
        }
    }
    Verdict::Drop
}
