//! Scenario files: what goes wrong, written by hand (spec/simulation.md).

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bumpless_config::Config;
use toml_edit::{Document, Item, TableLike};

use super::entry::Entry;
use super::forms::{Form, number, quoted, whole};
use super::overlap::contradictions;
use super::places::Names;
use super::{Timed, kinds};
use crate::check::INVARIANTS;
use crate::size::Size;

/// Longest scenario, simulated seconds.
const LONGEST: f64 = 1e7;
/// Largest file, bytes.
const MAX_LEN: u64 = 1 << 20;

/// A scenario, checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is about.
    pub name: String,
    /// What it taught, if it was found by a run that failed.
    pub taught: Option<String>,
    /// The pair.
    pub config: Arc<Config>,
    /// How the file says which pair it is: a line of TOML.
    pub pair: String,
    /// The file from which the pair was read, if it is not one that comes with the simulator.
    pub configuration: Option<PathBuf>,
    /// Simulated time, nanoseconds.
    pub time: u64,
    /// The seed, unless another is asked for.
    pub seed: u64,
    /// Whether faults drawn by the seed come on top.
    pub storm: bool,
    /// The invariant that it is known to break, because it breaks an assumption.
    pub breaks: Option<String>,
    /// The faults, by time.
    pub faults: Vec<Timed>,
}

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The file.
    pub file: String,
    /// The line, from 1; 0: the whole file.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// The places of a text by line, and what was found wrong.
pub(super) struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    /// The faults were drawn by a seed: they come as they come.
    pub(super) drawn: bool,
    pub(super) complaints: Vec<Complaint>,
}

impl Reader<'_> {
    /// The line of `item`.
    pub(super) fn line(&self, item: &Item) -> usize {
        item.span().map_or(0, |span| self.line_at(span.start))
    }

    fn line_at(&self, offset: usize) -> usize {
        line_at(self.text.as_bytes(), offset)
    }

    /// Notes that something on `line` is wrong.
    pub(super) fn wrong(&mut self, line: usize, what: impl Into<String>) {
        self.complaints.push(Complaint {
            file: self.file.to_owned(),
            line,
            what: what.into(),
        });
    }
}

