//! What missed its time because this machine stood still is told from the rest (spec/torture.md, X-15): each miss on its own.

use std::collections::BTreeMap;

use bumpless_lab::demo::meter::Meter;
use bumpless_lab::runlog::Stall;
use bumpless_net_linux::Clock;
use serde_json::Value;

use super::site::Site;

/// Three periods of 50 ms: a transfer that a stall hits fails a deadline later, and its word comes after that.
const BEFORE_NS: u64 = 150_000_000;
/// A third of the time that a state has (25 ms): a shorter stall alone makes none late.
const ENOUGH_NS: u64 = 8_000_000;

/// Looks for stalls on each processor, beside the nodes and without them.
pub struct Watch {
    meter: Meter,
    from_ns: u64,
}

/// What was seen of both nodes and of the machine meanwhile.
pub struct Watched {
    stalls: Vec<Stall>,
    /// What the nodes have logged that should not have happened.
    missed: Vec<Value>,
}

impl Watch {
    pub fn start() -> Self {
        Self {
            meter: Meter::start().unwrap(),
            from_ns: Clock.now().as_nanos(),
        }
    }

    /// Ends it. States that did not reach the backup in time and networks that were called down count as missed; what a plant
    /// does that is no real-time process does not.
    pub fn end(self, site: &Site) -> Watched {
        let stalls = self.meter.end();
        let events = ["left", "right"].map(|node| site.events(node));
        let since = |line: &Value| line["time_ns"].as_u64() >= Some(self.from_ns);
        let is_missed = |line: &Value| match line["event"].as_str() {
            Some("transfer") => line["outcome"] == "failed",
            Some("link") => line["up"] == false,
            _ => false,
        };
        let all = events.into_iter().flatten();
        let missed = all.filter(|line| since(line) && is_missed(line)).collect();
        Watched { stalls, missed }
    }
}

impl Watched {
    /// Those of the missed ones before which no processor stood still for long enough.
    fn unexplained(&self) -> Vec<&Value> {
        let explained = |line: &&Value| {
            let at = line["time_ns"].as_u64().unwrap();
            let inside = |it: &Stall| {
                let from = it.from_ns().max(at.saturating_sub(BEFORE_NS));
                it.time_ns.min(at).saturating_sub(from)
            };
            let mut stood_still = BTreeMap::new();
            for stall in &self.stalls {
                *stood_still.entry(&stall.seen_by).or_insert(0) += inside(stall);
            }
            stood_still.into_values().any(|sum| sum >= ENOUGH_NS)
        };
        let missed = self.missed.iter();
        missed.filter(|line| !explained(line)).collect()
    }

    /// Nothing was missed but for stalls.
    pub fn judge(&self) {
        let longest = self.stalls.iter().map(|it| it.length_ns).max();
        let unexplained = self.unexplained();
        println!(
            "missed: {}, {} of them without a stall; {} stalls of the machine, the longest {:.1} ms",
            self.missed.len(),
            unexplained.len(),
            self.stalls.len(),
            longest.unwrap_or(0) as f64 / 1e6
        );
        assert!(unexplained.is_empty(), "{unexplained:#?}");
    }
}
