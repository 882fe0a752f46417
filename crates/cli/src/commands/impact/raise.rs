//! `bumpless impact raise`: a flow that matters beside a flood that is raised, on this computer.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_lab::flood::{self, RaiseOptions, SECONDS_MAX, TIMES_MAX};
use bumpless_lab::kept::Head;
use clap::Args;
use serde_json::{Value, json};

use super::{can_be_written, progress_line};
use crate::output::{self, Failure, INTERRUPTED, Outcome};
use crate::stop;

/// Raise a flood on this computer to several times what ends a flow without a guard, and see what the flow keeps with one
///
/// In network namespaces that nobody but this process has, so that nothing is left. The flow: a packet each millisecond for a task that reads at the
/// beginning of each period of 10 ms, and one for a thread that waits for it. The flood comes to the task's port from a stranger. Beside
/// it stands the dissertation's figure 5.18 as the model has it. It takes root and two processors. Exit status 0: with the guard all that came as
/// far as that was had. 1: it was not, or nothing ends the flow without, or this computer cannot do it. 2: wrong usage. 130: ended early.
#[derive(Debug, Args)]
pub struct Raise {
    /// How many times the rate that ends the flow without a guard
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=TIMES_MAX))]
    times: u64,
    /// For each step
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: u64,
    /// What a job of the task takes of its period of 10 ms, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=90))]
    work: u64,
    /// Write a page with pictures
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the result as JSON (schema bumpless.impact-raised/1)
    #[arg(long)]
    json: bool,
}

impl Raise {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        self.report.as_deref().map_or(Ok(()), can_be_written)?;
        let head = Head::begin(bumpless_impact::raised::SCHEMA);
        let options = RaiseOptions {
            times: self.times,
            seconds: self.seconds,
            work_percent: self.work,
            stop: stop::stop_flag()?,
        };
        let mut line = progress_line();
        let mut told = |step: &str| line.show(|_| step.to_owned());
        let raised = flood::raise(&options, &mut told);
        line.end();
        let raised = raised.map_err(Failure::refused)?;
        // What was measured is told, whatever becomes of the file.
        match self.json {
            true => output::print_line(with_head(&head, raised.json())),
            false => raised.lines().into_iter().for_each(output::print_line),
        }
        if let Some(file) = &self.report {
            output::write_whole(file, &raised.page(&head.told()))?;
        }
        let holds = raised.end().is_some() && raised.lost_with_guard() == 0;
        Ok(ExitCode::from(match raised.interrupted {
            true => INTERRUPTED,
            false => u8::from(!holds),
        }))
    }
}

/// The result behind the host, the commit and the command.
fn with_head(head: &Head, result: Value) -> Value {
    let mut all = json!({
        "began_unix_s": head.began_unix_s,
        "command": head.command,
        "version": head.version,
        "commit": head.commit,
        "host": head.host,
    });
    if let (Some(all), Value::Object(result)) = (all.as_object_mut(), result) {
        all.extend(result);
    }
    all
}
