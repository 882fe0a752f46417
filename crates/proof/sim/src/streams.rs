//! Random numbers by purpose: one more draw in one place shifts no other place's.

use bumpless_base::Random;
use bumpless_base::random::mix64;

/// What a stream of random numbers is for.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Faults drawn from the seed.
    Storm = 1,
    /// Delays and losses of a path.
    Path,
    /// Scheduling on a node.
    Host,
    /// The data plane's own seed on a node.
    Session,
    /// Origins and rates of clocks.
    Clock,
    /// Field devices.
    Device,
    /// Junk, and what is recorded for replays.
    Junk,
    /// Witnesses.
    Witness,
    /// Numbers with which channels begin.
    Cycles,
    /// Channel sets on which the plan's promise is tried.
    Promise,
    /// When the steps of a change are taken.
    Changes,
    /// What tells apart the envelopes of processes.
    Envelopes,
    /// Between two packets of a flood.
    Floods,
    /// When the steps of changing a key are taken.
    Keys,
    /// Losses of a link of a wide-area network, in one direction.
    Wide,
}

/// The stream of `seed` for `purpose`, the `index`-th of its kind.
pub fn stream(seed: u64, purpose: Purpose, index: usize) -> Random {
    let place = mix64((purpose as u64) << 32 | index as u64);
    Random::new(mix64(seed ^ place))
}
