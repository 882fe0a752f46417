//! The page: one file that needs nothing else.

use std::fmt::Write;

use bumpless_bench::report::page::{CHART, STYLE};
use bumpless_svg::escape;

use super::super::result::Programs;
use super::{figures, tables, words};

const OWN: &str = include_str!("page.css");

/// The whole page.
pub fn render(programs: &Programs) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Programs across a wide-area network</title>\n<style>\n{STYLE}{CHART}{OWN}</style></head><body><main>\n\
         <h1>Real programs across a power grid's wide-area network</h1>\n<p>{}</p>\n<p><code>{}</code></p>\n<ul>\n",
        escape(&words::about(programs)),
        escape(&programs.head.command.join(" "))
    );
    for sentence in words::answers(programs) {
        let _ = writeln!(page, "<li>{}</li>", escape(&sentence));
    }
    page.push_str("</ul>\n");
    for figure in figures::all(programs) {
        let _ = writeln!(
            page,
            "<figure><figcaption>{}</figcaption>{}</figure>",
            escape(&figure.title),
            figure.svg
        );
    }
    for table in tables::all(programs) {
        page.push_str(&table.html());
    }
    page.push_str("</main></body></html>\n");
    page
}
