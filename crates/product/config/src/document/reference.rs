//! The reference of all fields, as Markdown.

use super::{about, capital, wrap};
use crate::schema::SECTIONS;
use crate::section::{FieldInfo, Presence, SectionInfo, Times};

const WIDTH: usize = 100;

/// What is not about a single field: rules, formulas, the hash, messages.
const RULES: &str = include_str!("rules.md");

/// The text of `spec/configuration.md`.
pub fn reference() -> String {
    let mut out = RULES.to_owned();
    for section in SECTIONS {
        describe_section(&mut out, section);
    }
    out
}

fn describe_section(out: &mut String, section: &SectionInfo) {
    let times = match section.times {
        Times::Once => "once",
        Times::Many => "once for each",
    };
    out.push_str(&format!("\n## `{}`, {times}\n", section.header()));
    for paragraph in about(section.about).paragraphs {
        out.push('\n');
        wrap(out, "", WIDTH, &paragraph);
    }
    for field in section.fields {
        describe_field(out, field);
    }
}

fn describe_field(out: &mut String, field: &FieldInfo) {
    let about = about(field.about);
    out.push_str(&format!("\n### `{}`\n\n", field.key));
    for paragraph in &about.paragraphs {
        wrap(out, "", WIDTH, paragraph);
    }
    let default = match field.presence {
        Presence::Required => "none, must be given".to_owned(),
        Presence::Default(value) => format!("`{value}`"),
        Presence::Computed(words) => words.to_owned(),
    };
    let begun = |text: String| capital(&text);
    let rows = [
        ("Unit", Some(begun(field.unit.to_owned()))),
        ("Accepts", Some(begun(field.shape.accepts()))),
        // Often a value as the file would have it, in which a capital would be another one.
        ("Default", Some(default)),
        ("Cost", about.cost.map(begun)),
        ("Hazard", about.hazard.map(begun)),
    ];
    out.push('\n');
    for (label, text) in rows
        .into_iter()
        .filter_map(|(label, text)| Some((label, text?)))
    {
        out.push_str(&format!("- {label}: {}\n", text.trim_end_matches('.')));
    }
}
