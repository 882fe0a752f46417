//! `bumpless bench`: our transfer beside what else one would use for it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration as Span;

use bumpless_base::Duration;
use bumpless_bench::output_folder::OutputFolder;
use bumpless_bench::peer::{self, Kind, PeerOptions, Side};
use bumpless_bench::plan::{CaseKind, Options};
use bumpless_bench::result::{Run, SCHEMA};
use bumpless_bench::run::cyclic::SteadyLoss;
use bumpless_bench::run::loss::LossCase;
use bumpless_bench::{bench, report};
use clap::{Args, Subcommand, ValueEnum};

use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Measure state transfer beside TCP, MPTCP and whatever else one would use for it
///
/// Without --quick it needs root, for two network namespaces of its own with two networks of 1 Gbit/s
/// between them, in which it loses packets; nothing else of the computer is touched, and nothing is
/// left. Exit status 0 if everything planned was measured.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Bench {
    #[command(subcommand)]
    inner: Option<Inner>,
    /// A short run over loopback, without root or loss; takes under three minutes
    #[arg(long)]
    quick: bool,
    /// Only these peers
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    peers: Vec<String>,
    /// Programs of further peers, as bench/peers/build.sh makes them
    #[arg(long, value_name = "DIRECTORY")]
    peers_dir: Option<PathBuf>,
    /// Which of those use both networks [default: tquic, tquic-tuned and cyclonedds-tuned, as far as they are there]
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        requires = "peers_dir"
    )]
    multipath: Option<Vec<String>>,
    /// Only these cases
    #[arg(long, value_name = "CASE", value_delimiter = ',', value_parser = case)]
    cases: Vec<CaseKind>,
    /// Sizes of transfers: bytes, or with KB or MB as powers of 2; those of table 13 if left out
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = size)]
    sizes: Vec<usize>,
    /// Losses of transfers: none, first, last, middle-1, middle-5, middle-10, random-1-percent
    #[arg(long, value_name = "LOSS", value_delimiter = ',', value_parser = loss)]
    losses: Vec<LossCase>,
    /// Losses beside which many applications run: one-per-second, as in the paper's table 22, or random-1-percent;
    /// both if left out
    #[arg(long, value_name = "LOSS", value_delimiter = ',', value_parser = steady_loss)]
    steady_losses: Vec<SteadyLoss>,
    /// Only with one connection for all sizes or channels, or with one for each
    #[arg(long, value_name = "KIND")]
    connections: Option<Connections>,
    /// Transfers of each size with each loss that no stall of the machine touches; 100 if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    iterations: Option<u32>,
    /// Start no more transfers of one size and loss after this many seconds; if left out, 300 where the first or the
    /// last packet is lost, so that peers that wait for a timer come to as many, too, and 20 elsewhere
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    limit: Option<u64>,
    /// How long each run of many applications lasts; the paper's took an hour (3600)
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Longest time processors may take to wake, for every peer; 0 keeps them awake, as one does where
    /// latency counts. Needs the permission to write /dev/cpu_dma_latency
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u16).range(0..=10_000))]
    wake_latency: Option<u16>,
    /// Write run.json, tables.txt and report.html into this directory
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Measure nothing: show a kept run.json again
    #[arg(long, value_name = "FILE")]
    show: Option<PathBuf>,
    /// Print the result as JSON (schema bumpless.bench/1)
    #[arg(long)]
    json: bool,
}

fn case(text: &str) -> Result<CaseKind, String> {
    let found = CaseKind::ALL.into_iter().find(|case| case.name() == text);
    found.ok_or_else(|| format!("give {}", CaseKind::ALL.map(CaseKind::name).join(", ")))
}

fn steady_loss(text: &str) -> Result<SteadyLoss, String> {
    let found = SteadyLoss::LOSSY
        .into_iter()
        .find(|loss| loss.name() == text);
    found.ok_or_else(|| {
        format!(
            "give {}",
            SteadyLoss::LOSSY.map(SteadyLoss::name).join(" or ")
        )
    })
}

fn loss(text: &str) -> Result<LossCase, String> {
    let found = LossCase::ALL.into_iter().find(|loss| loss.name() == text);
    found.ok_or_else(|| format!("give {}", LossCase::ALL.map(LossCase::name).join(", ")))
}

fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = match text {
        _ if text.ends_with("MB") => (&text[..text.len() - 2], 1 << 20),
        _ if text.ends_with("KB") => (&text[..text.len() - 2], 1 << 10),
        _ => (text, 1),
    };
    let size = number
        .trim()
        .parse::<usize>()
        .ok()
        .and_then(|n| n.checked_mul(unit));
    size.filter(|size| (16..=64 << 20).contains(size))
        .ok_or_else(|| "give bytes, such as 800, 10KB or 1MB, from 16 to 64MB".into())
}

#[derive(Debug, Subcommand)]
enum Inner {
    #[command(hide = true)]
    Peer(Peer),
}