/// The line of the byte at `offset`, from 1.
fn line_at(text: &[u8], offset: usize) -> usize {
    let before = &text[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// What is at `path`, or so many bytes of it: devices have no end, and no length that says so.
fn at_most(path: &Path, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Scenario {
    /// The largest seed that a file may say. All numbers up to it are whole also as numbers with a fraction.
    pub const LARGEST_SEED: u64 = 9_000_000_000_000_000;

    /// Reads the scenario at `path`.
    ///
    /// # Errors
    /// Everything that is wrong with it, by line.
    pub fn load(path: &Path) -> Result<Self, Vec<Complaint>> {
        let name = path.display().to_string();
        let refuse = |line: usize, what: String| {
            vec![Complaint {
                file: name.clone(),
                line,
                what,
            }]
        };
        let bytes = at_most(path, MAX_LEN + 1).map_err(|error| {
            refuse(
                0,
                format!("cannot be read: {error}; name a scenario, such as those in scenarios/"),
            )
        })?;
        if bytes.len() as u64 > MAX_LEN {
            return Err(refuse(
                0,
                format!("is longer than {MAX_LEN} bytes, which no scenario is; name another file"),
            ));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let sound = error.utf8_error().valid_up_to();
            let line = line_at(error.as_bytes(), sound);
            let bad = error.as_bytes()[sound];
            let what = format!("the byte 0x{bad:02x} is not UTF-8 here; write the file in UTF-8");
            refuse(line, what)
        })?;
        Self::parse(&text, &name, path.parent().unwrap_or(Path::new(".")))
    }

    /// Reads `text`; `directory` is where a configuration that it names is looked for.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file: &str, directory: &Path) -> Result<Self, Vec<Complaint>> {
        let mut reader = Reader {
            text,
            file,
            drawn: false,
            complaints: Vec::new(),
        };
        let document = match text.parse::<Document<String>>() {
            Ok(document) => document,
            Err(error) => {
                let line = error.span().map_or(0, |span| reader.line_at(span.start));
                reader.wrong(line, error.message());
                return Err(reader.complaints);
            }
        };
        if document.as_table().is_empty() {
            reader.wrong(0, "says nothing; a scenario says at least its name");
        }
        let scenario = read(&mut reader, document.as_table(), directory);
        reader.complaints.sort_by_key(|c| (c.line, c.what.clone()));
        match scenario {
            Some(scenario) if reader.complaints.is_empty() => Ok(scenario),
            _ => Err(reader.complaints),
        }
    }
}

fn read(reader: &mut Reader<'_>, table: &dyn TableLike, directory: &Path) -> Option<Scenario> {
    let head = &mut Entry::new(reader, table, 1);
    let nothing = &Names::default();
    let name = head.text("name").unwrap_or_default();
    let taught = head.text("taught");
    let pair = configuration(head, directory);
    let seconds = number(0.001, LONGEST).scaled(1e9).or(60.0);
    let time = seconds.read(head, nothing, "seconds");
    let seed = whole(0, Scenario::LARGEST_SEED).or(1.0);
    let seed = seed.read(head, nothing, "seed");
    let storm = head.truth("storm");
    head.reader.drawn = head.truth("drawn");
    let breaks = head.text("breaks");
    if let Some(unknown) = breaks.as_deref().filter(|name| !INVARIANTS.contains(name)) {
        let known = INVARIANTS.join(", ");
        let what = format!("no invariant is called {unknown:?}; there are {known}");
        head.wrong("breaks", what);
    }
    let tables = head.item("fault");
    head.nothing_else();
    let (config, pair, configuration) = pair?;
    let faults = faults(head.reader, tables, &config, time);
    Some(Scenario {
        name,
        taught,
        config,
        pair,
        configuration,
        time,
        seed,
        storm,
        breaks,
        faults,
    })
}

/// The faults, by time.
fn faults(reader: &mut Reader<'_>, item: Option<&Item>, config: &Config, time: u64) -> Vec<Timed> {
    let mut faults = Vec::new();
    let tables = item.and_then(Item::as_array_of_tables);
    if let (Some(item), None) = (item, tables) {
        let line = reader.line(item);
        reader.wrong(line, "write each fault as a table of its own: [[fault]]");
    }
    for table in tables.into_iter().flatten() {
        let line = table.span().map_or(0, |span| reader.line_at(span.start));
        if let Some(timed) = kinds::fault(reader, table, line, config, time) {
            faults.push((line, timed));
        }
    }
    if !reader.drawn {
        for (line, what) in contradictions(config, &faults) {
            reader.wrong(line, what);
        }
    }
    let mut faults: Vec<Timed> = faults.into_iter().map(|(_, timed)| timed).collect();
    faults.sort_by_key(|timed| (timed.at, timed.until));
    faults
}

fn configuration(
    head: &mut Entry<'_, '_>,
    directory: &Path,
) -> Option<(Arc<Config>, String, Option<PathBuf>)> {
    let size = head.text("size");
    let Some(path) = head.text("configuration") else {
        return match size.as_deref() {
            None | Some("small") => Some((Size::Small.config(), "size = \"small\"".into(), None)),
            Some("large") => Some((Size::Large.config(), "size = \"large\"".into(), None)),
            Some(other) => {
                let what = format!("size = \"{other}\" is unknown; write \"small\" or \"large\"");
                head.wrong("size", what);
                None
            }
        };
    };
    if size.is_some() {
        head.wrong(
            "configuration",
            "give either size or configuration, not both",
        );
    }
    let path: PathBuf = directory.join(path);
    // Whoever prints the scenario anew does not know where it will lie.
    let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
    let pair = format!(
        "configuration = {}",
        quoted(&absolute.display().to_string())
    );
    match Config::load(&path) {
        Ok(config) => Some((Arc::new(config), pair, Some(path))),
        Err(problems) => {
            for problem in problems {
                head.wrong("configuration", problem.to_string());
            }
            None
        }
    }
}
