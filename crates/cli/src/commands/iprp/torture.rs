//! `bumpless iprp torture`: what networks, hosts and people do to a replicated stream.

use std::path::PathBuf;

use bumpless_lab::iprp::torture::{TortureOptions, names, torture};
use clap::Args;

use super::lab::{self, Form, Kept};
use crate::output::{Failure, Outcome};

const REPETITIONS: u32 = 3;

/// Do to a replicated stream what networks, hosts and people do, each with each, and judge what arrives
///
/// Two hosts in namespaces of this machine, two networks, the real daemon on each host, a stream of 1,000 datagrams a second. One-sided
/// loss, skew and reordering, each with each, meet with cuts, flapping, restarts and kills of daemons, and the end of packet numbers.
/// Then what others are known to fail at, with iPRP and with those of them that can be had here (spec/iprp-lab.md). Needs root or user
/// namespaces, and iproute2. Nothing is left of it. Exit status 0 only if iPRP kept every promise; 130 if it was
/// ended early with none broken.
#[derive(Debug, Args)]
pub struct Torture {
    /// Only cases whose names begin with one of these
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    cases: Vec<String>,
    /// How often each case of the matrix is done; 3 if left out, 1 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repetitions: Option<u32>,
    /// A short run of the most telling cases, under a minute
    #[arg(long)]
    quick: bool,
    /// The folder with programs of others (bench/peers/iprp/build.sh)
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    form: Form,
}

impl Torture {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        self.form.tell(|means| {
            self.refuse_what_is_not_there()?;
            let options = TortureOptions {
                binary: means.binary,
                cases: self.cases.clone(),
                repetitions: self
                    .repetitions
                    .unwrap_or(if self.quick { 1 } else { REPETITIONS }),
                quick: self.quick,
                seed: self.kept.seed,
                peers: self.peers.clone(),
                output: self.kept.output.clone(),
                stop: means.stop,
            };
            let tortured = torture(&options).map_err(lab::failed)?;
            Ok(lab::Result {
                json: tortured.json,
                text: tortured.text,
                failure: tortured.output_failure,
                held: tortured.held,
                ended_early: tortured.ended_early,
            })
        })
    }

    fn refuse_what_is_not_there(&self) -> Result<(), Failure> {
        let names = names();
        let is_known = |case: &&String| names.iter().any(|name| name.starts_with(case.as_str()));
        if let Some(unknown) = self.cases.iter().find(|case| !is_known(case)) {
            return Err(Failure::usage(format_args!(
                "no case begins with '{unknown}'; there are: {}",
                names.join(", ")
            )));
        }
        if let Some(folder) = self.peers.as_ref().filter(|it| !it.is_dir()) {
            return Err(Failure::usage(format_args!(
                "--peers: there is no folder {}; bench/peers/iprp/build.sh makes bench/peers/iprp/bin",
                folder.display()
            )));
        }
        Ok(())
    }
}
