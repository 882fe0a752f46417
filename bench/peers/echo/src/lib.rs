//! What the programs of the study of failovers have in common (`spec/wan.md`, U-58): their words, and when which message is due.

mod clock;
mod talk;

use std::io;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{Args, Parser};

pub use clock::now;
pub use talk::Talk;

/// Bytes of a message.
pub const MESSAGE: usize = 1000;
/// How long a first connection may take.
pub const ESTABLISHED: Duration = Duration::from_secs(5);

/// What such a program is asked for
#[derive(Debug, Parser)]
enum Order {
    /// Say which version of the library it has
    Version,
    /// Send back what comes
    Serve(Serve),
    /// Send messages, and tell when their answers came
    Call(Call),
}

/// The server's end.
#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// Where to listen, on the network
    pub address: Ipv4Addr,
    /// And at which port
    pub port: u16,
    /// Where to listen on the backup
    pub backup: Ipv4Addr,
}

/// The client's.
#[derive(Clone, Debug, Args)]
pub struct Call {
    /// Its own address on the network
    pub from: Ipv4Addr,
    /// The server's
    pub to: Ipv4Addr,
    /// The server's port
    pub port: u16,
    /// Its own address on the backup
    pub backup_from: Ipv4Addr,
    /// The server's
    pub backup_to: Ipv4Addr,
    /// How many messages
    pub messages: usize,
    /// The first one leaves so long after the connection is there, microseconds
    pub after_us: u64,
    /// An answer that is later sends it to the backup, milliseconds
    pub timeout_ms: u64,
}

/// Says that the server listens.
pub fn say_listening() {
    println!("{{\"listening\": true}}");
}

/// Does what the command line asks for. `library`: its version; `serve` ends by an error only.
pub fn run(
    library: &str,
    serve: impl FnOnce(&Serve) -> anyhow::Result<()>,
    call: impl FnOnce(&Call) -> anyhow::Result<()>,
) -> ExitCode {
    let done = match Order::parse() {
        Order::Version => {
            println!("{library}");
            return ExitCode::SUCCESS;
        }
        Order::Serve(order) => {
            end_with_input();
            serve(&order)
        }
        Order::Call(order) => {
            end_with_input();
            call(&order)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Ends the process with its input: whoever started it ends it so, even by being killed.
fn end_with_input() {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(0);
    });
}
