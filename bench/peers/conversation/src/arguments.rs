//! The command line that every peer has.

use std::net::Ipv4Addr;
use std::path::Path;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[derive(Parser)]
#[command(about = "A peer of the benchmark; bench/peers/README.md says what it answers")]
pub struct CommandLine {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Receive states and acknowledge them until standard input ends
    Receive(Receive),
    /// Connect and obey the orders on standard input
    Send(Send),
    /// Print the library's version
    Version,
}

#[derive(Args)]
pub struct Receive {
    /// Own addresses, one for each network
    #[arg(long, value_delimiter = ',', required = true)]
    listen: Vec<Ipv4Addr>,
    #[command(flatten)]
    both: Both,
}

#[derive(Args)]
pub struct Send {
    /// The receiver's addresses, one for each network
    #[arg(long, value_delimiter = ',', required = true)]
    to: Vec<Ipv4Addr>,
    /// Own addresses, one for each network
    #[arg(long, value_delimiter = ',', required = true)]
    from: Vec<Ipv4Addr>,
    #[command(flatten)]
    both: Both,
}

#[derive(Args)]
struct Both {
    /// The receiver's port; a peer may use a few ports above it too
    #[arg(long)]
    port: u16,
    /// Number of channels
    #[arg(long, default_value_t = 1)]
    channels: usize,
    /// All channels over one connection, or one connection for each
    #[arg(long, value_enum, default_value_t = Connections::Single)]
    connections: Connections,
    /// Bytes of the largest state
    #[arg(long)]
    max_size: usize,
    /// Count allocations for the order `cost`
    #[arg(long)]
    count: bool,
}

/// How channels share connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Connections {
    /// All channels over one connection.
    Single,
    /// One connection per channel.
    Many,
}

/// What a peer is told.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Own addresses, one for each network.
    pub local: Vec<Ipv4Addr>,
    /// The receiver's addresses; empty when receiving.
    pub remote: Vec<Ipv4Addr>,
    /// The receiver's port.
    pub port: u16,
    /// Number of channels.
    pub channels: usize,
    /// How channels share connections.
    pub connections: Connections,
    /// Bytes of the largest state.
    pub max_size: usize,
    /// Whether the program was called by its name with `-tuned`.
    pub tuned: bool,
}

impl Arguments {
    /// The number of connections that the sender opens.
    pub fn connection_count(&self) -> usize {
        match self.connections {
            Connections::Single => 1,
            Connections::Many => self.channels,
        }
    }

    /// The connection that carries a channel.
    pub fn connection_of(&self, channel: usize) -> usize {
        match self.connections {
            Connections::Single => 0,
            Connections::Many => channel,
        }
    }

    /// What a peer for one network adds to its settings.
    pub fn one_network_note(&self) -> &'static str {
        if self.local.len() > 1 {
            "; uses the first network only"
        } else {
            ""
        }
    }
}

impl CommandLine {
    pub fn count(&self) -> bool {
        match &self.command {
            Command::Receive(receive) => receive.both.count,
            Command::Send(send) => send.both.count,
            Command::Version => false,
        }
    }
}

impl From<Receive> for Arguments {
    fn from(receive: Receive) -> Self {
        receive.both.arguments(receive.listen, Vec::new())
    }
}

impl From<Send> for Arguments {
    fn from(send: Send) -> Self {
        send.both.arguments(send.from, send.to)
    }
}

impl Both {
    fn arguments(self, local: Vec<Ipv4Addr>, remote: Vec<Ipv4Addr>) -> Arguments {
        Arguments {
            local,
            remote,
            port: self.port,
            channels: self.channels,
            connections: self.connections,
            max_size: self.max_size,
            tuned: program_name().ends_with("-tuned"),
        }
    }
}

/// The name by which the program was called.
pub fn program_name() -> String {
    let path = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&path).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
