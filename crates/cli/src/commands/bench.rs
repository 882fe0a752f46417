//! `bumpless bench`: our transfer beside what else one would use for it.

use std::net::IpAddr;
use std::process::ExitCode;

use bumpless_base::Duration;
use bumpless_bench::peer::{self, Kind, PeerOptions, Side};
use clap::{Args, Subcommand, ValueEnum};

use crate::output::{Failure, Outcome};

/// Measure state transfer against TCP, MPTCP and other protocols
#[derive(Debug, Args)]
#[command(hide = true, args_conflicts_with_subcommands = true)]
pub struct Bench {
    #[command(subcommand)]
    inner: Option<Inner>,
}

#[derive(Debug, Subcommand)]
enum Inner {
    #[command(hide = true)]
    Peer(Peer),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindName {
    Transfer,
    Tcp,
    TcpTuned,
    Mptcp,
}

/// One side of a program that is measured; speaks the conversation of spec/bench.md
#[derive(Debug, Args)]
struct Peer {
    /// What carries the states
    kind: KindName,
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
            None => Err(Failure::usage("not there yet")),
        }
    }
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
            kind: match self.kind {
                KindName::Transfer => Kind::Transfer,
                KindName::Tcp => Kind::Tcp,
                KindName::TcpTuned => Kind::TcpTuned,
                KindName::Mptcp => Kind::Mptcp,
            },
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
