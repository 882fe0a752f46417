//! Table 13: states of one size, one after the other, with the same loss in each.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use bumpless_net_linux::Clock;
use serde::{Deserialize, Serialize};

use super::loss::LossCase;
use super::meter::{self, Jitter, Seen};
use super::pair::{Pair, Peer, Setup};
use super::{Trouble, go_on};
use crate::network::Place;
use crate::network::filter::{Filter, Loss};
use crate::statistics::Summary;

/// Transfers before the ones that count; the packets of the last ones are counted.
const WARM_UP: usize = 5;
/// The first of those, which find the connection's pace.
const NOT_COUNTED: usize = 2;
/// Between two transfers: what is late of one must not count for the next.
const PAUSE: Duration = Duration::from_millis(2);
/// Failed transfers after which a case is given up.
const TIMEOUT: usize = 3;

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Bytes of each state.
    pub size: usize,
    /// What is lost.
    pub loss: LossCase,
    /// Transfers that are to go undisturbed.
    pub iterations: usize,
    /// After so long no further transfer is begun.
    pub limit: Duration,
}

/// What a cell came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The peer.
    pub peer: String,
    /// Whether each size had a connection of its own, or all sizes one in turn.
    pub connection: String,
    /// What the networks carry.
    pub network: String,
    /// Bytes of each state.
    pub size: usize,
    /// What was lost.
    pub loss: String,
    /// Packets that a transfer takes without loss, on the network where loss is made.
    pub packets: Option<u64>,
    /// Packets that were to be dropped in all transfers together; by chance, as many as were.
    pub to_drop: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Transfers begun.
    pub begun: usize,
    /// Transfers that failed.
    pub failed: usize,
    /// Why the last one of those failed, or the case gave no figures.
    pub error: Option<String>,
    /// The times, nanoseconds.
    pub all: Option<Summary>,
    /// The same without transfers during which the meter saw a stall.
    pub undisturbed: Option<Summary>,
    /// What the meter saw.
    pub jitter: Jitter,
    /// Processor time of sender and receiver for all these transfers, nanoseconds.
    pub cpu_ns: [u64; 2],
    /// Most resident memory of sender and receiver, bytes.
    pub peak_bytes: [u64; 2],
    /// Each transfer's time, nanoseconds.
    pub samples_ns: Vec<u64>,
    /// Positions in `samples_ns` of the ones that a stall touches.
    pub disturbed: Vec<usize>,
    /// How long the machine stood still during each of those, nanoseconds; nothing in a run that did not tell.
    #[serde(default)]
    pub stood_still_ns: Vec<u64>,
}

/// One transfer that came to its end.
struct Timed {
    from: bumpless_base::Instant,
    to: bumpless_base::Instant,
    /// Its own account of its time, nanoseconds.
    took: u64,
}

/// Transfers of one cell beside which one meter runs.
struct Round {
    size: usize,
    loss: LossCase,
    /// What a transfer takes without loss.
    packets: u64,
    count: usize,
    until: Instant,
}

/// What a run of cells needs to know.
pub struct Bench<'a> {
    /// Where.
    pub place: &'a Place,
    /// What the networks carry, for results.
    pub network: &'a str,
    /// Same, Mbit/s; 0 = not limited.
    pub bandwidth_mbit: u32,
    /// Set when the user wants to stop.
    pub stop: &'a AtomicBool,
}

/// A peer's processes, kept from cell to cell if they are to share a connection.
pub struct Session<'a> {
    bench: &'a Bench<'a>,
    peer: &'a Peer,
    setup: Setup,
    pair: Option<Pair>,
}

impl<'a> Session<'a> {
    /// A session of `peer`, for states of at most `max_size` bytes.
    pub fn new(bench: &'a Bench<'a>, peer: &'a Peer, many: bool, max_size: usize) -> Self {
        let setup = Setup {
            channels: 1,
            many,
            max_size,
            bandwidth_mbit: bench.bandwidth_mbit,
            deadlines_us: Vec::new(),
        };
        Self {
            bench,
            peer,
            setup,
            pair: None,
        }
    }

    /// Measures one cell.
    ///
    /// # Errors
    /// The user wants to stop. Whatever else goes wrong stands in the cell.
    pub fn cell(&mut self, case: &Case) -> Result<Cell, Trouble> {
        let connection = if self.setup.many { "many" } else { "single" };
        let mut cell = Cell {
            peer: self.peer.name.clone(),
            connection: connection.into(),
            network: self.bench.network.into(),
            size: case.size,
            loss: case.loss.name().into(),
            ..Cell::default()
        };
        let filter = self.bench.place.lab().and_then(|lab| lab.filters().first());
        let began = Clock.now();
        let (outcome, seen) = self.rounds(case, filter, &mut cell);
        if let Some(filter) = filter {
            filter.set(Loss::None);
        }
        let times = match outcome {
            Ok(times) => times,
            Err(Trouble::Stopped) => return Err(Trouble::Stopped),
            Err(Trouble::Failed(reason)) => {
                self.pair = None;
                cell.error = Some(reason);
                Vec::new()
            }
        };
        cell.jitter = meter::told(&seen, began);
        let touched = |time: &Timed| seen.touches(time.from, time.to);
        let places = times.iter().enumerate();
        cell.disturbed = places
            .filter(|(_, time)| touched(time))
            .map(|(at, _)| at)
            .collect();
        let stood_still = |&at: &usize| seen.stood_still(times[at].from, times[at].to);
        cell.stood_still_ns = cell.disturbed.iter().map(stood_still).collect();
        cell.samples_ns = times.iter().map(|time| time.took).collect();
        cell.all = Summary::of(cell.samples_ns.iter().copied());
        let quiet = times.iter().filter(|time| !touched(time));
        cell.undisturbed = Summary::of(quiet.map(|time| time.took));
        Ok(cell)
    }

