//! `bumpless iprp demo`: a stream that survives the loss of a network, and its picture.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bumpless_lab::iprp::demo::{DemoOptions, run};
use clap::Args;

use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Show a stream between two ordinary programs that goes on while one of two networks is cut
///
/// Starts two hosts as namespaces of this machine with a daemon on each, joins them by two networks, sends a stream and cuts one
/// network in its middle third. Needs root or user namespaces, and iproute2. Nothing is left of it. Exit status 0
/// only if nothing was lost and nothing came twice, and the picture was written.
#[derive(Debug, Args)]
pub struct Demo {
    /// Write the picture to this file
    #[arg(long, value_name = "FILE", default_value = "iprp-demo.html")]
    report: PathBuf,
    /// How long the stream takes, seconds
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Print the result as JSON (schema bumpless.iprp.demo/1)
    #[arg(long)]
    json: bool,
}

impl Demo {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let binary = std::env::current_exe().map_err(|error| {
            Failure::refused(format_args!("cannot find this program's own file: {error}"))
        })?;
        let result = run(&DemoOptions {
            binary,
            report: self.report,
            length: Duration::from_secs(self.seconds),
            stop: stop::stop_flag()?,
        })
        .map_err(Failure::refused)?;
        match self.json {
            true => output::print_line(&result.json),
            false => output::print_line(&result.text),
        }
        if let Some(failure) = &result.report_failure {
            output::warn(failure);
        }
        let done = result.held && result.report_failure.is_none();
        Ok(ExitCode::from(u8::from(!done)))
    }
}
