//! What the data plane tells of itself, as it was at one moment.

use std::net::IpAddr;

use bumpless_base::{Duration, Instant};
use bumpless_capture::{Departed, Segmentation};
use bumpless_iprp::{
    Arrivals, Ind, Mode, PathStatus, Receiver, ReceiverTotals, Scope, Sender, SenderTotals,
};
use bumpless_secure::RingSuite;

use crate::unanswered::{Unanswered, Watch};
use crate::unheard::{self, Unheard};

/// What is counted where packets pass, beside the cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Packets that were captured.
    pub captured: u64,
    /// Those among them that came by the ring.
    pub captured_by_ring: u64,
    /// Those that were to go on as they were, and that the host did not take.
    pub not_released: u64,
    /// Those that went on as they were since every copy was refused by the system.
    pub no_copy_left: u64,
    /// Captured packets that could not be read: fragments, extension headers.
    pub unreadable: u64,
    /// Copies that a network did not take, by number of the card.
    pub not_taken: Vec<u64>,
    /// Copies that left with others in one message, by number of the card.
    pub in_segments: Vec<u64>,
    /// Messages with several copies that a network refused, by number of the card.
    pub runs_refused: Vec<u64>,
    /// Datagrams that came at the data port, by number of the card.
    pub came: Vec<u64>,
    /// Those among them that came with others in one message, by number of the card.
    pub in_runs: Vec<u64>,
    /// Datagrams that were discarded since too many came in one message.
    pub run_too_long: u64,
    /// Packets that the host did not take back.
    pub not_given: u64,
    /// Packets for a group in which no program of this host is.
    pub no_member: u64,
    /// Times that the kernel had more packets than it could keep for this process.
    pub overrun: u64,
    /// Messages to the control plane for which there was no room.
    pub untold: u64,
}

impl Passed {
    /// Networks have other numbers: of each one the number that it had, if it was there.
    pub fn renumber(&mut self, before: &[Option<usize>]) {
        for of_networks in [
            &mut self.not_taken,
            &mut self.in_segments,
            &mut self.runs_refused,
            &mut self.came,
            &mut self.in_runs,
        ] {
            let count = |at: &Option<usize>| at.and_then(|at| of_networks.get(at)).copied();
            *of_networks = before.iter().map(|at| count(at).unwrap_or(0)).collect();
        }
    }

    /// Counts what has become of copies.
    pub fn count(&mut self, it: Departed) {
        let (all, on, more) = match it {
            Departed::Left { .. } => return,
            Departed::NotTaken { on, .. } => (&mut self.not_taken, on, 1),
            Departed::InSegments { on, copies } => (&mut self.in_segments, on, copies as u64),
            Departed::RunRefused { on } => (&mut self.runs_refused, on, 1),
        };
        if let Some(count) = all.get_mut(on) {
            *count += more;
        }
    }
}

/// A session in which this host sends.
#[derive(Clone, Debug)]
pub struct Sending {
    /// What is replicated.
    pub scope: Scope,
    /// How networks are used.
    pub mode: Mode,
    /// Whether packets leave as they are, since the receiver does not answer.
    pub suspended: bool,
    /// Its networks.
    pub paths: Vec<PathStatus>,
    /// Those that answer nothing while another one does.
    pub unanswered: Vec<Unanswered>,
}

/// A session in which this host receives.
#[derive(Clone, Debug)]
pub struct Receiving {
    /// Whose packets.
    pub source: IpAddr,
    /// Which packets.
    pub scope: Scope,
    /// Whether they come replicated.
    pub replicated: bool,
    /// How long ago one came.
    pub ago: Duration,
    /// What came, by network on which it was sent.
    pub arrivals: Vec<(Ind, Arrivals)>,
    /// Networks on which nothing comes while another one brings packets to a group.
    pub unheard: Vec<Unheard>,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Longest copy that leaves whole.
    pub room: usize,
    /// Whether copies leave in segments, by number of the card.
    pub segmentation: Vec<Segmentation>,
    /// Whether copies that come in segments are received whole.
    pub coalesces: bool,
    /// Sessions of the sender.
    pub sending: Vec<Sending>,
    /// Sessions of the receiver.
    pub receiving: Vec<Receiving>,
    /// What the sender has counted.
    pub sender: SenderTotals,
    /// What the receiver has counted.
    pub receiver: ReceiverTotals,
    /// What was counted where packets pass.
    pub passed: Passed,
}

impl Snapshot {
    /// Of these cores.
    pub fn take(
        now: Instant,
        (sender, receiver): (&Sender<RingSuite>, &Receiver<RingSuite>),
        (passed, watch, unheard): (&Passed, &Watch, &unheard::Watch),
        (room, segmentation, coalesces): (usize, &[Segmentation], bool),
    ) -> Self {
        let sending = sender.sessions().map(|session| {
            let (scope, paths) = (session.scope(), session.paths().collect::<Vec<_>>());
            let place = session.session.0 as usize;
            Sending {
                scope,
                mode: session.mode(),
                suspended: session.is_suspended(),
                unanswered: watch.of(now, (place, scope), &paths),
                paths,
            }
        });
        let receiving = receiver.sessions().map(|session| Receiving {
            source: session.source(),
            scope: session.scope(),
            replicated: session.is_replicated(),
            ago: now.since(session.last_seen()),
            arrivals: session.arrivals().map(|(ind, it)| (ind, *it)).collect(),
            unheard: unheard.of(now, &session),
        });
        Self {
            room,
            segmentation: segmentation.to_vec(),
            coalesces,
            sending: sending.collect(),
            receiving: receiving.collect(),
            sender: *sender.totals(),
            receiver: receiver.totals().clone(),
            passed: passed.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_of_a_network_stays_its_own_when_another_one_goes_or_comes() {
        let mut passed = Passed::default();
        passed.renumber(&[None; 2]);
        passed.came = vec![5, 7];
        passed.runs_refused = vec![1, 2];
        passed.renumber(&[Some(1)]);
        assert_eq!(
            (&passed.came[..], &passed.runs_refused[..]),
            (&[7][..], &[2][..])
        );
        passed.renumber(&[None, Some(0)]);
        assert_eq!(
            (&passed.came[..], &passed.not_taken[..]),
            (&[0, 7][..], &[0; 2][..])
        );
    }
}
