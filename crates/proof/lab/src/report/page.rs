//! The page around the plots: verdict, key figures, promises.

use std::fmt::Write;

use super::panel::Panel;
use super::plots::{self, Plot};
use crate::evaluate::{Limits, Promise, deviations, longest_gap, not_judged};
use crate::runlog::{EventKind, PhaseKind, Run, TransferOutcome};
use bumpless_svg::escape;

/// Where and with what a run was made.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Version of the program.
    pub version: String,
    /// Operating system and kernel.
    pub kernel: String,
    /// Processors that the run could use.
    pub processors: usize,
}

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn render(run: &Run, promises: &[Promise], limits: &Limits, about: &About) -> String {
    let mut page = String::new();
    let broken = promises.iter().filter(|promise| !promise.held).count();
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Bumpless demonstration: {}</title>\n<style>\n{STYLE}</style></head><body><main>\n",
        if broken == 0 {
            "every promise held"
        } else {
            "promises broken"
        }
    );
    verdict(&mut page, run, promises);
    tiles(&mut page, run);
    page.push_str("<h2>What happened</h2>\n");
    let names = Panel::phase_names(run, plots::extent(run));
    for plot in plots::all(run, limits) {
        card(&mut page, &plot, &names);
    }
    page.push_str("<h2>What was promised, and what was seen</h2>\n");
    table(&mut page, run, promises);
    footer(&mut page, run, about);
    page.push_str("</main></body></html>\n");
    page
}

/// Broken promises that the headline names at most.
const NAMED_MAX: usize = 6;

fn verdict(page: &mut String, run: &Run, promises: &[Promise]) {
    let broken: Vec<_> = promises.iter().filter(|promise| !promise.held).collect();
    let (class, headline) = match broken.len() {
        0 => ("good", format!("All {} promises held", promises.len())),
        1 => (
            "bad",
            format!("1 of {} promises was broken", promises.len()),
        ),
        n => (
            "bad",
            format!("{n} of {} promises were broken", promises.len()),
        ),
    };
    let _ = writeln!(
        page,
        "<section class=\"verdict {class}\"><h1>{headline}</h1>"
    );
    if broken.is_empty() {
        let what = match &run.program {
            None => "kept a four-tank process under control".into(),
            Some(program) => format!("went on with {}", escape(&program.file)),
        };
        let _ = write!(
            page,
            "<p>A pair of controllers {what} while its networks lost \
             packets, one network was cut, the primary was killed, came back, handed over on order, \
             and was cut off from its partner.</p>",
        );
    } else {
        page.push_str("<ul>");
        for promise in broken.iter().take(NAMED_MAX) {
            let (id, seen) = (escape(&promise.id), escape(&promise.seen));
            let _ = writeln!(page, "<li><a href=\"#{id}\">{id}</a>: {seen}</li>");
        }
        page.push_str("</ul>");
    }
    page.push_str("</section>\n");
}

/// A whole number with its thousands set apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn tile(page: &mut String, figure: &str, meaning: &str) {
    let _ = writeln!(
        page,
        "<div class=\"tile\"><b>{}</b><span>{}</span></div>",
        escape(figure),
        escape(meaning)
    );
}

fn tiles(page: &mut String, run: &Run) {
    page.push_str("<section class=\"tiles\">\n");
    let gap = |kind| {
        let phase = run.phase(kind)?;
        Some(longest_gap(run, phase.from_ns, phase.to_ns)?.length_ns() as f64 / 1e6)
    };
    if let Some(ms) = gap(PhaseKind::Kill) {
        tile(
            page,
            &format!("{ms:.1} ms"),
            "longest time without output when the primary was killed",
        );
    }
    if let Some(ms) = gap(PhaseKind::Switchover) {
        tile(
            page,
            &format!("{ms:.1} ms"),
            "longest time without output at the ordered switchover",
        );
    }
    let (mut safe, mut failed) = (0u64, 0u64);
    for event in &run.events {
        if let EventKind::Transfer { outcome, .. } = event.kind {
            let in_lossy = run.phases.iter().any(|phase| {
                use PhaseKind::{Bursts, CutOne, Loss, Normal};
                phase.contains(event.time_ns)
                    && matches!(phase.kind, Normal | Loss | Bursts | CutOne)
            });
            match outcome {
                TransferOutcome::Safe if in_lossy => safe += 1,
                TransferOutcome::Failed if in_lossy => failed += 1,
                _ => {}
            }
        }
    }
    let meaning =
        "states that missed the backup in normal running, loss, bursts and with network A cut";
    tile(
        page,
        &format!("{} of {}", grouped(failed), grouped(safe + failed)),
        meaning,
    );
    process_tile(page, run);
    if run.injected > 0 {
        tile(
            page,
            &grouped(run.injected),
            "packets that the fault driver took away",
        );
    }
    page.push_str("</section>\n");
}

