//! What busy polling is to give, and where it stands in this run (spec/bench.md, B-32).

use super::bar::{Bar, below};
use super::transfers::{Block, ratio};
use super::units;
use crate::paper;
use crate::result::Run;

const MB: usize = 1 << 20;
/// A short state is as quick as the kernel's TCP.
const SHORT: f64 = 1.0;
/// A large one, where the wire is no limit, has more than one processor to make it.
const LARGE: f64 = 0.6;

/// The bars that this run can judge. TCP has one connection for all sizes, as ours has.
pub fn bars(run: &Run, bars: &mut Vec<Bar>) {
    let over = |network| -> (Block<'static>, Block<'static>) {
        (
            ("transfer-busy", "single", network),
            ("tcp", "single", network),
        )
    };
    for network in ["1gbit", "unshaped"] {
        let (ours, tcp) = over(network);
        for size in paper::SIZES.into_iter().filter(|&size| size <= 2048) {
            let what = format!(
                "{} over {network}, busy polling, median: of TCP's",
                units::size(size)
            );
            below(bars, what, SHORT, ratio(run, ours, tcp, size));
        }
    }
    let (ours, tcp) = over("unshaped");
    let large = ratio(run, ours, tcp, MB);
    below(
        bars,
        "1 MB over unshaped, busy polling, median: of TCP's",
        LARGE,
        large,
    );
}
