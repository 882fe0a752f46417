//! The result for people, on a terminal and in a file.

use std::fmt::Write;

use super::Ending;
use super::result::{Failure, SitesResult};
use crate::evaluate::statistics::OrderStatistics;
use crate::kept::{Head, Kept};
use crate::torture::result::Outcome;

/// Everything, without a last line end.
fn text(result: &SitesResult) -> String {
    let plan = &result.planned;
    let (nodes, links, delays) = &plan.network;
    let mut text = format!(
        "bumpless {}, {}, {} processors, seed {}\n\
         left at {}, right at {}, witness at {}, field device at {}: {nodes} nodes, {links} links, delays: {delays}\n\
         there and back: {} ms between the controllers, {} to the witness, {} to the field device\n\
         heartbeat {} ms, lease {} (least: {:.2}), period {}, deadline {}; a takeover takes at most {:.1} ms\n\n  \
         {:<15} {:>5} {:>5} {:>8} {:>6}  {:>7} {:>8}  {:>9} {:>8} {:>8} {:>8}  {:>9}\n",
        result.head.version,
        result
            .head
            .host
            .kernel
            .split(" #")
            .next()
            .unwrap_or_default(),
        result.head.host.processors,
        result.seed,
        plan.nodes[0],
        plan.nodes[1],
        plan.witness,
        plan.field,
        plan.pair_ms,
        plan.to_witness_ms,
        plan.to_field_ms,
        plan.heartbeat_ms,
        plan.lease_ms,
        plan.least_lease_ms,
        plan.period_ms,
        plan.deadline_ms,
        plan.takeover_ms,
        "site ends",
        "times",
        "held",
        "stalled",
        "BROKEN",
        "writers",
        "resets",
        "promised",
        "gap p50",
        "p99",
        "longest",
        "healed ms",
    );
    for ending in Ending::ALL {
        let all: Vec<&Failure> = result
            .failures
            .iter()
            .filter(|it| it.ending == ending)
            .collect();
        if !all.is_empty() {
            let _ = writeln!(text, "  {:<15} {}", ending.name(), row(&all));
        }
    }
    for failure in result
        .failures
        .iter()
        .filter(|it| it.outcome() == Outcome::Broken)
    {
        for want in failure
            .wants
            .iter()
            .filter(|want| want.outcome == Outcome::Broken)
        {
            let _ = writeln!(
                text,
                "  BROKEN in {} ({}): {}; seen: {}",
                failure.number,
                failure.ending.name(),
                want.promised,
                want.seen
            );
        }
    }
    if let Some(error) = &result.error {
        let _ = writeln!(text, "ended early: {error}");
    }
    let (stalls, longest) = result.stalls;
    let _ = write!(
        text,
        "{} of {} sites have ended; the stall meter saw {stalls} stalls of 2 ms or more, the longest {longest:.1} ms\n{}",
        result.failures.len(),
        result.asked,
        match result.held {
            true => "no promise was broken",
            false => "promises were BROKEN",
        }
    );
    text
}

fn row(all: &[&Failure]) -> String {
    let count = |outcome| all.iter().filter(|it| it.outcome() == outcome).count();
    let gaps = OrderStatistics::new(all.iter().filter_map(|it| it.gap_ms));
    let healed = OrderStatistics::new(all.iter().filter_map(|it| it.healed_ms));
    let figure = |figure: Option<f64>| figure.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
    let writers: u64 = all
        .iter()
        .map(|it| it.writes.dual_writers + it.writes.older_epochs)
        .sum();
    let resets: u64 = all
        .iter()
        .map(|it| it.writes.resets.max(it.initial_starts))
        .sum();
    format!(
        "{:>5} {:>5} {:>8} {:>6}  {writers:>7} {resets:>8}  {:>9} {:>8} {:>8} {:>8}  {:>9}",
        all.len(),
        count(Outcome::Held),
        count(Outcome::Explained),
        count(Outcome::Broken),
        figure(all.first().map(|it| it.promised_ms)),
        figure(gaps.median()),
        figure(gaps.quantile(0.99)),
        figure(gaps.max()),
        figure(healed.median()),
    )
}

impl Kept for SitesResult {
    const SCHEMA: &'static str = "bumpless.wan-sites/1";
    const FILE: &'static str = "sites.json";

    fn head(&self) -> &Head {
        &self.head
    }

    fn held(&self) -> bool {
        self.held
    }

    /// Every site that was to end did. *Results that were kept without a word on it are asked, too.*
    fn is_complete(&self) -> bool {
        self.failures.len() == self.asked as usize
    }

    fn text(&self) -> String {
        text(self)
    }

    fn others(&self) -> Vec<(&'static str, String)> {
        vec![("table.txt", text(self))]
    }
}
