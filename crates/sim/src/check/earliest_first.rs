//! earliest first: no packet is sent while a channel with an earlier deadline has one ready.
//!
//! A deadline is known only to within what a state may have inherited (T-3): of the packet that
//! leaves the earliest counts, of the others the latest. Whether a channel has a packet ready
//! follows from what was published, what was handed to each link before, what acknowledgements that
//! arrived have said, and the in-flight limit.

use super::{Sending, Verdict};

/// The checker.
pub struct EarliestFirst;

impl EarliestFirst {
    /// A packet of `application` is handed to `network`; `channels` lead to its partner.
    pub fn leaves<'a>(
        &self,
        application: usize,
        network: usize,
        channels: impl Iterator<Item = (usize, &'a Sending)> + Clone,
    ) -> Verdict {
        let Some((_, own)) = channels.clone().find(|(at, _)| *at == application) else {
            return Ok(());
        };
        let Some(deadline) = own.earliest_deadline() else {
            return Ok(());
        };
        let in_flight: u32 = channels.clone().map(|(_, c)| c.in_flight_at_most()).sum();
        let room = in_flight < own.in_flight_max();
        // Which links work is known for those that have the same.
        let others =
            channels.filter(|(at, other)| *at != application && other.networks() == own.networks());
        for (other, channel) in others {
            let Some((state, earlier)) = channel.is_ready(network, room) else {
                continue;
            };
            if earlier < deadline {
                return Err(format!(
                    "application {application} sends on network {network} while application {other} has \
                     a packet of state {state} ready, whose deadline is {} earlier",
                    deadline.since(earlier)
                ));
            }
        }
        Ok(())
    }
}
