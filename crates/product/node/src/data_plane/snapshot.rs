//! What status shows, and the measurements for it, now and then.

use bumpless_base::{Counter, Counters, Duration, Instant, LinkId, PeerId, ProgramStanding};
use bumpless_net_linux::Echo;
use bumpless_redundancy::{RedundancyCause, RedundancyLevel};

use super::DataPlane;
use super::drivers::Drivers;
use crate::snapshot::{ApplicationSnapshot, Snapshot};

/// Causes whose words have changed are told anew no more often than this: whoever can send to the networks can change
/// them.
const RENEW_CAUSES: Duration = Duration::from_millis(500);

impl<D: Drivers> DataPlane<D> {
    #[inline(never)] // Only now and then.
    pub(super) fn refresh(&mut self, now: Instant) -> Option<Duration> {
        self.refreshed = now;
        if now.since(self.causes_renewed) >= RENEW_CAUSES {
            self.causes_renewed = now;
            self.renew_causes(now);
        }
        self.measure_round_trips();
        self.measure_drops(now);
        self.show(now);
        self.groups
            .iter()
            .find_map(|group| group.overdue(self.stalls.ended_at, now))
    }

    /// Tells causes anew whose words have become others while the core's cause stayed: a partner that is not heard
    /// sends messages after all, with other security.
    fn renew_causes(&mut self, now: Instant) {
        for port in self.ports.iter_mut().flatten() {
            port.forget_mismatches(now);
        }
        for at in self.groups.indices() {
            let (id, level) = (self.groups[at].id, self.groups[at].level);
            let (Some(level), Some(cause)) = (level, level.and_then(unheard)) else {
                continue;
            };
            let words = self.redundancy_cause(id, cause);
            if words.as_str() != self.groups[at].snapshot.cause.as_str() {
                self.level_changed(id, level, now);
            }
        }
    }

    /// Shows status how things are, unless it is just being read: then the next refresh does.
    pub(super) fn show(&self, now: Instant) {
        if let Ok(mut snapshot) = self.surroundings.snapshot.try_lock() {
            self.fill(&mut snapshot, now);
        }
    }

    /// Heartbeats measure the round trip of links that carry no states.
    fn measure_round_trips(&mut self) {
        let links = self.ports.len().max(1);
        for (at, snapshot) in self.link_snapshots.iter_mut().enumerate() {
            let (peer, link) = (PeerId((at / links) as u8), LinkId((at % links) as u8));
            snapshot.round_trip = self.cores.redundancy.round_trip(peer, link);
            // A primary's own packets measure better.
            let sends = self
                .groups
                .iter()
                .any(|group| group.peer == peer && group.gate.is_primary());
            if let Some(measured) = snapshot.round_trip.filter(|_| !sends) {
                self.cores.sender.set_link_round_trip(peer, link, measured);
            }
        }
    }

    fn measure_drops(&mut self, now: Instant) {
        let links = self.ports.len().max(1);
        for (at, port) in self.ports.iter_mut().enumerate() {
            let Some(port) = port else { continue };
            port.measure_drops();
            // With none for long, a screen is taken away.
            port.handle_strangers(0, now);
            for snapshot in self.link_snapshots.iter_mut().skip(at).step_by(links) {
                snapshot.receive_drops = port.receive_drops();
                snapshot.screened = port.is_screened();
                snapshot.send_failures = port.send_failures();
            }
        }
    }

    /// What the drivers below have lost or left out.
    fn add_drivers(&self, counters: &mut Counters) {
        for port in self.ports.iter().flatten() {
            counters.add(
                Counter::DiscardSocketFull,
                port.receive_drops().unwrap_or(0),
            );
            counters.add(Counter::DiscardScreened, port.screened());
        }
        for pinger in self.pingers.iter().flatten() {
            let passed_over = pinger.passed_over();
            counters.add(Counter::DiscardForeignIcmp, passed_over.foreign);
            counters.add(Counter::ReceiveFailures, passed_over.failures);
        }
    }

    fn fill(&self, snapshot: &mut Snapshot, now: Instant) {
        snapshot.at = now;
        let mut counters = self.cores.counters.clone();
        counters.merge(self.cores.sender.counters());
        counters.merge(self.cores.receiver.counters());
        counters.merge(self.cores.redundancy.counters());
        self.add_drivers(&mut counters);
        for application in &mut snapshot.applications {
            // What is there of a program's failure may be all that can be had of it at this moment.
            *application = ApplicationSnapshot {
                program_fault: application.program_fault,
                retained: application.retained,
                ..ApplicationSnapshot::default()
            };
        }
        for channel in self.channels.iter().flatten() {
            channel.board.add_to(&mut counters);
            let status = channel.mailbox.status();
            let stopped = status.program != ProgramStanding::Runs;
            let shown = &mut snapshot.applications[channel.application];
            *shown = ApplicationSnapshot {
                field_silent: !status.fit && !stopped,
                silent_devices: channel.board.silent(),
                program_stopped: stopped,
                program_faults: channel.board.get(Counter::ProgramFaults),
                program_fault: channel.board.program(shown.program_fault),
                retained: channel.board.retained(shown.retained),
                ..channel.snapshot
            };
        }
        snapshot.configurations = self.cores.redundancy.configurations();
        snapshot.counters = counters;
        for group in &self.groups {
            snapshot.groups[usize::from(group.id.0)] = group.snapshot;
        }
        snapshot.links.copy_from_slice(&self.link_snapshots);
        (snapshot.stalls, snapshot.longest_stall) = (self.stalls.count, self.stalls.longest);
    }
}

/// The cause of `level`, if it is that the partner is not heard.
const fn unheard(level: RedundancyLevel) -> Option<RedundancyCause> {
    match level {
        RedundancyLevel::Lost(cause) | RedundancyLevel::Degraded(cause) => match cause {
            RedundancyCause::PartnerSilent | RedundancyCause::LinkDown(_) => Some(cause),
            _ => None,
        },
        RedundancyLevel::Ok => None,
    }
}