fn kind(text: &str) -> Result<Kind, String> {
    let names = || Kind::ALL.map(Kind::name).join(", ");
    Kind::named(text).ok_or_else(|| format!("give one of {}", names()))
}

/// One side of a program that is measured; speaks the conversation of spec/bench.md
#[derive(Debug, Args)]
struct Peer {
    /// What carries the states
    #[arg(value_parser = kind)]
    kind: Kind,
    #[command(subcommand)]
    side: PeerSide,
}

#[derive(Debug, Subcommand)]
enum PeerSide {
    /// Receives states
    Receive {
        /// Addresses to listen at, one for each network
        #[arg(long, value_delimiter = ',', required = true)]
        listen: Vec<IpAddr>,
        /// Ours only: the sender's addresses
        #[arg(long, value_delimiter = ',')]
        partner: Vec<IpAddr>,
        #[command(flatten)]
        common: Common,
    },
    /// Sends states and takes orders
    Send {
        /// The receiver's addresses, one for each network
        #[arg(long, value_delimiter = ',', required = true)]
        to: Vec<IpAddr>,
        /// Own addresses, one for each network
        #[arg(long, value_delimiter = ',', required = true)]
        from: Vec<IpAddr>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Args)]
struct Common {
    /// UDP or TCP port
    #[arg(long)]
    port: u16,
    /// Number of channels
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    channels: u32,
    /// Whether all channels share one connection or each has its own
    #[arg(long, default_value = "single")]
    connections: Connections,
    /// Largest state, bytes
    #[arg(long)]
    max_size: u32,
    /// Ours only: what the link carries; 0 = not paced
    #[arg(long, default_value_t = 0)]
    bandwidth_mbit: u32,
    /// Ours only: share packets out over the networks
    #[arg(long)]
    spread: bool,
    /// Ours only: deadlines of the channels, microseconds
    #[arg(long, value_delimiter = ',')]
    deadlines_us: Vec<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum, PartialEq, Eq)]
enum Connections {
    Single,
    Many,
}

impl Bench {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.inner {
            Some(Inner::Peer(peer)) => peer.run(),
            None => {
                let json = self.json;
                self.measure().map_err(|failure| failure.in_json(json))
            }
        }
    }

    fn measure(self) -> Outcome {
        let folder = self.output.as_deref().map(OutputFolder::find);
        let folder = folder.transpose().map_err(Failure::refused)?;
        let run = match &self.show {
            Some(file) => read(file)?,
            None => {
                let options = self.options()?;
                options.chosen_peers().map_err(Failure::usage)?;
                bench::measure(&options).map_err(Failure::refused)?
            }
        };
        if self.json {
            let json = serde_json::to_value(&run).map_err(Failure::refused)?;
            output::print_line(json);
        } else {
            output::print_line(report::text(&run).trim_end());
        }
        // What was measured is told, whatever becomes of the files.
        if let Some(folder) = &folder {
            report::write(&run, folder).map_err(Failure::refused)?;
        }
        Ok(ExitCode::from(u8::from(!run.complete)))
    }

    fn options(&self) -> Result<Options, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::refused(format_args!("cannot find this program's own file: {error}"))
        })?;
        Ok(Options {
            program,
            quick: self.quick,
            peers: self.peers.clone(),
            peers_dir: self.peers_dir.clone(),
            multipath: self.multipath.clone(),
            cases: self.cases.clone(),
            sizes: self.sizes.clone(),
            losses: self.losses.clone(),
            steady_losses: self.steady_losses.clone(),
            many: self.connections.map(|kind| kind == Connections::Many),
            iterations: self.iterations.map(|n| n as usize),
            cell_limit: self.limit.map(Span::from_secs),
            span: Span::from_secs(self.seconds),
            wake_latency: self.wake_latency,
            silent: false,
            stop: stop::stop_flag()?,
        })
    }
}

/// A kept run.
fn read(file: &Path) -> Result<Run, Failure> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format_args!(
                "cannot read {name}: {error}; name the run.json of a run (bench/runs keeps them packed: xz -dk)"
            )))?;
    let run: Run = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format_args!("{name} is no kept run: {error}")))?;
    if run.schema != SCHEMA {
        return Err(Failure::usage(format_args!(
            "{name} has the schema '{}'; this program reads '{SCHEMA}'",
            run.schema
        )));
    }
    Ok(run)
}

impl Peer {
    fn run(self) -> Outcome {
        let (side, from, to, common) = match self.side {
            PeerSide::Receive {
                listen,
                partner,
                common,
            } => (Side::Receive, partner, listen, common),
            PeerSide::Send { to, from, common } => (Side::Send, from, to, common),
        };
        let options = PeerOptions {
            kind: self.kind,
            from,
            to,
            port: common.port,
            channels: common.channels,
            many: common.connections == Connections::Many,
            max_size: common.max_size,
            bandwidth_mbit: common.bandwidth_mbit,
            spread: common.spread,
            deadlines: common
                .deadlines_us
                .into_iter()
                .map(Duration::from_micros)
                .collect(),
        };
        peer::run(side, &options).map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}
