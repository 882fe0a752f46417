//! `bumpless impact --patterns`: every policy under random loads.

use std::process::ExitCode;

use bumpless_base::Duration;
use bumpless_bench::run::progress::left;
use bumpless_impact::machine::ESP32;
use bumpless_impact::patterns::Round;
use bumpless_impact::policy::Policy;
use bumpless_impact::processor::Tally;
use serde_json::{Value, json};

use super::{SCHEMA, progress_line};
use crate::output::{self, Outcome};

/// What a policy did under all patterns.
#[derive(Default)]
struct Sum {
    late_patterns: u64,
    late_jobs: u64,
    worst: Duration,
    sent: u64,
    handled: u64,
}

impl Sum {
    fn add(&mut self, tally: &Tally) {
        self.late_patterns += u64::from(tally.late > 0);
        self.late_jobs += tally.late;
        self.worst = self.worst.max(tally.worst);
        self.sent += tally.sent;
        self.handled += tally.handled;
    }
}

/// Tries every policy under `count` loads from `seed` on.
pub fn try_all(count: u64, seed: u64, as_json: bool) -> Outcome {
    let mut sums: [Sum; 6] = Default::default();
    let mut broken = Vec::new();
    let mut line = progress_line();
    for at in 0..count {
        line.show(|spent| {
            let rest = spent.as_secs_f64() * (count as f64 / at.max(1) as f64 - 1.0);
            format!("pattern {at} of {count}, {}", left(rest))
        });
        let round = Round::run(ESP32, seed.wrapping_add(at));
        broken.extend(round.broken());
        for (sum, tally) in sums.iter_mut().zip(&round.tallies) {
            sum.add(tally);
        }
    }
    line.end();
    let named = || Policy::ALL.iter().map(|policy| policy.name()).zip(&sums);
    if as_json {
        let policies = named().map(|(name, sum)| {
            json!({
                "name": name,
                "late_patterns": sum.late_patterns,
                "late_jobs": sum.late_jobs,
                "worst_ns": sum.worst.as_nanos(),
                "sent": sum.sent,
                "handled": sum.handled,
            })
        });
        let policies: Vec<Value> = policies.collect();
        output::print_line(json!({
            "schema": SCHEMA, "kind": "patterns", "patterns": count, "broken": broken, "policies": policies,
        }));
    } else {
        output::print_line(format_args!(
            "{count} random loads on the model of an ESP32\n{:<12}{:>16}{:>12}{:>14}{:>14}{:>16}",
            "policy", "late patterns", "late jobs", "worst", "sent", "handed on"
        ));
        for (name, sum) in named() {
            output::print_line(format_args!(
                "{name:<12}{:>16}{:>12}{:>14}{:>14}{:>16}",
                sum.late_patterns,
                sum.late_jobs,
                sum.worst.to_string(),
                sum.sent,
                sum.handled
            ));
        }
        for line in &broken {
            output::print_line(format_args!("slack: {line}"));
        }
    }
    Ok(ExitCode::from(u8::from(!broken.is_empty())))
}
