//! `bumpless plan OLD NEW`: in which order a running pair's applications can change.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use bumpless_config::{Application, Change, Config, ENVELOPE_MAX, Problem};
use bumpless_plan::change::{Order, Step, StepKind};
use bumpless_plan::pair::{PairChange, change};
use bumpless_plan::{Machine, Verdict};
use serde_json::{Value, json};

use crate::output::{self, Outcome};

/// Says how to get from the configuration in `old` to the one in `new`. Exit status 1 where no way is known on which every state is in
/// time (P-43).
pub fn run(old: &Path, new: &Path, machine: Machine, as_json: bool) -> Outcome {
    let before = output::load(old, as_json)?;
    let after = output::load(new, as_json)?;
    let change = change(&before, &after, machine);
    let running = Change::between(&before, &after, &new.display().to_string());
    let together = together(&after, &change, &running);
    if as_json {
        output::print_line(in_json(&change, &running, together));
    } else {
        let mut told = text((&before, &after), (old, new), &change);
        if change.order.is_some() {
            told += &while_running(&after, &change, &running, together);
        }
        output::print_line(told.trim_end());
    }
    let in_time = match change.order {
        Some(Order::Steps { .. }) => true,
        Some(Order::Atomic { .. }) => together,
        None => false,
    };
    Ok(ExitCode::from(u8::from(!in_time)))
}

/// Whether `bumpless apply` has those that stay change at one moment.
fn together(after: &Config, change: &PairChange, running: &Result<Change, Vec<Problem>>) -> bool {
    let only_so = matches!(change.order, Some(Order::Atomic { .. }));
    let several = running.as_ref().is_ok_and(|it| it.tuned.len() > 1);
    several && (only_so || after.change.together)
}

fn in_json(change: &PairChange, running: &Result<Change, Vec<Problem>>, together: bool) -> Value {
    let problems = running.as_ref().err().into_iter().flatten();
    let problems = problems.map(
        |problem| json!({"field": problem.field, "wrong": problem.wrong, "right": problem.right}),
    );
    json!({
        "schema": "bumpless.plan.change/1",
        "old": change.verdicts.0,
        "new": change.verdicts.1,
        "restart": change.restart,
        "order": change.order,
        "apply": {
            "possible": running.is_ok(),
            "together": together,
            "problems": problems.collect::<Vec<_>>(),
        },
    })
}

fn text(
    (before, after): (&Config, &Config),
    (old, new): (&Path, &Path),
    change: &PairChange,
) -> String {
    let mut text = String::new();
    let Some(order) = &change.order else {
        return no_order((old, new), change);
    };
    let steps = match order {
        Order::Steps { steps } if steps.is_empty() => {
            return format!("{}: the networks carry the same\n", after.pair);
        }
        Order::Steps { steps } => {
            let _ = writeln!(
                text,
                "{}: one after another; after each step every state is in time",
                after.pair
            );
            steps
        }
        Order::Atomic { steps, exhaustive } => {
            let tried = if *exhaustive {
                "every order"
            } else {
                "every order that was tried"
            };
            let _ = writeln!(
                text,
                "{}: only all at once; in {tried}, some state would be late on the way",
                after.pair
            );
            steps
        }
    };
    for (number, step) in steps.iter().enumerate() {
        let _ = writeln!(text, "  {}. {}", number + 1, line(step, before, after));
    }
    text
}

