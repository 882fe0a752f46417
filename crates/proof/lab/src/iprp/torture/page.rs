//! The report: one page that needs nothing else.

use std::fmt::Write;

use bumpless_svg::escape;

use super::case::{Case, Place};
use super::known::Row;
use super::table::{cell, conditions, events, frames, late, places, verdict, word};
use super::{Cell, Results};

const STYLE: &str = include_str!("../../report/style.css");
const OWN: &str = include_str!("../../torture/page.css");

/// The whole page.
pub fn render(results: &Results) -> String {
    let headline = results.verdict().words();
    let class = if results.held() { "good" } else { "bad" };
    let trials: usize = results.cells.iter().map(|cell| cell.trials.len()).sum();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>iPRP: torture</title>\n<style>\n{STYLE}{OWN}</style></head><body><main>\n\
         <section class=\"verdict {class}\"><h1>{headline}</h1>\n<p>{} cells of the matrix in {trials} runs, {} known failures of others.</p></section>\n",
        results.cells.len(),
        results.rows.len()
    );
    if !results.cells.is_empty() {
        matrix(&mut page, results);
    }
    if !results.rows.is_empty() {
        known(&mut page, &results.rows);
    }
    if !results.cells.is_empty() {
        page.push_str("<h2>Each cell</h2>\n");
        results
            .cells
            .iter()
            .for_each(|cell| details(&mut page, cell));
    }
    let (count, longest) = results.stalls;
    let _ = writeln!(
        page,
        "<footer><p>This machine stood still {count} times for 2 ms or more, {longest:.1} ms at the longest; in the matrix nothing is excused by that.</p>\
         <p><code>{}</code></p></footer>\n</main></body></html>",
        escape(&results.settings.to_string())
    );
    page
}

fn matrix(page: &mut String, results: &Results) {
    page.push_str(
        "<h2>The matrix</h2>\n<p>How often every promise was kept: no datagram is missed of which a network brought a copy, nothing comes twice, \
         what had ended is replicated again. A datagram each millisecond. <i>loss</i>: network A loses 40 % of copies; <i>skew</i>: B is 100 ms \
         behind; <i>reordering</i>: copies take up to 20 ms longer.</p>\n",
    );
    for (place, title) in places(results) {
        let _ = write!(
            page,
            "<h3>{title}</h3>\n<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>What befalls</th>"
        );
        one_matrix(page, results, place);
        page.push_str("</tbody></table></div>\n");
    }
}

fn one_matrix(page: &mut String, results: &Results, place: Place) {
    let columns = conditions(results);
    for it in &columns {
        let _ = write!(page, "<th>{}</th>", it.name());
    }
    page.push_str("</tr></thead><tbody>\n");
    for event in events(results, place) {
        let _ = write!(page, "<tr><th>{}</th>", escape(event.title()));
        for &conditions in &columns {
            let case = Case {
                place,
                event,
                conditions,
            };
            let cell = cell(results, case);
            let class = match cell {
                Some(cell) if !cell.held => "held no",
                _ => "held yes",
            };
            let words = cell.map_or("-".into(), verdict);
            let _ = write!(page, "<td class=\"{class}\">{}</td>", escape(&words));
        }
        page.push_str("</tr>\n");
    }
}

fn known(page: &mut String, rows: &[Row]) {
    let promised = rows.first().map_or("", |row| &row.promised);
    let _ = writeln!(
        page,
        "<h2>What others are known to fail at</h2>\n<p>Promised: {}.</p>\n<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>Known \
         failure, and what is done here</th><th>Who</th><th>Holds</th><th>Lost</th><th>Of</th><th>Doubled</th><th>Late</th>\
         <th>Delay p50, ms</th><th>p99</th><th>longest</th><th>Gap, ms</th><th>Frames sent, and what became of them</th><th>Version, note</th></tr></thead><tbody>",
        escape(promised)
    );
    for row in rows {
        let _ = writeln!(
            page,
            "<tr><th rowspan=\"{}\">{}: {}<br>Here: {}</th>",
            row.contestants.len() + row.absent.len(),
            row.id,
            escape(row.of),
            escape(row.done)
        );
        let mut lines = Vec::new();
        for it in &row.contestants {
            let ms =
                |ns: Option<u64>| ns.map_or("-".into(), |ns| format!("{:.1}", ns as f64 / 1e6));
            let delay = it.delay_ns;
            lines.push(format!(
                "<td>{}</td><td class=\"held {}\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td>{} {}</td>",
                escape(&it.name),
                if word(it).starts_with("holds") { "yes" } else { "no" },
                word(it),
                it.lost,
                it.sent,
                it.doubled,
                late(it),
                ms(delay.map(|it| it.p50)),
                ms(delay.map(|it| it.p99)),
                ms(delay.map(|it| it.max)),
                it.longest_gap_ms.map_or("-".into(), |gap| format!("{gap:.1}")),
                escape(&frames(it)),
                escape(&it.version),
                escape(&format!("{} {}", it.note, it.unproved.as_deref().unwrap_or_default())),
            ));
        }
        for it in &row.absent {
            lines.push(format!(
                "<td>{}</td><td colspan=\"11\">not run: {}</td>",
                escape(&it.name),
                escape(&it.why)
            ));
        }
        let _ = writeln!(page, "{}</tr>", lines.join("</tr>\n<tr>"));
    }
    page.push_str("</tbody></table></div>\n");
}

fn details(page: &mut String, cell: &Cell) {
    let open = if cell.held { "" } else { " open" };
    let _ = writeln!(
        page,
        "<details{open}><summary>{}: {} ({})</summary>",
        cell.id,
        escape(cell.title),
        escape(&verdict(cell))
    );
    if let Some(error) = &cell.error {
        let _ = writeln!(page, "<p>Not done: {}</p>", escape(error));
    }
    page.push_str(
        "<table><thead><tr><th>Run</th><th>Promise</th><th>Held</th><th>Seen</th></tr></thead><tbody>\n",
    );
    for trial in &cell.trials {
        for want in &trial.wants {
            let _ = writeln!(
                page,
                "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                if want.held { "" } else { " class=\"broken\"" },
                trial.number,
                escape(&want.promised),
                if want.held { "yes" } else { "NO" },
                escape(&want.seen)
            );
        }
    }
    page.push_str("</tbody></table></details>\n");
}