/// What became of the process, or of the outputs where nobody knows the process.
fn process_tile(page: &mut String, run: &Run) {
    if let Some(program) = &run.program {
        let differing = program.compared.iter().filter(|it| it.differs.is_some());
        let (differing, all) = (differing.count() as u64, program.compared.len() as u64);
        return tile(
            page,
            &format!("{} of {}", grouped(differing), grouped(all)),
            "cycles whose outputs differ from those of the program when it runs alone",
        );
    }
    let (from, to) = plots::extent(run);
    let farthest = deviations(run, from, to)
        .into_iter()
        .map(|(_, mm)| mm)
        .fold(0.0, f64::max);
    tile(
        page,
        &format!("{farthest:.2} mm"),
        "largest difference of any level from a run without faults",
    );
}

fn card(page: &mut String, plot: &Plot, names: &str) {
    let _ = writeln!(
        page,
        "<section class=\"card\"><h3>{}</h3><p>{}</p>",
        escape(plot.heading),
        escape(&plot.note)
    );
    if !plot.key.is_empty() {
        page.push_str("<div class=\"key\">");
        for (class, meaning) in &plot.key {
            let _ = write!(
                page,
                "<span><i class=\"{class}\"></i>{}</span>",
                escape(meaning)
            );
        }
        page.push_str("</div>\n");
    }
    let _ = writeln!(
        page,
        "<div class=\"scroll\">{names}{}</div></section>",
        plot.svg
    );
}

fn table(page: &mut String, run: &Run, promises: &[Promise]) {
    page.push_str(
        "<table><thead><tr><th>Held</th><th>Promised</th><th>Seen</th></tr></thead><tbody>\n",
    );
    let groups = std::iter::once((None, "the whole run")).chain(
        run.phases
            .iter()
            .map(|phase| (Some(phase.kind.id()), phase.kind.title())),
    );
    for (id, title) in groups {
        let mut rows = promises
            .iter()
            .filter(|promise| promise.phase == id)
            .peekable();
        if rows.peek().is_some() {
            let _ = writeln!(page, "<tr><th colspan=\"3\">{}</th></tr>", escape(title));
        }
        for promise in rows {
            let (row, cell, word) = match promise.held {
                true => ("", "yes", "✓ held"),
                false => (" class=\"broken\"", "no", "✗ broken"),
            };
            let _ = writeln!(
                page,
                "<tr{row} id=\"{}\"><td class=\"held {cell}\">{word}</td>\
                 <td>{}</td><td data-label=\"Seen\">{}</td></tr>",
                escape(&promise.id),
                escape(&promise.promised),
                escape(&promise.seen)
            );
        }
    }
    page.push_str("</tbody></table>\n");
    unjudged(page, run);
}

/// What of the tank's promises nobody can tell of a user's program.
fn unjudged(page: &mut String, run: &Run) {
    let without = not_judged(run);
    if without.is_empty() {
        return;
    }
    let _ = writeln!(
        page,
        "<h2>What was not judged</h2>\n<p>{} promises that the demonstration judges with its own tanks are in \
         nobody's sight with this program, and count neither as held nor as broken.</p>\n\
         <table><thead><tr><th>Not judged</th><th>Why</th></tr></thead><tbody>",
        without.len()
    );
    for one in &without {
        let (id, promised) = (escape(&one.id), escape(one.promised));
        let why = escape(one.why);
        let _ = writeln!(
            page,
            "<tr><td>{id}: {promised}</td><td data-label=\"Why\">{why}</td></tr>"
        );
    }
    page.push_str("</tbody></table>\n");
}

fn footer(page: &mut String, run: &Run, about: &About) {
    let (from, to) = plots::extent(run);
    let stalled = run.stalled_ns(from, to) as f64 / 1e6;
    let longest = run
        .stalls
        .iter()
        .map(|stall| stall.length_ns)
        .max()
        .unwrap_or(0) as f64
        / 1e6;
    let _ = write!(
        page,
        "<footer><p>Bumpless {}, {}, {} processors, everything on one machine: plant, one witness per \
         network and both controllers are separate processes; two networks are loopback addresses; \
         faults are made by a driver that the product's code does not know.</p>\n\
         <p>In these {:.0} s, threads that were due did not run for {stalled:.1} ms in all (stalls of \
         over 2 ms, {} reports by the stall meter and the nodes, the longest {longest:.1} ms). No figure has \
         a stall taken off. Where one excuses something, the table says so.</p></footer>\n",
        escape(&about.version),
        escape(&about.kernel),
        about.processors,
        (to - from) as f64 / 1e9,
        run.stalls.len()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            [0, 999, 1_000, 15_209, 1_234_567].map(grouped),
            ["0", "999", "1,000", "15,209", "1,234,567"]
        );
    }
}
