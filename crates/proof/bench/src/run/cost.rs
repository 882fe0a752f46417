//! What a peer costs: processor time for each gigabyte, memory against the size of the state.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::allocations::Allocations;
use super::pair::{Pair, Peer, Setup};
use super::transfers::Bench;
use super::{Trouble, go_on};
use crate::conversation::{Answer, Order};

const WARM_UP: usize = 5;
/// Transfers of which allocations are counted.
const COUNTED: usize = 20;

/// What transfers of one size cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The peer.
    pub peer: String,
    /// What the networks carry.
    pub network: String,
    /// Bytes of each state.
    pub size: usize,
    /// How many were transferred.
    pub transfers: usize,
    /// Processor time of sender and receiver for all of them, nanoseconds.
    pub cpu_ns: [u64; 2],
    /// The same for each 10^9 bytes of state, seconds.
    pub cpu_s_per_gb: [f64; 2],
    /// Most resident memory of sender and receiver, bytes.
    pub peak_bytes: [u64; 2],
    /// Allocations of sender and receiver for each of some more transfers; `None` if nobody can count them.
    pub allocations: Option<[f64; 2]>,
    /// Most bytes that its buffers took; `None` if it cannot tell.
    pub buffer_bytes: Option<u64>,
    /// Why there are no figures, if so.
    pub error: Option<String>,
}

/// Transfers `count` states of `size` bytes, one after the other.
///
/// # Errors
/// The user wants to stop. Whatever else goes wrong stands in the result.
pub fn run(bench: &Bench<'_>, peer: &Peer, size: usize, count: usize) -> Result<Cost, Trouble> {
    let mut cost = Cost {
        peer: peer.name.clone(),
        network: bench.network.into(),
        size,
        ..Cost::default()
    };
    match measure(bench, peer, count, &mut cost) {
        Err(Trouble::Stopped) => Err(Trouble::Stopped),
        Err(Trouble::Failed(reason)) => {
            cost.error = Some(reason);
            Ok(cost)
        }
        Ok(()) => Ok(cost),
    }
}

fn measure(bench: &Bench<'_>, peer: &Peer, count: usize, cost: &mut Cost) -> Result<(), Trouble> {
    let setup = Setup {
        channels: 1,
        many: false,
        max_size: cost.size,
        bandwidth_mbit: bench.bandwidth_mbit,
        deadlines_us: Vec::new(),
    };
    let mut pair = Pair::start(bench.place, peer, &setup, bench.stop)?;
    for _ in 0..WARM_UP {
        pair.transfer(cost.size, bench.stop)?
            .map_err(Trouble::Failed)?;
    }
    let before = pair.usage();
    for _ in 0..count {
        go_on(bench.stop)?;
        pair.transfer(cost.size, bench.stop)?
            .map_err(Trouble::Failed)?;
        cost.transfers += 1;
    }
    let after = pair.usage();
    cost.buffer_bytes = buffers(&mut pair, bench)?;
    let gigabytes = cost.size as f64 * cost.transfers as f64 / 1e9;
    for side in 0..2 {
        cost.cpu_ns[side] = after[side].cpu_ns.saturating_sub(before[side].cpu_ns);
        cost.cpu_s_per_gb[side] = cost.cpu_ns[side] as f64 / 1e9 / gigabytes.max(1e-9);
        cost.peak_bytes[side] = after[side].peak_bytes;
    }
    cost.allocations = allocations(bench, &mut pair, cost.size)?;
    Ok(())
}

/// Transfers some more and counts what is allocated for them.
fn allocations(
    bench: &Bench<'_>,
    pair: &mut Pair,
    size: usize,
) -> Result<Option<[f64; 2]>, Trouble> {
    let [sender, receiver] = pair.ids().map(Allocations::of);
    let (Ok(sender), Ok(receiver)) = (sender, receiver) else {
        return Ok(None);
    };
    let count = || Some([sender.count().ok()?, receiver.count().ok()?]);
    let before = count();
    for _ in 0..COUNTED {
        go_on(bench.stop)?;
        if pair.transfer(size, bench.stop)?.is_err() {
            return Ok(None);
        }
    }
    let each = |(after, before): ([u64; 2], [u64; 2])| {
        [0, 1].map(|side| (after[side] - before[side]) as f64 / COUNTED as f64)
    };
    Ok(count().zip(before).map(each))
}

fn buffers(pair: &mut Pair, bench: &Bench<'_>) -> Result<Option<u64>, Trouble> {
    match pair.ask(&Order::Cost, Duration::ZERO, bench.stop)? {
        Answer::Cost { peak_buffer_bytes } => Ok(peak_buffer_bytes),
        other => Err(Trouble::Failed(format!("{other:?} is no answer to 'cost'"))),
    }
}
