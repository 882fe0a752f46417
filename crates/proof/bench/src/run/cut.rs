//! One network cut in the middle of a transfer: what the application sees of it.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Trouble;
use super::pair::{Pair, Peer, Setup};
use super::transfers::Bench;
use crate::conversation::{Answer, Order};
use crate::network::filter::Loss;
use crate::statistics::Summary;

const SIZE: usize = 1 << 20;
/// Transfers without a cut, for comparison; and with one.
const QUIET: usize = 20;
/// How long a network stays cut.
pub const CUT: Duration = Duration::from_secs(1);
/// Between its repair and the next transfer.
const HEALING: Duration = Duration::from_millis(500);

/// What cuts came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cuts {
    /// The peer.
    pub peer: String,
    /// Networks that it uses; network A is cut.
    pub networks: usize,
    /// Bytes of each state.
    pub size: usize,
    /// How long the network stays cut, nanoseconds.
    pub cut_ns: u64,
    /// Transfers without a cut, nanoseconds.
    pub quiet: Option<Summary>,
    /// Transfers in whose middle the network was cut, nanoseconds.
    pub cut: Option<Summary>,
    /// Each of those, nanoseconds.
    pub samples_ns: Vec<u64>,
    /// Packets that the cuts swallowed.
    pub swallowed: u64,
    /// Transfers that failed.
    pub failed: usize,
    /// Why there are no figures, or the last one failed.
    pub error: Option<String>,
}

/// Cuts network A in the middle of `count` transfers.
///
/// # Errors
/// The user wants to stop. Whatever else goes wrong stands in the result.
pub fn run(bench: &Bench<'_>, peer: &Peer, count: usize) -> Result<Cuts, Trouble> {
    let mut cuts = Cuts {
        peer: peer.name.clone(),
        networks: peer.networks,
        size: SIZE,
        cut_ns: u64::try_from(CUT.as_nanos()).unwrap_or(u64::MAX),
        ..Cuts::default()
    };
    match measure(bench, peer, count, &mut cuts) {
        Err(Trouble::Stopped) => return Err(Trouble::Stopped),
        Err(Trouble::Failed(reason)) => cuts.error = Some(reason),
        Ok(()) => {}
    }
    cuts.cut = Summary::of(cuts.samples_ns.iter().copied());
    Ok(cuts)
}

fn measure(bench: &Bench<'_>, peer: &Peer, count: usize, cuts: &mut Cuts) -> Result<(), Trouble> {
    let Some(filter) = bench.place.lab().and_then(|lab| lab.filters().first()) else {
        return Err(Trouble::Failed("loopback cannot be cut".into()));
    };
    let setup = Setup {
        channels: 1,
        many: false,
        max_size: SIZE,
        bandwidth_mbit: bench.bandwidth_mbit,
        deadlines_us: Vec::new(),
    };
    let mut pair = Pair::start(bench.place, peer, &setup, bench.stop)?;
    let (mut quiet, mut packets) = (Vec::new(), 0);
    for _ in 0..QUIET {
        filter.set(Loss::None);
        thread::sleep(Duration::from_millis(2));
        quiet.push(pair.transfer(SIZE, bench.stop)?.map_err(Trouble::Failed)?);
        packets = filter.seen();
    }
    cuts.quiet = Summary::of(quiet);
    for _ in 0..count {
        filter.set(Loss::CutAfter(packets / 2));
        pair.order(&Order::Transfer(SIZE))?;
        // One that does not notice answers long before the repair.
        thread::sleep(CUT);
        cuts.swallowed += filter.swallowed();
        filter.set(Loss::None);
        match pair.answer(bench.stop)? {
            Answer::Done { nanoseconds } => cuts.samples_ns.push(nanoseconds),
            Answer::Failed { reason } => {
                cuts.failed += 1;
                cuts.error = Some(reason);
                pair = Pair::start(bench.place, peer, &setup, bench.stop)?;
            }
            other => {
                return Err(Trouble::Failed(format!(
                    "{other:?} is no answer to 'transfer'"
                )));
            }
        }
        thread::sleep(HEALING);
    }
    Ok(())
}
