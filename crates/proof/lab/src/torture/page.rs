//! The result as one page that needs nothing else.

use std::fmt::Write;

use bumpless_svg::{Anchor, Svg, escape};

use super::result::{CaseResult, Outcome, Said, Soak, TortureResult, Trial};
use super::table;
use crate::evaluate::statistics::OrderStatistics;

const STYLE: &str = include_str!("../report/style.css");
const OWN_STYLE: &str = include_str!("page.css");
/// Broken trials of a case whose events are shown.
const EVENTS_OF_MAX: usize = 2;

/// The page.
pub fn page(result: &TortureResult) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Bumpless torture</title>\n<style>\n{STYLE}{OWN_STYLE}</style></head><body><main>\n"
    );
    verdict(&mut page, result);
    if !result.cases.is_empty() {
        let _ = writeln!(
            page,
            "<section class=\"card\"><h3>Longest time between two accepted outputs, each run</h3>\
             <p>Milliseconds on the plant's own clock, logarithmic.</p>\
             <div class=\"key\"><span><i class=\"held\"></i>held</span>\
             <span><i class=\"explained\"></i>missed by no more than stalls of the machine explain</span>\
             <span><i class=\"broken\"></i>a promise was broken</span></div>\
             <div class=\"scroll\">{}</div></section>",
            gaps(result)
        );
        matrix(&mut page, result);
        result
            .cases
            .iter()
            .for_each(|case| details(&mut page, case));
    }
    if let Some(soak) = &result.soak {
        self::soak(&mut page, soak);
    }
    footer(&mut page, result);
    page.push_str("</main></body></html>");
    page
}

fn verdict(page: &mut String, result: &TortureResult) {
    let (class, headline) = match result.held {
        true => ("good", "No promise was broken"),
        false => ("bad", "Promises were broken"),
    };
    let [held, explained, broken] = result.counts();
    let resets: u64 = result
        .cases
        .iter()
        .map(|case| case.sum(Trial::resets))
        .sum();
    let early = if result.interrupted {
        " The run was ended early."
    } else {
        ""
    };
    let _ = writeln!(
        page,
        "<section class=\"verdict {class}\"><h1>{headline}</h1><p>{} cases: {held} runs held, \
         {explained} missed a limit by no more than stalls of the machine explain, {broken} broke a promise; \
         {resets} resets of the process.{early}</p></section>",
        result.cases.len()
    );
}

const fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Held => "held",
        Outcome::Explained => "explained",
        Outcome::Broken => "broken",
    }
}

/// A row of dots for each case.
fn gaps(result: &TortureResult) -> String {
    const LEFT: f64 = 170.0;
    const WIDTH: f64 = 1080.0;
    const ROW: f64 = 19.0;
    const TOP: f64 = 26.0;
    let x = |ms: f64| LEFT + (ms.clamp(5.0, 5_000.0) / 5.0).log10() / 3.0 * (WIDTH - LEFT - 20.0);
    let bottom = TOP + ROW * result.cases.len() as f64;
    let mut svg = Svg::default();
    for ms in [
        5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0,
    ] {
        svg.line("grid", (x(ms), TOP - 6.0), (x(ms), bottom));
        svg.text("", (x(ms), TOP - 10.0), Anchor::Middle, &format!("{ms:.0}"));
    }
    for (row, case) in result.cases.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        svg.text("name", (LEFT - 12.0, y + 13.0), Anchor::End, &case.id);
        let mut trials: Vec<&Trial> = case.trials.iter().collect();
        trials.sort_by_key(|trial| trial.outcome());
        for trial in trials {
            let Some(ms) = trial.gap_ms else { continue };
            // Runs lie side by side, so that twenty alike do not look like one.
            let shift = f64::from(trial.number % 5) * 2.0;
            let tip = format!(
                "{} run {}: {ms:.1} ms. {}",
                case.id, trial.number, trial.what
            );
            let class = format!("dot {}", class(trial.outcome()));
            svg.rect(&class, (x(ms) - 3.0, y + 3.0 + shift), (6.0, 6.0), &tip);
        }
    }
    svg.finish(WIDTH, bottom + 6.0, "Longest gap of each run, by case")
}

