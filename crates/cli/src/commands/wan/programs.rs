//! `bumpless wan programs`: unmodified programs of many substations across the network, while parts of it die.

use std::env;
use std::path::PathBuf;

use bumpless_lab::programs::{self, Programs, ProgramsOptions};
use bumpless_wan::emulation::{Line, Place, Routing};
use clap::Args;

use super::kept::{self, Keeping};
use super::{Network, network};
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Have real programs of many substations talk to two control centres, while routers and the primary centre die
///
/// IEC 60870-5-104 by c104, Modbus TCP by pymodbus, streams of phasors by C37.118: first without iPRP, then with the daemon at
/// each host. A backbone router pair dies, then a whole loop, then the primary control centre, and nobody is told. A program that
/// is missing is named, with how to get it. It takes root, and leaves nothing. Exit status 0 only if nothing that iPRP
/// protects was lost (spec/wan.md, U-90 and further).
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    network: Network,
    /// Name of the network meanwhile
    #[arg(long, default_value = "programs")]
    name: String,
    /// Who decides where packets go: fixed routes with the fewest hops, or ospf, the daemon BIRD on each router with BFD
    #[arg(long, value_name = "WHO", default_value = "fixed", value_parser = network::routing_with_outages)]
    routing: Routing,
    /// An interpreter of Python that has c104 and pymodbus
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
    /// Substations at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    substations: u16,
    /// How long each outage lasts; afterwards it is waited for twice as long
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=300))]
    seconds: u64,
    /// Between two orders or questions of a centre to a substation, and two reports of it
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    every_ms: u64,
    /// Frames of phasors that each substation sends to each centre in a second
    #[arg(long, value_name = "N", default_value = "10", value_parser = ["1", "2", "5", "10", "25", "50", "100"])]
    frames: String,
    /// What the second way of each host is like: ethernet or lte
    #[arg(long, value_name = "KIND", default_value = "lte", value_parser = kept::line)]
    backup: Line,
    /// What all chance is drawn from; the time if left out
    #[arg(long)]
    seed: Option<u64>,
    /// Write programs.json, tables.txt and report.html into this directory
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Run nothing: show a kept programs.json again
    #[arg(long, value_name = "FILE")]
    show: Option<PathBuf>,
    /// Print the result as JSON (schema bumpless.wan-programs/1)
    #[arg(long)]
    pub json: bool,
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

    fn measure(&self) -> Result<Programs, Failure> {
        kept::without_pool(&self.network, "the command has")?;
        if self.network.file.is_some() {
            return Err(Failure::usage(
                "what dies is found by the names of a generated network; leave --file out, and say --backbone-pairs, --loop-pairs and --chain-routers",
            ));
        }
        let options = ProgramsOptions {
            binary: env::current_exe().map_err(Failure::refused)?,
            place: Place::new(&self.name).map_err(Failure::usage)?,
            topology: self.network.topology()?,
            routing: self.routing,
            backbone_pairs: self.network.backbone_pairs,
            python: self.python.clone(),
            substations: usize::from(self.substations),
            seconds: self.seconds,
            every_ms: self.every_ms,
            frames_each_second: self.frames.parse().map_err(Failure::usage)?,
            backup: self.backup,
            seed: self.seed.unwrap_or_else(kept::time_as_seed),
            stop: stop::stop_flag()?,
        };
        let tell = |what: &str| output::warn(format_args!("{what}"));
        programs::run_programs(&options, &tell).map_err(Failure::refused)
    }
}
