//! What a test of a program is said to have found, to people and to programs.

use bumpless_base::Duration;
use bumpless_host::Subject;
use bumpless_host::kit::Report;
use bumpless_host::subject::HostKind;
use serde_json::{Value, json};

use super::figures::{spread, times};

/// Least that the configuration takes as `execute_limit_ms`.
const LEAST_LIMIT: Duration = Duration::from_micros(100);

/// A test and what it found.
pub struct Verdict<'a> {
    /// Of which program.
    pub subject: &'a Subject,
    /// What it found.
    pub report: &'a Report,
    /// What was drawn.
    pub seed: u64,
}

impl Verdict<'_> {
    /// For programs: `bumpless.program-test/1`.
    pub fn as_json(&self) -> Value {
        let report = self.report;
        let hindrances = report.hindrances.iter().map(|hindrance| {
            json!({
                "name": hindrance.name(),
                "cycle": hindrance.cycle(),
                "output": hindrance.difference().map(|difference| difference.output),
                "what": hindrance.to_string(),
            })
        });
        let notes = report.notes.iter();
        let notes = notes.map(|note| json!({"name": note.name(), "what": note.to_string()}));
        json!({
            "schema": "bumpless.program-test/1",
            "ok": report.can_be_redundant(),
            "file": self.subject.file().display().to_string(),
            "kind": self.subject.host().name(),
            "sha256": self.subject.sha256().to_string(),
            "inputs": report.inputs,
            "outputs": report.outputs,
            "retained": self.subject.retained().iter().map(|it| json!({
                "name": it.name,
                "type": it.of,
            })).collect::<Vec<_>>(),
            "period_ns": self.subject.period().as_nanos(),
            "seed": self.seed,
            "cycles": report.cycles,
            "moves": report.moves,
            "hindrances": hindrances.collect::<Vec<_>>(),
            "notes": notes.collect::<Vec<_>>(),
            "execute_ns": spread(report.executing),
            "save_ns": spread(report.saving),
            "state_bytes": spread(report.state_bytes),
            "changed_share": {"mean": report.changed.mean, "max": report.changed.max},
            "configuration": self.configuration(),
            "interrupted": report.interrupted,
        })
    }

    /// The fields of its application in a configuration, from which `plan` reckons.
    fn configuration(&self) -> Value {
        let mut fields = json!({
            "kind": self.subject.host().name(),
            "file": self.subject.file().display().to_string(),
            "period_ms": self.subject.period().as_millis_f64(),
            "state_max": self.report.state_bytes.max,
        });
        if let Some(limit) = self.limit() {
            fields["execute_limit_ms"] = limit.into();
        }
        if let Some(engine) = self.subject.engine() {
            fields["engine"] = engine.into();
        }
        if let Some(most) = self.subject.memory_max() {
            fields["memory_max"] = most.into();
        }
        if let Some(started) = self.subject.started()
            && self.subject.host() == HostKind::Process
        {
            if !started.command.is_empty() {
                fields["command"] = started.command.clone().into();
            }
            if !started.arguments.is_empty() {
                fields["arguments"] = started.arguments.clone().into();
            }
        }
        fields
    }

    /// The limit of a cycle in milliseconds, if the default of half the period is too little for what was seen.
    fn limit(&self) -> Option<f64> {
        let period = self.subject.period().as_nanos();
        let wanted = (self.report.executing.max * 2).max(LEAST_LIMIT.as_nanos());
        (wanted > period / 2).then(|| (wanted.min(period) as f64 / 1e5).ceil() / 10.0)
    }

    /// For people.
    pub fn as_text(&self) -> String {
        let report = self.report;
        let verdict = match (report.can_be_redundant(), report.hindrances.is_empty()) {
            (true, _) => "can be made redundant",
            (false, true) => "nothing found until it was interrupted",
            (false, false) => "cannot be made redundant",
        };
        let mut lines = vec![format!("{}: {verdict}", self.subject.file().display())];
        let hindrances = report.hindrances.iter();
        lines.extend(hindrances.map(|hindrance| format!("  hindered: {hindrance}")));
        lines.extend(report.notes.iter().map(|note| format!("  note: {note}")));
        lines.push(format!(
            "  tested    {} cycles with seed {}, the state moved {} times, to new instances and to used ones",
            report.cycles, self.seed, report.moves
        ));
        if report.cycles > 0 {
            lines.extend(self.measured());
        }
        let retained = self.subject.retained().iter();
        let retained: Vec<_> = retained
            .map(|it| format!("{} {}", it.name, it.of))
            .collect();
        if !retained.is_empty() {
            lines.push(format!("  retained  {}", retained.join(", ")));
        }
        lines.join("\n")
    }

    fn measured(&self) -> Vec<String> {
        let report = self.report;
        let fields = self.configuration();
        let fields = fields.as_object().into_iter().flatten();
        let fields: Vec<_> = fields
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        vec![
            format!("  a cycle   {}", times(report.executing)),
            format!(
                "  state     {} bytes at the median, {} at most; saving takes {}",
                report.state_bytes.p50,
                report.state_bytes.max,
                times(report.saving)
            ),
            format!(
                "  changed   {:.1} % of it in a cycle, {:.1} % at most",
                report.changed.mean * 100.0,
                report.changed.max * 100.0
            ),
            format!("  to plan   {}", fields.join(", ")),
        ]
    }
}
