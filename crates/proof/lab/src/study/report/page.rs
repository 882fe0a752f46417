//! The page: one file that needs nothing else.

use std::fmt::Write;

use bumpless_bench::report::page::{CHART, STYLE};
use bumpless_svg::escape;

use super::{answers, figures, tables, words};
use crate::study::result::Study;

const OWN: &str = include_str!("page.css");

/// The whole page.
pub fn render(study: &Study) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Failovers over a wide-area network</title>\n<style>\n{STYLE}{CHART}{OWN}</style></head><body><main>\n\
         <h1>Failovers over a power grid's wide-area network</h1>\n<p>{}</p>\n<p><code>{}</code></p>\n",
        escape(&words::about(study)),
        escape(&study.head.command.join(" "))
    );
    for answer in answers::all(study) {
        let _ = write!(page, "<h2>{}</h2>\n<ul>\n", escape(&answer.question));
        for sentence in &answer.sentences {
            let _ = writeln!(page, "<li>{}</li>", escape(sentence));
        }
        page.push_str("</ul>\n");
    }
    for table in tables::all(study) {
        page.push_str(&table.html());
    }
    for figure in figures::all(study) {
        let _ = writeln!(
            page,
            "<figure><figcaption>{}</figcaption>{}</figure>",
            escape(&figure.title),
            figure.svg
        );
    }
    page.push_str("</main></body></html>\n");
    page
}