/// What `bumpless apply` makes of the change.
fn while_running(
    after: &Config,
    change: &PairChange,
    running: &Result<Change, Vec<Problem>>,
    together: bool,
) -> String {
    let mut text = String::new();
    match running {
        Err(problems) => {
            let _ = writeln!(
                text,
                "bumpless apply refuses it; end both nodes and start them with the new file, or leave as it is:"
            );
            for problem in problems {
                let _ = writeln!(text, "  {}: {}", problem.field, problem.wrong);
            }
        }
        Ok(tuned) => {
            if together {
                let _ = writeln!(
                    text,
                    "bumpless apply has those that stay change together: all of them before their next cycle, or none"
                );
            }
            let Some(Order::Steps { steps }) = &change.order else {
                return text;
            };
            let names = tuned
                .tuned
                .iter()
                .map(|tuned| &after.applications[tuned.to].name);
            let others = names.filter(|name| steps.iter().all(|step| step.channel != **name));
            let others: Vec<&str> = others.map(String::as_str).collect();
            if !others.is_empty() {
                let _ = writeln!(text, "other settings of {} change", others.join(", "));
            } else if tuned.is_empty() {
                let _ = writeln!(text, "the applications are the same");
            }
        }
    }
    text
}

fn no_order((old, new): (&Path, &Path), change: &PairChange) -> String {
    let mut text = String::new();
    for (path, verdict) in [(old, change.verdicts.0), (new, change.verdicts.1)] {
        let answer = match verdict {
            Verdict::Yes => continue,
            Verdict::No => "is refused by the plan",
            Verdict::CannotSay => "leaves open what the plan would need to know",
        };
        let path = path.display();
        let _ = writeln!(text, "{path} {answer}: see bumpless plan {path}");
    }
    if !change.restart.is_empty() {
        let sections: Vec<String> = change
            .restart
            .iter()
            .map(|name| format!("[{name}]"))
            .collect();
        let _ = writeln!(
            text,
            "{} cannot change while the pair runs: end both nodes, copy the file to both, start them",
            sections.join(", ")
        );
    }
    text
}

fn line(step: &Step, before: &Config, after: &Config) -> String {
    let find = |config: &'_ Config| -> Option<Application> {
        let found = config
            .applications
            .iter()
            .find(|app| app.name == step.channel);
        found.cloned()
    };
    let name = &step.channel;
    let what = match step.kind {
        StepKind::Remove => return format!("{name} ends, and its buffers are freed"),
        StepKind::Add => return format!("{name} begins"),
        StepKind::Lighten => "asks less",
        StepKind::Alter => "asks less in one way and more in another",
        StepKind::Burden => "asks more",
    };
    match (find(before), find(after)) {
        (Some(old), Some(new)) => format!(
            "{name} {what}: {}",
            differences((before, &old), (after, &new)).join(", ")
        ),
        _ => format!("{name} {what}"),
    }
}

fn differences(
    (before, old): (&Config, &Application),
    (after, new): (&Config, &Application),
) -> Vec<String> {
    let millis = |app: &Application| [app.period, app.deadline].map(|time| time.as_millis_f64());
    let ([old_period, old_deadline], [new_period, new_deadline]) = (millis(old), millis(new));
    let pairs = [
        ("state", state(old), state(new), " B"),
        (
            "period",
            old_period.to_string(),
            new_period.to_string(),
            " ms",
        ),
        (
            "deadline",
            old_deadline.to_string(),
            new_deadline.to_string(),
            " ms",
        ),
        ("networks", networks(before, old), networks(after, new), ""),
        (
            "distribution",
            format!("{:?}", old.distribution).to_lowercase(),
            format!("{:?}", new.distribution).to_lowercase(),
            "",
        ),
        ("retransmissions", budget(old), budget(new), ""),
    ];
    let differing = pairs.into_iter().filter(|(_, old, new, _)| old != new);
    differing
        .map(|(what, old, new, unit)| format!("{what} {old} to {new}{unit}"))
        .collect()
}

/// The bytes of a state that the application gives it.
fn state(app: &Application) -> String {
    let added = ENVELOPE_MAX + app.security.overhead();
    app.state_max.saturating_sub(added).to_string()
}

fn networks(config: &Config, app: &Application) -> String {
    let names = app
        .networks
        .iter()
        .map(|link| config.networks[usize::from(link.0)].name.as_str());
    names.collect::<Vec<_>>().join(" and ")
}

fn budget(app: &Application) -> String {
    app.retransmissions
        .map_or_else(|| "as needed".into(), |count| count.to_string())
}
