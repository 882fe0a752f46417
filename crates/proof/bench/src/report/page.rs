//! The page: one file that needs nothing else.

use std::fmt::Write;

use bumpless_svg::escape;

use super::figures;
use crate::result::Run;

/// The style of a page.
pub const STYLE: &str = include_str!("page.css");
/// The style of drawings.
pub const CHART: &str = include_str!("chart.css");

/// The whole page.
pub fn render(run: &Run) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Bumpless bench</title>\n<style>\n{STYLE}{CHART}</style></head><body><main>\n\
         <h1>State transfer beside other protocols</h1>\n<p>{}</p>\n<p><code>{}</code></p>\n",
        escape(&super::about(run)),
        escape(&run.command.join(" "))
    );
    let mut tables = super::tables(run).into_iter();
    // What was measured and the bars come first, then the drawings, then every figure.
    for table in tables.by_ref().take(2) {
        page.push_str(&table.html());
    }
    for figure in figures::all(run) {
        let _ = writeln!(
            page,
            "<figure><figcaption>{}</figcaption>{}</figure>",
            escape(&figure.title),
            figure.svg
        );
    }
    for table in tables {
        page.push_str(&table.html());
    }
    page.push_str("</main></body></html>\n");
    page
}
