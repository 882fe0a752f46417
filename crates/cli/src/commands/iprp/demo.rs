//! `bumpless iprp demo`: a stream that survives the loss of a network, and its picture.

use std::path::PathBuf;
use std::time::Duration;

use bumpless_lab::iprp::demo::{DemoOptions, run};
use clap::Args;

use super::lab::{self, Form};
use crate::output::Outcome;

/// Show a stream between two ordinary programs that goes on while one of two networks is cut
///
/// Starts two hosts as namespaces of this machine with a daemon on each, joins them by two networks, sends a stream and cuts one
/// network in its middle third. Needs root or user namespaces, and iproute2. Nothing is left of it. Exit status 0
/// only if nothing was lost and nothing came twice, and the picture was written; 130 if it was ended early.
#[derive(Debug, Args)]
pub struct Demo {
    /// Write the picture to this file
    #[arg(long, value_name = "FILE", default_value = "iprp-demo.html")]
    report: PathBuf,
    /// How long the stream takes, seconds
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    #[command(flatten)]
    form: Form,
}

impl Demo {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        self.form.tell(|means| {
            let options = DemoOptions {
                binary: means.binary,
                report: self.report.clone(),
                length: Duration::from_secs(self.seconds),
                stop: means.stop,
            };
            let shown = run(&options).map_err(lab::failed)?;
            Ok(lab::Result {
                json: shown.json,
                text: shown.text,
                failure: shown.report_failure,
                held: shown.held,
                ended_early: false,
            })
        })
    }
}