    fn pair(&mut self) -> Result<&mut Pair, Trouble> {
        if self.pair.is_none() {
            let started = Pair::start(self.bench.place, self.peer, &self.setup, self.bench.stop)?;
            self.pair = Some(started);
        }
        self.pair.as_mut().ok_or(Trouble::Stopped)
    }

    /// The transfers that count; for those that a stall touched as many again, at most twice as many in all.
    fn rounds(
        &mut self,
        case: &Case,
        filter: Option<&Filter>,
        cell: &mut Cell,
    ) -> (Result<Vec<Timed>, Trouble>, Seen) {
        let (mut times, mut seen) = (Vec::with_capacity(case.iterations), Seen::default());
        let packets = match self.warm_up(case, filter) {
            Ok(packets) => packets,
            Err(trouble) => return (Err(trouble), seen),
        };
        cell.packets = filter.map(|_| packets);
        let until = Instant::now() + case.limit;
        let mut wanted = case.iterations;
        while wanted > 0 && cell.failed < TIMEOUT && Instant::now() < until {
            let round = Round {
                size: case.size,
                loss: case.loss,
                packets,
                count: wanted,
                until,
            };
            let (outcome, during) = meter::beside(|| self.measure(&round, filter, cell));
            seen.append(during);
            match outcome {
                Ok(more) => times.extend(more),
                Err(trouble) => return (Err(trouble), seen),
            }
            let touched = |time: &&Timed| seen.touches(time.from, time.to);
            let disturbed = times.iter().filter(touched).count();
            wanted = further(case.iterations, cell.begun, disturbed);
        }
        (Ok(times), seen)
    }

    /// One transfer after another; what they cost is added to the cell.
    fn measure(
        &mut self,
        round: &Round,
        filter: Option<&Filter>,
        cell: &mut Cell,
    ) -> Result<Vec<Timed>, Trouble> {
        let before = self.pair()?.usage();
        let last = cell.begun + round.count;
        let mut times = Vec::with_capacity(round.count);
        while cell.begun < last && cell.failed < TIMEOUT && Instant::now() < round.until {
            go_on(self.bench.stop)?;
            thread::sleep(PAUSE);
            if let Some(filter) = filter {
                filter.set(round.loss.of(round.packets));
            }
            let stop = self.bench.stop;
            let pair = self.pair()?;
            let from = Clock.now();
            let outcome = pair.transfer(round.size, stop)?;
            let to = Clock.now();
            cell.begun += 1;
            let dropped = filter.map_or(0, Filter::dropped);
            cell.to_drop += round.loss.packets().unwrap_or(dropped);
            cell.dropped += dropped;
            match outcome {
                Ok(took) => times.push(Timed { from, to, took }),
                Err(reason) => {
                    cell.failed += 1;
                    cell.error = Some(reason);
                    // What it was at may still go on: a fresh connection for the next.
                    self.pair = None;
                }
            }
        }
        let after = self.pair()?.usage();
        for side in 0..2 {
            cell.cpu_ns[side] += after[side].cpu_ns.saturating_sub(before[side].cpu_ns);
            cell.peak_bytes[side] = after[side].peak_bytes;
        }
        Ok(times)
    }

    /// Lets the connection find its pace; returns how many packets a transfer takes. Neither one that was
    /// disturbed and repeated some nor one that for once needed fewer decides.
    fn warm_up(&mut self, case: &Case, filter: Option<&Filter>) -> Result<u64, Trouble> {
        let mut counts = Vec::with_capacity(WARM_UP);
        for count in 0..WARM_UP {
            thread::sleep(PAUSE);
            if let Some(filter) = filter {
                filter.set(Loss::None);
            }
            let stop = self.bench.stop;
            let outcome = self.pair()?.transfer(case.size, stop)?;
            outcome.map_err(|reason| Trouble::Failed(format!("without loss: {reason}")))?;
            thread::sleep(PAUSE);
            if count >= NOT_COUNTED {
                counts.extend(filter.map(Filter::seen));
            }
        }
        counts.sort_unstable();
        Ok(counts.get(counts.len() / 2).copied().unwrap_or(0))
    }
}

/// How many more transfers there are to be, when so many were wanted undisturbed and so many were begun, some
/// of them disturbed.
fn further(iterations: usize, begun: usize, disturbed: usize) -> usize {
    let missing = (iterations + disturbed).saturating_sub(begun);
    missing.min((2 * iterations).saturating_sub(begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_transfers_are_made_up_for_up_to_as_many_again() {
        assert_eq!(further(100, 100, 0), 0);
        assert_eq!(further(100, 100, 3), 3);
        // One of those three was disturbed as well.
        assert_eq!(further(100, 103, 4), 1);
        assert_eq!(further(100, 150, 90), 40);
        assert_eq!(further(100, 200, 150), 0);
        // Ended early by its limit, then by its failures.
        assert_eq!(further(100, 20, 1), 81);
    }
}
