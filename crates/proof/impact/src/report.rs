//! What people read: one page that needs nothing else, and the same as JSON.

use std::fmt::Write;

use bumpless_svg::escape;
use serde_json::{Value, json};

use crate::chart;
use crate::machine::PARAMETERS;
use crate::paper::{Claim, Part};

/// Of every page here.
pub(crate) const STYLE: &str = include_str!("page.css");

/// The page with these parts.
pub fn page(version: &str, parts: &[Part]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Bumpless impact</title>\n<style>\n{STYLE}{}</style></head><body><main>\n\
         <h1>What packets do to a processor's tasks</h1>\n\
         <p>Bumpless {}. A model of one processor beside chapters 4 and 5 of \"Real-Time Aware IP-Networking for Resource-Constrained Embedded \
         Devices\". The policies and the guard are the shipped code.</p>\n<p>{}</p>\n",
        chart::STYLE,
        escape(version),
        escape(&summary(parts))
    );
    for part in parts {
        let _ = write!(
            page,
            "<h2>{}</h2>\n<p>{}</p>\n<div class=\"pictures\">\n",
            escape(part.title),
            escape(part.about)
        );
        for picture in &part.pictures {
            let title = escape(&picture.title);
            let _ = writeln!(
                page,
                "<figure><figcaption>{title}</figcaption>{}</figure>",
                picture.svg
            );
        }
        page.push_str("</div>\n");
        claims(&mut page, &part.claims);
    }
    parameters(&mut page);
    page.push_str("</main></body></html>\n");
    page
}

/// How many sentences of the text the model repeats, in words.
pub fn summary(parts: &[Part]) -> String {
    let all = || parts.iter().flat_map(|part| &part.claims);
    let (agreed, count) = (all().filter(|it| it.agrees).count(), all().count());
    format!(
        "Of {count} statements the model repeats {agreed}; where it says otherwise, the reason stands below it."
    )
}

fn claims(page: &mut String, claims: &[Claim]) {
    head(
        page,
        &["figure, section", "the text says", "the model says", ""],
    );
    for claim in claims {
        let (class, verdict) = match claim.agrees {
            true => ("good", "the same"),
            false => ("bad", "otherwise"),
        };
        let reason = match claim.reason {
            "" => String::new(),
            reason => format!("<br>{}", escape(reason)),
        };
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}{reason}</td><td class=\"{class}\">{verdict}</td></tr>",
            escape(claim.place),
            escape(claim.text),
            escape(&claim.model)
        );
    }
    page.push_str("</tbody></table></div>\n");
}

fn parameters(page: &mut String) {
    page.push_str("<h2>Figures that the model rests on</h2>\n");
    head(
        page,
        &[
            "machine",
            "what",
            "value",
            "from",
            "section",
            "how it follows",
        ],
    );
    for it in PARAMETERS {
        let _ = write!(page, "<tr>");
        for cell in [
            it.machine,
            it.name,
            it.value,
            it.origin.name(),
            it.place,
            it.reason,
        ] {
            let _ = write!(page, "<td>{}</td>", escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn head(page: &mut String, names: &[&str]) {
    page.push_str("<div class=\"scroll\"><table><thead><tr>");
    for name in names {
        let _ = write!(page, "<th>{}</th>", escape(name));
    }
    page.push_str("</tr></thead><tbody>\n");
}

/// The statements as JSON.
pub fn json(parts: &[Part]) -> Value {
    let all = parts.iter().flat_map(|part| &part.claims);
    let claim = |it: &Claim| {
        json!({
            "name": it.name,
            "place": it.place,
            "text": it.text,
            "model": it.model,
            "agrees": it.agrees,
            "reason": it.reason,
        })
    };
    Value::Array(all.map(claim).collect())
}
