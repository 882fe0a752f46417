//! What the commands have in common that set up two hosts of their own on this machine.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bumpless_lab::iprp::LabError;
use clap::Args;
use serde_json::Value;

use crate::output::{self, Failure, INTERRUPTED, Outcome};
use crate::stop;

/// How a result is told.
#[derive(Debug, Args)]
pub struct Form {
    /// Print the result as JSON (schema bumpless.iprp.COMMAND/1, with the command's name)
    #[arg(long)]
    json: bool,
}

/// What decides over chance, and where a result is kept.
#[derive(Debug, Args)]
pub struct Kept {
    /// Draw losses and delays from this
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Keep everything here: run.json with raw data, tables.txt, report.html
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// What a command works with.
pub struct Means {
    /// This program's own file, whose daemons run on the hosts.
    pub binary: PathBuf,
    /// Set when it is to end early.
    pub stop: Arc<AtomicBool>,
}

/// What came of it.
pub struct Result {
    pub json: Value,
    pub text: String,
    /// What could not be written.
    pub failure: Option<String>,
    /// Whether everything that is promised was kept.
    pub held: bool,
    /// Whether it was ended early, and no promise was broken until then.
    pub ended_early: bool,
}

/// Why nothing came of it: ended early by the user, or not possible here.
pub fn failed(error: LabError) -> Failure {
    match error {
        LabError::Stopped => Failure::interrupted(error),
        LabError::Impossible(why) => Failure::refused(why),
    }
}

impl Form {
    /// Runs a command and tells its result: what was seen is told, whatever becomes of the files.
    pub fn tell(&self, run: impl FnOnce(Means) -> std::result::Result<Result, Failure>) -> Outcome {
        let result = Means::find().and_then(run);
        let result = result.map_err(|failure| failure.in_json(self.json))?;
        match self.json {
            true => output::print_line(&result.json),
            false => output::print_line(result.text.trim_end()),
        }
        if let Some(failure) = &result.failure {
            output::warn(failure);
        }
        Ok(ExitCode::from(result.status()))
    }
}

impl Result {
    fn status(&self) -> u8 {
        match (self.held, self.ended_early) {
            _ if self.failure.is_some() => 1,
            (_, true) => INTERRUPTED,
            (true, false) => 0,
            (false, false) => 1,
        }
    }
}

impl Means {
    fn find() -> std::result::Result<Self, Failure> {
        let binary = std::env::current_exe().map_err(|error| {
            Failure::refused(format_args!("cannot find this program's own file: {error}"))
        })?;
        Ok(Self {
            binary,
            stop: stop::stop_flag()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_end_has_a_status_of_its_own() {
        let result = |held: bool, ended_early: bool, failure: Option<&str>| Result {
            json: Value::Null,
            text: String::new(),
            failure: failure.map(str::to_owned),
            held,
            ended_early,
        };
        assert_eq!(result(true, false, None).status(), 0);
        assert_eq!(result(false, false, None).status(), 1);
        assert_eq!(result(false, true, None).status(), INTERRUPTED);
        assert_eq!(result(false, true, Some("no room")).status(), 1);
        assert_eq!(failed(LabError::Stopped).status(), INTERRUPTED);
        assert_eq!(failed(LabError::Impossible("why".into())).status(), 1);
    }
}
