//! From text to sections: syntax, sections that are missing, misplaced or unknown.

use toml_edit::{Document, Item, Table, TableLike};

use crate::model::MAX_FILE_LEN;
use crate::reader::{Reader, TableReader};
use crate::schema::{
    Application, ChangeSettings, Device, FieldIo, Group, Input, Network, Node, Output, Pair,
    PlanSettings, Realtime, Reception, Reference, Registration, SECTIONS, Section, Security,
    SetPoint, StateSecurity, Timing, Transfer,
};
use crate::section::{SectionInfo, Times};
use crate::suggest::nearest;

/// The sections as written; wrong fields are `None` and reported.
pub(crate) struct File {
    pub(crate) pair: Pair,
    pub(crate) timing: Timing,
    pub(crate) transfer: Transfer,
    pub(crate) security: Security,
    pub(crate) realtime: Realtime,
    pub(crate) reception: Reception,
    pub(crate) registration: Registration,
    pub(crate) plan: PlanSettings,
    pub(crate) change: ChangeSettings,
    pub(crate) networks: Vec<Network>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) references: Vec<Reference>,
    pub(crate) groups: Vec<Group>,
    pub(crate) applications: Vec<ApplicationEntry>,
}

/// An application with the sections inside it.
pub(crate) struct ApplicationEntry {
    pub(crate) fields: Application,
    pub(crate) set_points: Vec<SetPoint>,
    pub(crate) field: Option<FieldIo>,
    pub(crate) devices: Vec<Device>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) security: Option<StateSecurity>,
}

/// Most syntax errors that are reported; after more, the text is hardly a configuration file.
const SYNTAX_ERRORS_MAX: usize = 32;

/// Reads the sections of `text`. `None`: the syntax of the file does not permit it; reported.
pub(crate) fn read(reader: &mut Reader, text: &str) -> Option<File> {
    let document = document(reader, text)?;
    Some(read_sections(reader, document.as_table()))
}

/// The text as TOML, without the lines whose syntax is wrong; those are reported. `None`: it cannot be read.
pub fn document(reader: &mut Reader, text: &str) -> Option<Document<String>> {
    if text.len() > MAX_FILE_LEN {
        let wrong = format!("the file has {} bytes", text.len());
        let right = format!("a configuration file has at most {MAX_FILE_LEN}");
        reader.wrong_on(1, String::new(), wrong, right);
        return None;
    }
    let mut text = text.to_owned();
    for _ in 0..SYNTAX_ERRORS_MAX {
        match Document::parse(text.clone()) {
            Ok(document) => return Some(document),
            Err(error) => take_out_line(reader, &mut text, &error)?,
        }
    }
    None
}

/// Reports a syntax error and blanks its line, so that the rest can be read too. `None` where the
/// line is not wrong by itself (an open bracket further up, say) or is a header: then everything
/// below could be misread.
fn take_out_line(
    reader: &mut Reader,
    text: &mut String,
    error: &toml_edit::TomlError,
) -> Option<()> {
    let number = reader.lines.of(error.span());
    let range = reader.lines.range(number, text);
    let line = text.get(range.clone())?;
    let message = error.message().split('\n').next().unwrap_or_default();
    let right = if message.contains("duplicate") {
        "give each field of a table once, and head repeated tables with [[...]]"
    } else {
        "write TOML: field = value, text in \"quotes\", lists in [ ], headers as [name] or [[name]]"
    };
    reader.wrong_on(number, String::new(), format!("syntax: {message}"), right);
    let repeated = message.contains("duplicate");
    let own_fault = repeated || Document::parse(line).is_err();
    let is_header = line.trim_start().starts_with('[');
    let is_blank = line.trim().is_empty();
    if !own_fault || is_header || is_blank {
        return None;
    }
    reader.incomplete = true;
    let blank: String = line
        .bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect();
    text.replace_range(range, &blank);
    Some(())
}

fn read_sections(reader: &mut Reader, root: &Table) -> File {
    unknown_sections(reader, root, &SECTIONS);
    File {
        pair: once(reader, root),
        timing: once(reader, root),
        transfer: once(reader, root),
        security: once(reader, root),
        realtime: once(reader, root),
        reception: once(reader, root),
        registration: once(reader, root),
        plan: once(reader, root),
        change: once(reader, root),
        networks: many(reader, root, ""),
        nodes: many(reader, root, ""),
        references: many(reader, root, ""),
        groups: many(reader, root, ""),
        applications: applications(reader, root),
    }
}

/// Reports what is in `root` and is none of `sections`.
pub fn unknown_sections(reader: &mut Reader, root: &Table, sections: &[&SectionInfo]) {
    let top = || {
        sections
            .iter()
            .filter(|section| !section.path.contains('.'))
    };
    let is_known = |key: &str| top().any(|section| section.path == key);
    for (key, item) in root.iter().filter(|(key, _)| !is_known(key)) {
        let line = reader
            .lines
            .of(root.key(key).and_then(|key| key.span()).or(item.span()));
        let has = |section: &&&SectionInfo| section.fields.iter().any(|field| field.key == key);
        let right = match (
            nearest(key, top().map(|section| section.path)),
            top().find(has),
        ) {
            (Some(near), _) => format!("did you mean {near}?"),
            (None, Some(home)) => format!("{key} belongs in {}", home.header()),
            (None, None) => {
                let names: Vec<String> = top().map(|section| section.header()).collect();
                format!("remove it; the sections are {}", names.join(", "))
            }
        };
        reader.wrong_on(
            line,
            key.escape_debug().to_string(),
            "is not a section",
            right,
        );
    }
}

