//! The conversation between the benchmark and a peer's program: arguments, the line that says ready, orders
//! on standard input, answers as lines of JSON on standard output. A peer implements [`Peer`] and
//! [`Transfer`] and hands itself to [`run`].

mod acknowledgements;
mod arguments;
mod count;
mod cyclic;
mod orders;
mod payload;

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Parser;
use serde_json::{Value, json};

pub use acknowledgements::Acknowledgements;
pub use arguments::{Arguments, Connections};
pub use payload::digest;

use arguments::{Command, CommandLine};
use orders::Order;
use payload::Pool;

/// After this time without an acknowledgement a transfer has failed.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// A protocol's implementation, as the conversation needs it.
pub trait Peer {
    /// What lives while states are received.
    type Receiver;
    /// What sends states.
    type Sender: Transfer;

    /// The library's version.
    fn version() -> String;
    /// The settings that differ from the library's defaults, and what the peer does not use of what
    /// it was given.
    fn settings(arguments: &Arguments) -> String;
    /// Listens; returns once a sender can connect.
    fn receive(arguments: &Arguments) -> anyhow::Result<Self::Receiver>;
    /// Connects; returns once states can be sent.
    fn connect(arguments: &Arguments) -> anyhow::Result<Self::Sender>;
    /// Removes what would outlive the process.
    fn leave() {}
}

/// Sends states. Channels are used from a thread each.
pub trait Transfer: Sync {
    /// Sends one state and waits until its acknowledgement has been read, at most [`TIMEOUT`].
    /// The acknowledgement is the [`digest`] that the receiving application took of the whole state.
    fn transfer(&self, channel: usize, state: &Bytes) -> anyhow::Result<Timing>;
}

/// When a transfer began and ended.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Just before the send call.
    pub start: Instant,
    /// Just after the acknowledgement was read.
    pub end: Instant,
}

/// Does what the command line says.
pub fn run<P: Peer>() -> ExitCode {
    let line = CommandLine::parse();
    if line.count() {
        count::start();
    }
    let counted = line.count();
    let name = arguments::program_name();
    let result = match line.command {
        Command::Receive(receive) => receiver::<P>(&receive.into(), &name, counted),
        Command::Send(send) => sender::<P>(&send.into(), &name, counted),
        Command::Version => {
            println!("{}", P::version());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            P::leave();
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn receiver<P: Peer>(arguments: &Arguments, name: &str, counted: bool) -> anyhow::Result<()> {
    let _receiver = P::receive(arguments)?;
    say(&ready::<P>(arguments, name))?;
    for line in std::io::stdin().lock().lines() {
        match line?.parse() {
            Ok(Order::Cost) => say(&cost(counted))?,
            Ok(Order::Exit) => break,
            Ok(_) => say(&failed("a receiver takes only the orders cost and exit"))?,
            Err(reason) => say(&failed(&reason))?,
        }
    }
    leave::<P>()
}

fn sender<P: Peer>(arguments: &Arguments, name: &str, counted: bool) -> anyhow::Result<()> {
    let sender = P::connect(arguments)?;
    let pool = Pool::new(arguments.max_size);
    let mut payloads = pool.payloads();
    say(&ready::<P>(arguments, name))?;
    for line in std::io::stdin().lock().lines() {
        let answer = match line?.parse() {
            Ok(Order::Transfer(size)) if size <= arguments.max_size => {
                match sender.transfer(0, &payloads.next(size)) {
                    Ok(timing) => done(timing),
                    Err(error) => failed(&format!("{error:#}")),
                }
            }
            Ok(Order::Cyclic(plan)) => match plan.fits(arguments) {
                Ok(()) => cyclic::run(&sender, &plan, &pool),
                Err(reason) => failed(&reason),
            },
            Ok(Order::Transfer(size)) => failed(&format!(
                "{size} bytes are more than --max-size {}",
                arguments.max_size
            )),
            Ok(Order::Cost) => cost(counted),
            Ok(Order::Exit) => break,
            Err(reason) => failed(&reason),
        };
        say(&answer)?;
    }
    leave::<P>()
}

/// Ends the process without taking connections down: what is foreign may take its time for that.
fn leave<P: Peer>() -> ! {
    P::leave();
    std::process::exit(0)
}

fn say(answer: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{answer}")?;
    out.flush()
}

fn ready<P: Peer>(arguments: &Arguments, name: &str) -> Value {
    json!({
        "event": "ready",
        "peer": name,
        "version": P::version(),
        "settings": P::settings(arguments),
    })
}

fn done(timing: Timing) -> Value {
    let time = timing.end.duration_since(timing.start);
    json!({"event": "done", "nanoseconds": nanoseconds(time)})
}

fn failed(reason: &str) -> Value {
    json!({"event": "failed", "reason": reason})
}

fn cost(counted: bool) -> Value {
    json!({
        "event": "cost",
        "allocations": counted.then(count::allocations),
        "peak_buffer_bytes": counted.then(count::peak_bytes),
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
