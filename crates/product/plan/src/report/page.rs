//! The page: one file that needs nothing else.

use std::fmt::Write;

use bumpless_svg::escape;

use super::{Drawing, Report, distance, losses, networks, tables, timeline, words};
use crate::pair::{Sender, Verdict};

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn render(report: &Report) -> String {
    let answer = words::verdict(&report.pair, &report.plan);
    let class = match report.plan.verdict {
        Verdict::Yes => "good",
        Verdict::No => "bad",
        Verdict::CannotSay => "unknown",
    };
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Bumpless plan: {0}</title>\n<style>\n{STYLE}</style></head><body><main>\n\
         <section class=\"verdict {class}\"><h1>{0}</h1>",
        escape(&answer)
    );
    let reasons = words::reasons(&report.plan);
    if !reasons.is_empty() {
        list(&mut page, reasons);
    }
    page.push_str("</section>\n");
    for (at, one) in report.plan.senders.iter().enumerate() {
        sender(&mut page, report, at, one);
    }
    for one in &report.plan.distances {
        let (head, lease) = (distance::head(one), distance::lease(one));
        let _ = writeln!(
            page,
            "<h2>{}</h2>\n<p>{}</p>",
            escape(&head),
            escape(&lease)
        );
        page.push_str(&distance::gaps(one).html());
    }
    let _ = write!(
        page,
        "<footer>bumpless {}; how the plan is made: spec/plan.md</footer>\n</main></body></html>\n",
        env!("CARGO_PKG_VERSION")
    );
    page
}

/// The drawings by file name.
pub fn drawings(report: &Report) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for sender in &report.plan.senders {
        let nodes = sender.nodes.join("-");
        if let Some(drawn) = losses::draw(&sender.scenario) {
            all.push((format!("losses-{nodes}.svg"), alone(&drawn.svg)));
        }
        for (names, resource) in networks::asked(sender) {
            let file = format!("timeline-{nodes}-{}.svg", names.join("-"));
            let drawn = timeline::draw(&sender.scenario, &resource, &title(&names));
            all.push((file, alone(&drawn.svg)));
        }
    }
    all
}

/// A drawing that brings its own style.
pub(super) fn alone(svg: &str) -> String {
    let open = "<svg ";
    let with = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
    let svg = svg.replacen(open, with, 1);
    let style = format!(">\n<style>{STYLE}</style>\n");
    svg.replacen(">\n", &style, 1)
}

fn list(page: &mut String, items: impl IntoIterator<Item = String>) {
    page.push_str("<ul>\n");
    for item in items {
        let _ = writeln!(page, "<li>{}</li>", escape(&item));
    }
    page.push_str("</ul>\n");
}

fn sender(page: &mut String, report: &Report, at: usize, sender: &Sender) {
    let scenario = &sender.scenario;
    let _ = writeln!(page, "<h2>{}</h2>", escape(&tables::who(sender)));
    let advice = &report.advice[at];
    if let Some(head) = tables::advice_head(report, sender, advice.len()) {
        let _ = writeln!(page, "<p>{}</p>", escape(&head));
        let items = tables::shown(advice);
        list(page, items.map(|advice| words::advice(sender, advice)));
    }
    if let Ok(plan) = &sender.plan {
        if let Some(room) = &report.headroom[at] {
            let _ = writeln!(page, "<p>{}</p>", escape(&tables::margin(room)));
        }
        let _ = writeln!(
            page,
            "<h3>Channels</h3>\n<p>The worst of all situations.</p>"
        );
        page.push_str(&tables::channels(scenario, plan).html());
        page.push_str("<h3>Networks</h3>\n");
        page.push_str(&tables::networks(scenario, plan).html());
    }
    if let Some(room) = &report.headroom[at] {
        let head = tables::limits_head(report, sender);
        let _ = writeln!(page, "<h3>{}</h3>", escape(&head));
        page.push_str(&tables::limits(scenario, room).html());
    }
    page.push_str("<h3>What was assumed</h3>\n");
    page.push_str(&tables::assumptions(scenario).html());
    pictures(page, sender);
}

fn pictures(page: &mut String, sender: &Sender) {
    if let Some(drawn) = losses::draw(&sender.scenario) {
        figure(page, &drawn);
    }
    for (names, resource) in networks::asked(sender) {
        let drawn = timeline::draw(&sender.scenario, &resource, &title(&names));
        figure(page, &drawn);
        page.push_str(
            "<p class=\"legend\"><i class=\"send\"></i> sending <i class=\"budget\"></i> spare budget \
             <i class=\"wait\"></i> waiting at worst <i class=\"slack\"></i> left until the deadline \
             <i class=\"late\"></i> late</p>\n",
        );
    }
}

fn figure(page: &mut String, drawn: &Drawing) {
    let _ = writeln!(
        page,
        "<figure><figcaption>{}</figcaption>{}</figure>",
        escape(&drawn.caption),
        drawn.svg
    );
}

fn title(names: &[String]) -> String {
    match names {
        [one] => format!("network {one}"),
        several => format!("networks {} (alike)", several.join(" and ")),
    }
}