/// The section's name in the table that contains it.
fn last_name(info: &SectionInfo) -> &'static str {
    info.path.rsplit('.').next().unwrap_or(info.path)
}

/// Path of a section inside the table at `parent`.
fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}.{name}")
    }
}

fn misplaced(
    reader: &mut Reader,
    table: &dyn TableLike,
    item: &Item,
    path: &str,
    info: &SectionInfo,
) {
    let span = table.key(last_name(info)).and_then(|key| key.span());
    let line = reader.lines.of(item.span().or(span));
    let (wrong, right) = match (info.times, item) {
        (Times::Once, Item::ArrayOfTables(_)) => ("is a list of tables", "once in the file"),
        (Times::Once, _) => ("is a value", "with its fields below"),
        (Times::Many, Item::Table(_)) => ("is a single table", "once for each"),
        (Times::Many, _) => ("is not a list of tables", "once for each"),
    };
    reader.wrong_on(
        line,
        path.to_owned(),
        wrong,
        format!("write {} {right}", info.header()),
    );
}

/// A section that stands once in the file; left out, its fields are read from an empty table.
fn once<S: Section>(reader: &mut Reader, root: &Table) -> S {
    let (name, empty) = (last_name(S::INFO), Table::new());
    let (table, line): (&dyn TableLike, usize) = match root.get(name) {
        Some(item) => match item.as_table_like() {
            Some(table) => (table, reader.lines.of(item.span())),
            None => {
                misplaced(reader, root, item, name, S::INFO);
                // Its fields are not missing as well: the one remedy covers them.
                let (mut silent, empty) = (Reader::new("", ""), Table::new());
                return S::read(TableReader::new(&mut silent, &empty, name.into(), 1));
            }
        },
        None => (&empty, 1),
    };
    S::read(TableReader::new(reader, table, name.into(), line))
}

/// A section that may stand many times below `parent`.
fn many<S: Section>(reader: &mut Reader, table: &dyn TableLike, parent: &str) -> Vec<S> {
    entries(reader, table, parent, S::INFO)
        .into_iter()
        .map(|(table, path, line)| S::read(TableReader::new(reader, table, path, line)))
        .collect()
}

/// The tables of a repeated section with path and line; written as `[[name]]` or as a list of
/// inline tables.
pub fn entries<'t>(
    reader: &mut Reader,
    table: &'t dyn TableLike,
    parent: &str,
    info: &SectionInfo,
) -> Vec<(&'t dyn TableLike, String, usize)> {
    let path = join(parent, last_name(info));
    let Some(item) = table.get(last_name(info)) else {
        return Vec::new();
    };
    let numbered = |i: usize| format!("{path}[{}]", i + 1);
    if let Some(tables) = item.as_array_of_tables() {
        let line = |table: &Table| reader.lines.of(table.span());
        let entry = |(i, table): (usize, &'t Table)| -> (&'t dyn TableLike, String, usize) {
            (table, numbered(i), line(table))
        };
        return tables.iter().enumerate().map(entry).collect();
    }
    let Some(list) = item.as_array() else {
        misplaced(reader, table, item, &path, info);
        return Vec::new();
    };
    let mut found: Vec<(&'t dyn TableLike, String, usize)> = Vec::new();
    for (i, value) in list.iter().enumerate() {
        let line = reader.lines.of(value.span());
        match value.as_inline_table() {
            Some(table) => found.push((table, numbered(i), line)),
            None => {
                let right = format!(
                    "write a table in braces, or {} once for each",
                    info.header()
                );
                reader.wrong_on(line, numbered(i), "is not a table", right);
            }
        }
    }
    found
}

fn applications(reader: &mut Reader, root: &Table) -> Vec<ApplicationEntry> {
    let mut all = Vec::new();
    for (table, path, line) in entries(reader, root, "", Application::INFO) {
        let fields = Application::read(TableReader::new(reader, table, path.clone(), line));
        let set_points = many(reader, table, &path);
        let (inputs, outputs) = (many(reader, table, &path), many(reader, table, &path));
        let mut devices = Vec::new();
        let field = table.get("field").and_then(|item| {
            let path = join(&path, "field");
            let Some(inner) = item.as_table_like() else {
                misplaced(reader, table, item, &path, FieldIo::INFO);
                return None;
            };
            let line = reader.lines.of(item.span());
            devices = many(reader, inner, &path);
            Some(FieldIo::read(TableReader::new(reader, inner, path, line)))
        });
        let security = part(reader, table, &path);
        all.push(ApplicationEntry {
            fields,
            set_points,
            field,
            devices,
            inputs,
            outputs,
            security,
        });
    }
    all
}

/// A section that stands at most once in the table at `parent`.
fn part<S: Section>(reader: &mut Reader, table: &dyn TableLike, parent: &str) -> Option<S> {
    let name = last_name(S::INFO);
    let item = table.get(name)?;
    let path = join(parent, name);
    let Some(inner) = item.as_table_like() else {
        misplaced(reader, table, item, &path, S::INFO);
        return None;
    };
    let line = reader.lines.of(item.span());
    Some(S::read(TableReader::new(reader, inner, path, line)))
}
