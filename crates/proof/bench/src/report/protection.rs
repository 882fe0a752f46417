//! What protection may cost, and where it stands in this run (spec/bench.md, B-31).

use super::bar::{Bar, below};
use super::transfers::{Block, cell, ratio};
use crate::peer::Kind;
use crate::result::Run;
use crate::run::cost::Cost;
use crate::run::loss::LossCase;

const OPEN: Block<'static> = ("transfer", "single", "1gbit");
/// The default.
const PROTECTED: Block<'static> = ("transfer-protected", "single", "1gbit");
const SMALL: usize = 128;
const MB: usize = 1 << 20;
/// Microseconds that protection may add to the median of a small state.
const LONGER: f64 = 8.0;

/// The bars that this run can judge.
pub fn bars(run: &Run, bars: &mut Vec<Bar>) {
    below(
        bars,
        "1 MB at 1 Gbit/s, median, protected: of open",
        1.05,
        ratio(run, PROTECTED, OPEN, MB),
    );
    let median = |block| Some(cell(run, block, SMALL, LossCase::None)?.all?.p50 as f64);
    if let (Some(protected), Some(open)) = (median(PROTECTED), median(OPEN)) {
        let longer = (protected - open) / 1e3;
        bars.push(Bar {
            what: "128 B at 1 Gbit/s, median, protected: longer than open (us)".into(),
            bar: format!("{LONGER:.1}"),
            measured: format!("{longer:.1}"),
            held: longer <= LONGER,
        });
    }
    let ours = Kind::ALL.into_iter().filter(|k| k.is_protected_transfer());
    for kind in ours {
        for theirs in ["tcp-tls", "quinn"] {
            let costs = cpu(run, kind.name()).zip(cpu(run, theirs));
            let what = format!("processor time at 1 Gbit/s: {} of {theirs}'s", kind.name());
            below(bars, what, 1.0, costs.map(|(own, other)| own / other));
        }
    }
}

/// Processor time for a gigabyte in states of 1 MB, at both ends, seconds.
fn cpu(run: &Run, peer: &str) -> Option<f64> {
    let of = |cost: &&Cost| cost.peer == peer && cost.size == MB && cost.error.is_none();
    let total = run.costs.iter().find(of)?.cpu_s_per_gb.iter().sum::<f64>();
    (total > 0.0).then_some(total)
}
