//! What a node sends: heartbeats, requests to witnesses, echo requests.

use crate::id::{GroupPlace, ReferenceId};
use crate::outgoing::Outgoing;
use crate::redundancy::Redundancy;
use crate::setup::ReferenceKind;
use bumpless_base::{Counter, Instant};
use bumpless_wire::{MAX_HEARTBEAT_LEN, WitnessKind, WitnessRequest};

/// Bytes of the longest message that [`Redundancy::poll_transmit`] writes.
pub const MAX_MESSAGE_LEN: usize = MAX_HEARTBEAT_LEN;

impl Redundancy {
    /// The next message to send, written to the front of `out`; `None` when there is none.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut [u8; MAX_MESSAGE_LEN],
    ) -> Option<Outgoing> {
        for partner in &mut self.partners {
            if let Some(heartbeat) = partner.poll_transmit(&self.setup, now, out) {
                self.out.count(Counter::HeartbeatsSent);
                return Some(heartbeat);
            }
        }
        self.poll_request(now, out).or_else(|| self.poll_ping(now))
    }

    fn poll_request(&mut self, now: Instant, out: &mut [u8; MAX_MESSAGE_LEN]) -> Option<Outgoing> {
        for index in self.groups.indices() {
            let members = self.groups[index].agreement.members();
            let due = members.iter().find(|&&(reference, kind)| {
                let lease = self.groups[index].agreement.lease(reference);
                kind == ReferenceKind::Witness && lease.next_request <= now
            });
            if let Some(&(reference, _)) = due {
                let len = self.write_request(index, reference, now, out);
                self.out.count(Counter::WitnessRequests);
                return Some(Outgoing::Witness { reference, len });
            }
        }
        None
    }

    #[inline(never)]
    fn write_request(
        &mut self,
        index: GroupPlace,
        reference: ReferenceId,
        now: Instant,
        out: &mut [u8; MAX_MESSAGE_LEN],
    ) -> usize {
        let timing = self.setup.timing;
        let s = self.surroundings(self.groups[index].terms.peer, now);
        let repeated_at = self.groups[index].repeated_at(reference, &s);
        let lease = self.groups[index].agreement.lease_mut(reference);
        lease.requested_at = now;
        lease.next_request = repeated_at;
        let witness_session = lease.witness;
        let group = self.groups[index].terms.id;
        let (kind, epoch) = self.groups[index].request(reference, &timing, now);
        if kind == WitnessKind::Yield {
            self.groups[index]
                .agreement
                .lease_mut(reference)
                .yield_at(now);
        }
        let sent_at = now.as_nanos().max(1);
        let request = WitnessRequest {
            pair: self.setup.pair,
            group: group.0,
            node: self.setup.node,
            candidates: 2,
            session: self.session,
            kind,
            epoch,
            // Our drift included: the witness need not know it.
            lease_us: u32::try_from(timing.promise().as_nanos().div_ceil(1000)).unwrap_or(u32::MAX),
            sent_at,
            token: self.token(group, reference, sent_at, kind as u8),
            witness_session,
        };
        let mut bytes = [0; WitnessRequest::LEN];
        let len = request.encode(&mut bytes);
        out[..len].copy_from_slice(&bytes[..len]);
        len
    }

    fn poll_ping(&mut self, now: Instant) -> Option<Outgoing> {
        let kinds = self.setup.references.iter();
        let pings = kinds.zip(self.pings.iter_mut()).enumerate();
        for (at, (&kind, state)) in pings {
            if kind == ReferenceKind::Ping && state.due <= now {
                state.due = now + self.setup.timing.ping_interval();
                self.out.count(Counter::WitnessRequests);
                let reference = ReferenceId(u8::try_from(at).unwrap_or(u8::MAX));
                return Some(Outgoing::Ping {
                    reference,
                    sequence: state.send(now),
                });
            }
        }
        None
    }

    /// When the next request to a reference point is due.
    pub(crate) fn next_request(&self) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        for group in &self.groups {
            for &(reference, kind) in group.agreement.members() {
                if kind == ReferenceKind::Witness {
                    next = next.min(group.agreement.lease(reference).next_request);
                }
            }
        }
        for (kind, state) in self.setup.references.iter().zip(&self.pings) {
            if *kind == ReferenceKind::Ping {
                next = next.min(state.due);
            }
        }
        next
    }
}
