//! Reading tables of the file with the place of everything kept for messages.

use std::collections::BTreeMap;
use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use crate::lines::Lines;
use crate::problem::Problem;
use crate::section::SectionInfo;
use crate::shape::{Describe, Shape};
use crate::suggest::nearest;

/// Where a table stands in the file, and the line of each of its fields.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Path of the table.
    pub path: String,
    /// Its line.
    pub line: usize,
    lines: BTreeMap<String, usize>,
}

impl Place {
    /// Whether the file gives `key` here.
    pub fn has(&self, key: &str) -> bool {
        self.lines.contains_key(key)
    }
    /// The line of `key`, or of the table where the file leaves it out.
    pub fn line_of(&self, key: &str) -> usize {
        self.lines.get(key).copied().unwrap_or(self.line)
    }
    /// Path of `key` in this table, on one line whatever the key holds.
    fn join(&self, key: &str) -> String {
        let key = key.escape_debug();
        match self.path.as_str() {
            "" => key.to_string(),
            path if key.clone().next().is_none() => path.to_owned(),
            path => format!("{path}.{key}"),
        }
    }
}

/// The text's lines and what was found wrong so far.
pub struct Reader {
    /// The lines of the text.
    pub lines: Lines,
    file: String,
    problems: Vec<Problem>,
    /// Set when lines were taken out because of their syntax: what seems missing may be on them.
    pub incomplete: bool,
}

impl Reader {
    /// Of `text`, which messages call `file`.
    pub fn new(file: &str, text: &str) -> Self {
        Self {
            lines: Lines::new(text),
            file: file.to_owned(),
            problems: Vec::new(),
            incomplete: false,
        }
    }

    /// The folder of the file.
    pub(crate) fn folder(&self) -> &Path {
        let file = Path::new(&self.file);
        file.parent().unwrap_or_else(|| Path::new(""))
    }

    /// Reports a problem with field `key` of the table at `place`; with an empty key, of the table.
    pub fn wrong(
        &mut self,
        place: &Place,
        key: &str,
        wrong: impl Into<String>,
        right: impl Into<String>,
    ) {
        self.wrong_on(place.line_of(key), place.join(key), wrong, right);
    }

    /// Reports a problem on a given line.
    pub fn wrong_on(
        &mut self,
        line: usize,
        field: String,
        wrong: impl Into<String>,
        right: impl Into<String>,
    ) {
        self.problems.push(Problem {
            file: self.file.clone(),
            line,
            field,
            wrong: wrong.into(),
            right: right.into(),
        });
    }

    /// All problems by line, then field, then text; each once.
    pub fn into_problems(mut self) -> Vec<Problem> {
        let key = |p: &Problem| (p.line, p.field.clone(), p.wrong.clone(), p.right.clone());
        self.problems.sort_by_key(key);
        self.problems.dedup();
        self.problems
    }

    /// Whether nothing is wrong so far.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

/// One table of the file while its fields are taken.
pub struct TableReader<'a> {
    table: &'a dyn TableLike,
    place: Place,
    /// Collects what is wrong.
    pub reader: &'a mut Reader,
}

impl<'a> TableReader<'a> {
    /// Of `table`, which stands at `path` and on `line`.
    pub fn new(
        reader: &'a mut Reader,
        table: &'a dyn TableLike,
        path: String,
        line: usize,
    ) -> Self {
        let mut place = Place {
            path,
            line,
            lines: BTreeMap::new(),
        };
        for (name, _) in table.iter() {
            let span = table.key(name).and_then(|key| key.span());
            // Keys of a dotted or implicit table may have no span of their own.
            let line = if span.is_some() {
                reader.lines.of(span)
            } else {
                line
            };
            place.lines.insert(name.to_owned(), line);
        }
        Self {
            table,
            place,
            reader,
        }
    }

    /// A field that must be given. `None`: it is not, or it is wrong; reported.
    pub fn required<S: Shape + Describe>(&mut self, key: &str, shape: &S) -> Option<S::Out> {
        match self.table.get(key) {
            Some(item) => self.take(key, item, shape),
            None => {
                if !self.reader.incomplete {
                    let right = format!("give {}", shape.accepts());
                    self.reader.wrong(&self.place, key, "is missing", right);
                }
                None
            }
        }
    }

    /// A field with a fixed default, written as in the file. `None`: it is wrong; reported.
    pub fn or_default<S: Shape + Describe>(
        &mut self,
        key: &str,
        shape: &S,
        default: &str,
    ) -> Option<S::Out> {
        match self.table.get(key) {
            Some(item) => self.take(key, item, shape),
            None => {
                let text = format!("default = {default}\n");
                let document = Document::parse(text.as_str()).ok()?;
                shape
                    .read(document.as_table().get("default")?, &Lines::new(&text))
                    .ok()
            }
        }
    }

    /// A field that may be absent. `Some(None)`: it is; `None`: it is wrong; reported.
    pub fn optional<S: Shape + Describe>(
        &mut self,
        key: &str,
        shape: &S,
    ) -> Option<Option<S::Out>> {
        match self.table.get(key) {
            Some(item) => self.take(key, item, shape).map(Some),
            None => Some(None),
        }
    }

    fn take<S: Shape + Describe>(&mut self, key: &str, item: &Item, shape: &S) -> Option<S::Out> {
        match shape.read(item, &self.reader.lines) {
            Ok(value) => Some(value),
            Err(faults) => {
                for fault in faults {
                    let line = fault.line.unwrap_or_else(|| self.place.line_of(key));
                    let field = self.place.join(&format!("{key}{}", fault.element));
                    let right = format!("give {}", fault.right.unwrap_or_else(|| shape.accepts()));
                    self.reader.wrong_on(line, field, fault.wrong, right);
                }
                None
            }
        }
    }

    /// Reports fields that `section`, one of `all`, does not know, and hands out the table's place.
    pub fn finish(self, section: &SectionInfo, all: &[&SectionInfo]) -> Place {
        let fields = section.fields.iter().map(|field| field.key);
        let known: Vec<&str> = fields.chain(section.parts.iter().copied()).collect();
        for (key, _) in self.table.iter().filter(|(key, _)| !known.contains(key)) {
            let (wrong, right) = explain_unknown(key, &known, all);
            self.reader.wrong(&self.place, key, wrong, right);
        }
        self.place
    }
}

/// What is wrong with the unknown field `key`, and what would be right.
fn explain_unknown(key: &str, known: &[&str], sections: &[&SectionInfo]) -> (String, String) {
    let wrong = "is not a field of this table".to_owned();
    if let Some(near) = nearest(key, known.iter().copied()) {
        return (wrong, format!("did you mean {near}?"));
    }
    let has = |section: &&&SectionInfo| section.fields.iter().any(|field| field.key == key);
    if let Some(home) = sections.iter().find(has) {
        return (wrong, format!("{key} belongs in {}", home.header()));
    }
    let all = sections.iter().flat_map(|section| section.fields);
    if let Some(near) = nearest(key, all.map(|field| field.key))
        && let Some(home) = sections
            .iter()
            .find(|section| section.fields.iter().any(|field| field.key == near))
    {
        return (wrong, format!("did you mean {near} of {}?", home.header()));
    }
    (
        wrong,
        format!("remove it; the fields here are {}", known.join(", ")),
    )
}
