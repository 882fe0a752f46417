//! Admission at start: what the plan says of the configuration, and whether a node runs all the same.

use bumpless_config::Config;
use bumpless_plan::{Machine, Verdict, pair, report::words};
use serde_json::{Value, json};

/// Reasons that are told; the plan has the others.
const TOLD: usize = 3;

/// What the plan says of the configuration that runs.
#[derive(Clone, Debug)]
pub struct Admission {
    verdict: Verdict,
    reasons: Vec<String>,
}

impl Admission {
    /// What the plan says of `config`.
    ///
    /// # Errors
    /// The reasons of a no, unless the configuration says that it is to run all the same.
    pub fn of(config: &Config) -> Result<Self, String> {
        let verdict = pair::verdict(config, Machine::default());
        let reasons = match verdict {
            Verdict::Yes => Vec::new(),
            _ => words::reasons(&pair::plan(config, None)),
        };
        if verdict == Verdict::No && !config.plan.run_although_refused {
            return Err(refusal(&reasons));
        }
        Ok(Self { verdict, reasons })
    }

    /// Of a configuration of which the plan was not asked.
    pub const fn unplanned() -> Self {
        Self {
            verdict: Verdict::CannotSay,
            reasons: Vec::new(),
        }
    }

    /// What status says for as long as the node runs; `None` for a yes, and where a network states no bandwidth,
    /// which is a weakness of its own.
    pub fn weakness(&self) -> Option<String> {
        (self.verdict == Verdict::No).then(|| {
            format!(
                "plan: runs although the plan refuses this configuration, so states may miss their \
                 deadlines: {}; `bumpless plan` says what would help",
                told(&self.reasons)
            )
        })
    }

    /// For `bumpless.status/1`.
    pub fn json(&self) -> Value {
        json!({"verdict": self.verdict, "reasons": self.reasons})
    }
}

fn refusal(reasons: &[String]) -> String {
    format!(
        "the plan refuses this configuration: {}; ask `bumpless plan` what would help, or set \
         run_although_refused = true in [plan] to run although states may miss their deadlines",
        told(reasons)
    )
}

fn told(reasons: &[String]) -> String {
    let mut text = reasons
        .iter()
        .take(TOLD)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if reasons.len() > TOLD {
        text.push_str(&format!("; and {} more", reasons.len() - TOLD));
    }
    text
}
