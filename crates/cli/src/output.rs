//! What every subcommand shares: failures with an exit status, what is printed, reading the configuration.

pub mod placement;
pub mod reception;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use bumpless_base::NodeId;
use bumpless_config::{Config, Problem};
use serde_json::{Value, json};

/// Exit status of what was interrupted and had found nothing wrong.
pub const INTERRUPTED: u8 = 130;

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    lines: Vec<String>,
    json: Option<Value>,
}

/// What a subcommand returns.
pub type Outcome = Result<ExitCode, Failure>;

impl Failure {
    /// Not done or refused: exit status 1.
    pub fn refused(message: impl Display) -> Self {
        Self {
            status: 1,
            lines: vec![format!("bumpless: {message}")],
            json: None,
        }
    }

    /// Wrong usage or configuration: exit status 2.
    pub fn usage(message: impl Display) -> Self {
        Self {
            status: 2,
            lines: vec![format!("bumpless: {message}")],
            json: None,
        }
    }

    /// Ended early by the user, and nothing was found wrong until then.
    pub fn interrupted(message: impl Display) -> Self {
        Self {
            status: INTERRUPTED,
            lines: vec![format!("bumpless: {message}")],
            json: None,
        }
    }

    fn configuration(problems: &[Problem], as_json: bool) -> Self {
        Self::file(problems, "bumpless.check/1", as_json)
    }

    /// Problems in a file: exit status 2; as JSON of `schema` if that is wanted.
    pub fn file(problems: &[Problem], schema: &str, as_json: bool) -> Self {
        let mut lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let noun = if problems.len() == 1 {
            "problem"
        } else {
            "problems"
        };
        lines.push(format!(
            "bumpless: {} {noun} in the configuration; nothing was started",
            problems.len()
        ));
        let json = as_json.then(|| json!({"schema": schema, "ok": false, "problems": problems}));
        Self {
            status: 2,
            lines,
            json,
        }
    }

    /// A configuration to which a running pair cannot change: exit status 1.
    pub fn configuration_change(problems: &[Problem], as_json: bool) -> Self {
        let mut failure = Self::configuration(problems, as_json);
        failure.status = 1;
        if let Some(last) = failure.lines.last_mut() {
            *last =
                "bumpless: the pair cannot change to it while it runs; nothing has changed".into();
        }
        failure
    }

    /// The same failure, where a pair or a daemon runs that goes on as it was.
    pub fn of_what_runs(mut self) -> Self {
        if let Some(last) = self.lines.last_mut() {
            *last = last.replace("nothing was started", "nothing has changed");
        }
        self
    }

    /// The same failure with one more line, about what it has left behind.
    pub fn followed_by(mut self, line: impl Display) -> Self {
        self.lines.push(line.to_string());
        self
    }

    /// The same failure, printed as `bumpless.error/1` if `wanted` and not JSON already.
    pub fn in_json(mut self, wanted: bool) -> Self {
        if wanted && self.json.is_none() {
            self.json = Some(self.as_json());
        }
        self
    }

    /// The exit status.
    pub const fn status(&self) -> u8 {
        self.status
    }

    /// What is said of it to people.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The same as `bumpless.error/1`.
    pub fn as_json(&self) -> Value {
        let error = self.lines.join("\n");
        error_object(error.strip_prefix("bumpless: ").unwrap_or(&error))
    }

    /// Prints the failure and gives the exit status.
    pub fn report(self) -> ExitCode {
        if let Some(json) = &self.json {
            print_line(json);
        } else {
            for line in &self.lines {
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
        ExitCode::from(self.status())
    }
}

/// Says `message` on standard error, where that can be written.
pub fn warn(message: impl Display) {
    remark(format_args!("bumpless: {message}"));
}

/// The same of a whole line, as those of a [`Failure`] are.
pub fn remark(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn error_object(error: &str) -> Value {
    json!({"schema": "bumpless.error/1", "error": error})
}

/// Prints `error` as `bumpless.error/1`.
pub fn print_error(error: &str) {
    print_line(error_object(error));
}

/// What first kept a line from standard output.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Prints one line on standard output. Whether it could is told by [`finish`]: commands go on without their reader.
pub fn print_line(line: impl Display) {
    note(writeln!(io::stdout(), "{line}"));
}

/// Prints `text` at once; whether it could, so that what would go on for ever ends with its reader.
pub fn print_text(text: &str) -> bool {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let is_written = written.is_ok();
    note(written);
    is_written
}

fn note(written: io::Result<()>) {
    match written {
        // Whoever closed the pipe has read what they wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = UNWRITTEN.set(error);
        }
        _ => {}
    }
}

/// What was done and stays done, whether anybody reads of it or not.
static DONE: OnceLock<String> = OnceLock::new();

/// Remembers what this command has done, for the case that its result cannot be written: it is not to be asked again.
pub fn done(what: impl Display) {
    let _ = DONE.set(what.to_string());
}

/// The exit status of a command that would end with `status`: a success only if standard output took all of it.
pub fn finish(status: ExitCode) -> ExitCode {
    note(io::stdout().flush());
    let Some(error) = UNWRITTEN.get() else {
        return status;
    };
    let remedy = match DONE.get() {
        Some(done) => format!("but {done}: do not ask for that again"),
        None => "it is not whole: make room there or send it elsewhere, and ask again".to_owned(),
    };
    warn(format_args!(
        "cannot write the result to standard output: {error}; {remedy}"
    ));
    if status == ExitCode::SUCCESS {
        ExitCode::from(1)
    } else {
        status
    }
}

/// Writes `text` to `path`: wholly, or not at all.
pub fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    bumpless_guarded_file::write_whole(path, text.as_bytes()).map_err(|error| {
        Failure::refused(format_args!(
            "cannot write {}: {error}; name a file in a directory that may be written to",
            path.display()
        ))
    })
}

/// Reads and checks the configuration at `path`.
pub fn load(path: &Path, as_json: bool) -> Result<Config, Failure> {
    read(path, as_json, Config::parse)
}

/// The same for a plan, which says itself what is too much for the networks.
pub fn load_to_plan(path: &Path, as_json: bool) -> Result<Config, Failure> {
    read(path, as_json, Config::parse_to_plan)
}

type Parse = fn(&str, &str) -> Result<Config, Vec<Problem>>;

fn read(path: &Path, as_json: bool, parse: Parse) -> Result<Config, Failure> {
    Config::read_text(path)
        .and_then(|text| parse(&text, &path.display().to_string()))
        .map_err(|problems| Failure::configuration(&problems, as_json))
}

/// The node called `name` in `config`.
pub fn find_node(config: &Config, name: &str) -> Result<NodeId, Failure> {
    config.node(name).ok_or_else(|| {
        let names: Vec<_> = config.nodes.iter().map(|node| node.name.as_str()).collect();
        Failure::usage(format_args!(
            "no node is called '{name}'; the configuration has {}",
            names.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_file_changes_nothing_where_something_runs_with_it() {
        let problem = Problem {
            file: "host.toml".into(),
            line: 1,
            field: "host".into(),
            wrong: "is missing".into(),
            right: "add it".into(),
        };
        let failure = Failure::file(&[problem], "bumpless.guard.check/1", false).of_what_runs();
        let said = failure.lines().join("\n");
        assert!(said.ends_with("1 problem in the configuration; nothing has changed"));
        assert_eq!(failure.status(), 2);
    }
}