fn matrix(page: &mut String, result: &TortureResult) {
    page.push_str(
        "<h2>The matrix</h2>\n<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>Case</th>\
         <th>What is done</th><th>Runs</th><th>Held</th><th>Stalled</th><th>Broken</th><th>Resets</th>\
         <th>Second writers</th><th>Started anew</th><th>Gap p50, ms</th><th>longest</th>\
         <th>Promised beside</th></tr></thead><tbody>\n",
    );
    for case in &result.cases {
        let gaps = OrderStatistics::new(case.trials.iter().filter_map(|trial| trial.gap_ms));
        let gap = |ms: Option<f64>| ms.map_or("-".into(), |ms| format!("{ms:.1}"));
        let writers = case.sum(|trial| trial.writes.dual_writers + trial.writes.older_epochs);
        let bad = |n: u64| if n > 0 { "n bad" } else { "n" };
        let stalled = case.count(Outcome::Explained);
        let (broken, resets) = (case.count(Outcome::Broken), case.sum(Trial::resets));
        let _ = writeln!(
            page,
            "<tr><th>{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n{}\">{stalled}</td><td class=\"{}\">{broken}</td><td class=\"{}\">{resets}</td>\
             <td class=\"{}\">{writers}</td><td class=\"{}\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td>{}</td></tr>",
            escape(&case.id),
            escape(&case.title),
            case.trials.len(),
            case.count(Outcome::Held),
            if stalled > 0 { " mark" } else { "" },
            bad(broken as u64),
            bad(resets),
            bad(writers),
            bad(case.started_anew),
            case.started_anew,
            gap(gaps.median()),
            gap(gaps.max()),
            escape(&case.promised),
        );
    }
    page.push_str("</tbody></table></div>\n<h2>What was seen, case by case</h2>\n");
}

fn details(page: &mut String, case: &CaseResult) {
    let _ = writeln!(
        page,
        "<details{}><summary>{}: {}</summary>",
        if case.held() { "" } else { " open" },
        escape(&case.id),
        escape(&case.title)
    );
    if let Some(error) = &case.error {
        let _ = writeln!(page, "<p>Ended early: {}</p>", escape(error));
    }
    promises(page, case);
    words(page, &case.said);
    let broken = case.trials.iter().filter(|trial| !trial.events.is_empty());
    for trial in broken.take(EVENTS_OF_MAX) {
        let events: Vec<String> = trial.events.iter().map(|event| escape(event)).collect();
        let _ = writeln!(
            page,
            "<details><summary>Events of run {}</summary><p><code>{}</code></p></details>",
            trial.number,
            events.join("<br>")
        );
    }
    page.push_str("</details>\n");
}

/// Each promise with how often it held and the worst that was seen.
fn promises(page: &mut String, case: &CaseResult) {
    page.push_str(
        "<table><thead><tr><th>Promise</th><th>Held</th><th>Stalled</th><th>Broken</th>\
         <th>Seen, for example</th></tr></thead><tbody>\n",
    );
    let Some(first) = case.trials.first() else {
        page.push_str("</tbody></table>\n");
        return;
    };
    for id in first.wants.iter().map(|want| &want.id) {
        let wants = case.trials.iter().flat_map(|trial| &trial.wants);
        let wants: Vec<_> = wants.filter(|want| want.id == *id).collect();
        let count = |outcome| wants.iter().filter(|want| want.outcome == outcome).count();
        let broken = count(Outcome::Broken);
        let Some(worst) = wants.iter().max_by_key(|want| want.outcome) else {
            continue;
        };
        let _ = writeln!(
            page,
            "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{broken}</td><td>{}</td></tr>",
            if broken > 0 { " class=\"broken\"" } else { "" },
            escape(&worst.promised),
            count(Outcome::Held),
            count(Outcome::Explained),
            escape(&worst.seen)
        );
    }
    page.push_str("</tbody></table>\n");
}

/// Everything that nodes said while the faults lasted.
fn words(page: &mut String, said: &[Said]) {
    if said.is_empty() {
        return;
    }
    page.push_str(
        "<details><summary>What status said meanwhile</summary><table><thead><tr><th>Node</th>\
         <th>Role</th><th>Redundancy</th><th>Cause</th><th>Down</th><th>Weaknesses that are not there \
         otherwise</th></tr></thead><tbody>\n",
    );
    for one in said {
        let writes = if one.writes_outputs {
            ", writes outputs"
        } else {
            ""
        };
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}{writes}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&one.node),
            escape(&one.role),
            escape(&one.redundancy),
            escape(&one.cause),
            escape(&one.links_down.join(", ")),
            escape(&one.weaknesses.join("; "))
        );
    }
    page.push_str("</tbody></table></details>\n");
}

fn soak(page: &mut String, soak: &Soak) {
    let mut text = String::new();
    table::soak(&mut text, soak);
    let _ = writeln!(
        page,
        "<section class=\"card\"><h3>The long run</h3><pre>{}</pre></section>",
        escape(text.trim_matches('\n'))
    );
}

fn footer(page: &mut String, result: &TortureResult) {
    let (count, longest) = result.stalls;
    let frames = &result.frames;
    let _ = writeln!(
        page,
        "<footer><p>Bumpless {}, {}, {} processors, seed {}, {:.0} s. Nodes, witnesses and plant are \
         separate processes in network namespaces of one machine; the networks A and B go through a \
         switch in user space. It passed {} frames, cut {}, lost {}, and dropped {} as too long.</p>\
         <p>The stall meter saw {count} stalls of 2 ms or more, the longest {longest:.1} ms. No figure \
         has a stall taken off; a reset or a second writer is never excused by one.</p></footer>",
        escape(&result.version),
        escape(&result.kernel),
        result.processors,
        result.seed,
        result.seconds,
        frames.passed,
        frames.cut,
        frames.lost,
        frames.too_long,
    );
}

#[cfg(test)]
mod tests;
