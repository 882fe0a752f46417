//! earliest first: no packet is sent while a channel with an earlier deadline has one ready.
//!
//! A deadline is known only to within what a state may have inherited (T-3): of the packet that
//! leaves the earliest counts, of the others the latest. Whether a channel has a packet ready
//! follows from what was published, what was handed to each link before, what acknowledgements that
//! arrived have said, and the in-flight limit.

use bumpless_base::{LinkId, LinkSet};

use super::sending::{Ready, Sending};
use super::told::Networks;
use crate::check::{Exemption, Tally, Verdict};

/// What a node knows of its networks in a turn in which it sends: as they are before it, or after it.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    pub before: Networks,
    pub after: Networks,
}

impl Heard {
    /// Whether `channel` may leave `network` alone, since another one of its own is up and this one is not (T-14), or passes full
    /// packets and this one does not (T-55).
    fn may_leave(self, network: usize, channel: &Sending) -> bool {
        let is_worse = |[before, after]: [LinkSet; 2]| {
            let both = before.intersection(after);
            let has = u8::try_from(network).is_ok_and(|link| both.contains(LinkId(link)));
            !has && channel.is_reached(before.union(after))
        };
        let ends = [self.before, self.after];
        is_worse(ends.map(|it| it.up)) || is_worse(ends.map(|it| it.wide))
    }
}

/// The checker.
pub struct EarliestFirst {
    tally: Tally,
}

impl EarliestFirst {
    /// The checker, which counts in `tally`.
    pub fn new(tally: &Tally) -> Self {
        let tally = tally.clone();
        Self { tally }
    }

    /// A packet of `application` is handed to `network`; `channels` lead to its partner.
    pub fn leaves<'a>(
        &self,
        (application, network): (usize, usize),
        heard: Heard,
        channels: impl Iterator<Item = (usize, &'a Sending)> + Clone,
    ) -> Verdict {
        let Some((_, own)) = channels.clone().find(|(at, _)| *at == application) else {
            return Err(format!(
                "application {application} sends to a node with which it has no channel"
            ));
        };
        // Who has no state to send is found by the model of its channel.
        let Some((deadline, latest)) = own.deadlines() else {
            return Ok(());
        };
        let in_flight: u32 = channels.clone().map(|(_, c)| c.in_flight_at_most()).sum();
        let room = in_flight < own.in_flight_max();
        let on_it = |channel: &Sending| channel.networks().contains(&network);
        let others = channels.filter(|(at, other)| *at != application && on_it(other));
        for (other, channel) in others {
            let Some(Ready {
                state,
                deadline: theirs,
                may_end,
            }) = channel.is_ready(network, room)
            else {
                continue;
            };
            if theirs >= deadline {
                if channel
                    .deadlines()
                    .is_some_and(|(theirs, _)| theirs < latest)
                {
                    self.tally.count(Exemption::DeadlineInherited);
                }
            } else if may_end {
                self.tally.count(Exemption::GivenUpInThisTurn);
            } else if channel.networks() != own.networks() && heard.may_leave(network, channel) {
                self.tally.count(Exemption::LinksUnknown);
            } else {
                return Err(format!(
                    "application {application} sends on network {network} while application {other} has \
                     a packet of state {state} ready, whose deadline is {} earlier",
                    deadline.since(theirs)
                ));
            }
        }
        Ok(())
    }
}
