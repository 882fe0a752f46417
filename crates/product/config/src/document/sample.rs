//! The sample file: the quadruple tank on one computer, with every field explained once.

use super::{about, capital, wrap};
use crate::schema::SECTIONS;
use crate::section::{FieldInfo, Presence, SectionInfo};

const WIDTH: usize = 96;

/// One table of the sample: the section's path, and the fields it gives, as in the file.
type Block = (&'static str, &'static [(&'static str, &'static str)]);

/// Sections that the pair of the sample does not have: they stand in comments.
const COMMENTED: [&str; 3] = [
    "application.field.device",
    "application.input",
    "application.output",
];

const INTRODUCTION: &str = "\
# The quadruple tank, controlled by a redundant pair on one computer.
#
# The two networks are loopback addresses, the process is `bumpless plant`; `bumpless demo` runs all
# of it. This file is written by the program from its own documentation and explains every field.
# A line such as `#field = value` shows a default; it applies without being written.
#
# For two computers: give each node its own computer's addresses, one interface per network; put
# each witness on a third computer in that network; give [application.field] the address of the
# process. Copy the same file to both, and to each computer its certificates, made on one by
#   bumpless pki init --site SITE
#   bumpless pki issue left.quadruple-tank right.quadruple-tank witness-a.witness witness-b.witness
# Then start `bumpless run FILE --node left` on one and `--node right` on the other.
# examples/two-computers.toml is such a file, with the commands for all computers.
";

const BLOCKS: &[Block] = &[
    ("pair", &[("name", "\"quadruple-tank\"")]),
    ("timing", &[]),
    ("transfer", &[]),
    ("security", &[]),
    ("realtime", &[]),
    ("reception", &[]),
    ("registration", &[]),
    ("plan", &[]),
    ("change", &[]),
    ("network", &[("name", "\"A\"")]),
    ("network", &[("name", "\"B\"")]),
    (
        "node",
        &[
            ("name", "\"left\""),
            (
                "addresses",
                "{ A = \"127.0.1.1:4700\", B = \"127.0.2.1:4700\" }",
            ),
        ],
    ),
    (
        "node",
        &[
            ("name", "\"right\""),
            (
                "addresses",
                "{ A = \"127.0.1.2:4700\", B = \"127.0.2.2:4700\" }",
            ),
        ],
    ),
    (
        "reference",
        &[
            ("name", "\"witness-a\""),
            ("kind", "\"witness\""),
            ("network", "\"A\""),
            ("address", "\"127.0.1.9:4710\""),
        ],
    ),
    (
        "reference",
        &[
            ("name", "\"witness-b\""),
            ("kind", "\"witness\""),
            ("network", "\"B\""),
            ("address", "\"127.0.2.9:4710\""),
        ],
    ),
    (
        "group",
        &[
            ("name", "\"tank\""),
            ("nodes", "[\"left\", \"right\"]"),
            ("references", "[\"witness-a\", \"witness-b\"]"),
        ],
    ),
    (
        "application",
        &[
            ("name", "\"tank\""),
            ("group", "\"tank\""),
            ("kind", "\"quadruple_tank\""),
            ("channel", "1"),
            ("period_ms", "10"),
        ],
    ),
    (
        "application.set_points",
        &[("at_s", "0"), ("tank1_cm", "12.4"), ("tank2_cm", "12.7")],
    ),
    (
        "application.set_points",
        &[("at_s", "20"), ("tank1_cm", "13.4"), ("tank2_cm", "12.7")],
    ),
    ("application.field", &[("address", "\"127.0.0.10:5502\"")]),
    (
        "application.field.device",
        &[("name", "\"plc\""), ("address", "\"192.0.2.20:502\"")],
    ),
    (
        "application.input",
        &[
            ("name", "\"level\""),
            ("device", "\"plc\""),
            ("register", "0"),
        ],
    ),
    (
        "application.output",
        &[
            ("name", "\"valve\""),
            ("device", "\"plc\""),
            ("register", "0"),
        ],
    ),
    ("application.security", &[]),
];

/// A complete configuration with every field explained: the text of
/// `examples/quadruple-tank.toml`.
pub fn sample() -> String {
    let mut out = INTRODUCTION.to_owned();
    let mut explained: Vec<&str> = Vec::new();
    for (path, values) in BLOCKS {
        let Some(section) = SECTIONS.iter().find(|section| section.path == *path) else {
            continue;
        };
        let first = !explained.contains(path);
        explained.push(path);
        out.push('\n');
        if first {
            explain_section(&mut out, section);
        }
        let commented = COMMENTED.contains(path);
        out.push_str(if commented { "# " } else { "" });
        out.push_str(&section.header());
        out.push('\n');
        for field in section.fields {
            let value = values
                .iter()
                .find(|(key, _)| *key == field.key)
                .map(|(_, value)| *value);
            if first {
                explain_field(&mut out, field);
            }
            let mut line = String::new();
            write_field(&mut line, field, value, first);
            if commented && !line.is_empty() {
                line = format!("# {}", line.trim_start_matches('#'));
            }
            out.push_str(&line);
        }
    }
    out
}

fn explain_section(out: &mut String, section: &SectionInfo) {
    let rule = format!("# ---- {} ", section.header());
    out.push_str(&rule);
    out.extend(std::iter::repeat_n('-', WIDTH.saturating_sub(rule.len())));
    out.push('\n');
    for (i, paragraph) in about(section.about).paragraphs.iter().enumerate() {
        if i > 0 {
            out.push_str("#\n");
        }
        wrap(out, "# ", WIDTH, paragraph);
    }
}

fn explain_field(out: &mut String, field: &FieldInfo) {
    let about = about(field.about);
    out.push('\n');
    for paragraph in &about.paragraphs {
        wrap(out, "# ", WIDTH, paragraph);
    }
    let default = match field.presence {
        Presence::Required => "must be given".to_owned(),
        Presence::Default(value) => format!("default {value}"),
        Presence::Computed(words) => format!("default: {words}"),
    };
    let accepts = capital(&field.shape.accepts());
    let unit = match field.unit {
        "none" => String::new(),
        unit if accepts.contains(unit) => String::new(),
        unit => format!("Unit: {unit}. "),
    };
    wrap(out, "# ", WIDTH, &format!("{unit}{accepts}; {default}."));
    let costs = [("Cost", about.cost), ("Hazard", about.hazard)];
    for (label, text) in costs
        .into_iter()
        .filter_map(|(label, text)| Some((label, text?)))
    {
        if text != "none." {
            wrap(out, "# ", WIDTH, &format!("{label}: {text}"));
        }
    }
}

fn write_field(out: &mut String, field: &FieldInfo, value: Option<&str>, first: bool) {
    let key = field.key;
    let line = match (value, field.presence) {
        (Some(value), _) => format!("{key} = {value}\n"),
        (None, Presence::Default(value)) if first => format!("#{key} = {value}\n"),
        (None, _) if first => format!("#{key} =\n"),
        (None, _) => return,
    };
    out.push_str(&line);
}
