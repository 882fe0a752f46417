//! `bumpless wan study`: the fifth paper's study of failovers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

use bumpless_lab::study::{self, Study, StudyOptions};
use bumpless_wan::emulation::{Line, Place, Routing};
use clap::Args;

use super::kept::{self, Keeping};
use super::{Network, network};
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Measure failovers over the network, with every transport that this machine has and with ours (fifth paper, V)
///
/// Messages of 1,000 bytes every 50 ms, echoed, between a control centre and substations; the way dies at random after a
/// quarter to a half of a run, without anybody being told, and is back after as long. All of it is measured without background
/// traffic and beside it. It takes root, and leaves nothing.
/// Exit status 0 only if everything planned was measured and every promise of ours held.
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    network: Network,
    /// Name of the network meanwhile
    #[arg(long, default_value = "study")]
    name: String,
    /// Who decides where packets go: fixed routes with the fewest hops, or ospf, the daemon BIRD on each router with BFD
    #[arg(long, value_name = "WHO", default_value = "fixed", value_parser = network::routing_with_outages)]
    routing: Routing,
    /// Runs of each case
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,
    /// Seconds of a run
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// Runs side by side at most, each with a substation of its own
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=60))]
    side_by_side: u32,
    /// Make all runs once more beside so many messages of others a second, from all substations to the control centre; 0: do not
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    background: u32,
    /// Only these transports, such as tcp,redundant-tcp
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = transport)]
    transports: Vec<String>,
    /// Programs that are built apart, as bench/peers/build.sh makes them: echo-quinn for QUIC, echo-tquic for QUIC over both ways, echo-usrsctp for SCTP
    #[arg(long, value_name = "DIRECTORY")]
    peers_dir: Option<PathBuf>,
    /// Only with this backup: ethernet or lte
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kept::line)]
    backups: Vec<Line>,
    /// Capture the first run of each case without background traffic at both ends, into this directory; it takes processor time
    #[arg(long, value_name = "DIRECTORY")]
    captures: Option<PathBuf>,
    /// What all chance is drawn from; the time if left out
    #[arg(long)]
    seed: Option<u64>,
    /// Write study.json, outages.csv, tables.txt and report.html into this directory
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Measure nothing: show a kept study.json again
    #[arg(long, value_name = "FILE")]
    show: Option<PathBuf>,
    /// Print the result as JSON (schema bumpless.wan-study/1)
    #[arg(long)]
    pub json: bool,
}

fn transport(text: &str) -> Result<String, String> {
    match study::is_transport(text) {
        true => Ok(text.to_owned()),
        false => {
            let known: Vec<_> = study::transports().collect();
            Err(format!("give {}", known.join(", ")))
        }
    }
}

/// Whether a directory has a file that a capture may be.
fn has_captures(folder: &Path) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = files.map(|it| it.path());
    names.any(|it| it.extension().is_some_and(|it| it == "pcapng"))
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let keeping = Keeping {
            output: self.output.as_deref(),
            show: self.show.as_deref(),
            json: self.json,
        };
        kept::run(keeping, || self.measure())
    }

    fn measure(&self) -> Result<Study, Failure> {
        kept::without_pool(&self.network, "a study has")?;
        let topology = self.network.topology()?;
        if let Some(folder) = &self.captures {
            fs::create_dir_all(folder).map_err(|error| {
                Failure::refused(format_args!(
                    "cannot make {}: {error}; give another directory with --captures",
                    folder.display()
                ))
            })?;
            if has_captures(folder) {
                return Err(Failure::refused(format_args!(
                    "{} has captures already, and none is written over; give another directory with --captures",
                    folder.display()
                )));
            }
        }
        let options = StudyOptions {
            binary: env::current_exe().map_err(Failure::refused)?,
            place: Place::new(&self.name).map_err(Failure::usage)?,
            topology,
            routing: self.routing,
            transports: self.transports.clone(),
            peers: self.peers_dir.clone(),
            backups: match self.backups.is_empty() {
                true => vec![Line::Ethernet, Line::Lte],
                false => self.backups.clone(),
            },
            runs: self.runs,
            seconds: self.seconds,
            side_by_side: self.side_by_side as usize,
            background: self.background,
            captures: self.captures.clone(),
            seed: self.seed.unwrap_or_else(kept::time_as_seed),
            stop: stop::stop_flag()?,
        };
        // A line for each tenth.
        let told = AtomicUsize::new(0);
        let tell = |done: usize, of: usize| {
            let tenth = done * 10 / of;
            if told.fetch_max(tenth, Ordering::Relaxed) < tenth {
                output::warn(format_args!("{done} of {of} runs done"));
            }
        };
        study::run_study(&options, &tell).map_err(Failure::refused)
    }
}
