//! Ours, as the daemon runs it: its data plane on a thread of its own over real sockets, published to
//! through the port that an executor publishes through, and read as a backup reads.
//!
//! Sender and receiver are the two nodes of a pair of which the sender is preferred, without a
//! reference point, so that nothing but the pair itself is needed. Heartbeats run at their default
//! rate; the lease is long, because what is measured is the transfer and not a take-over.
//!
//! A transfer is acknowledged when the whole state lies where the backup's application reads it. The
//! receiver reads and checks the newest state of each channel every few milliseconds.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::channel;
use std::thread;

use bumpless_base::{ChannelId, Duration};
use bumpless_config::{Config, Encryption, Integrity, Problem, Replay, StateKeys, StateSecurity};
use bumpless_net_linux::Clock;

use super::node::{Node, Reader};
use super::payload::is_whole;
use super::{ChannelSender, Kind, PeerOptions, TIMEOUT, wait_for_end};
use crate::conversation::serve::tell;
use crate::conversation::{ready, serve};

/// How long a sender waits for its partner at the start.
const MEETING: Duration = Duration::from_secs(20);
/// How often the receiver looks at what it has.
const LOOK: Duration = Duration::from_millis(10);

fn settings(options: &PeerOptions, notes: &[String]) -> String {
    let mut text = match (options.to.len(), options.spread) {
        (1, _) => "one network".to_owned(),
        (networks, true) => format!("spread over {networks} networks"),
        (networks, false) => format!("replicated on {networks} networks"),
    };
    let _ = match options.bandwidth_mbit {
        0 => write!(text, ", not paced"),
        mbit => write!(text, ", paced at {mbit} Mbit/s"),
    };
    text.push_str(match options.kind {
        Kind::TransferProtected => ", messages protected",
        Kind::TransferChecksum => ", messages protected, states with checksums of their own",
        Kind::TransferTagged => ", messages protected, states with tags of their own",
        Kind::TransferSealed => ", messages protected, states enciphered by themselves",
        Kind::TransferChacha => {
            ", messages protected, states enciphered by themselves with ChaCha20-Poly1305"
        }
        Kind::TransferBusy => ", messages open, busy polling",
        _ => ", messages open",
    });
    text.push_str(", acknowledged when the backup can read the state; heartbeats every 2 ms");
    for note in notes {
        let _ = write!(text, "; {note}");
    }
    text
}

/// The pair's configuration, the same for both nodes.
fn configuration(options: &PeerOptions) -> Result<Config, String> {
    let mut text = String::from(
        "[pair]\nname = \"bench\"\n[timing]\nlease_ms = 200\nstart_wait_ms = 420\n\
         [transfer]\nmemory_max = \"64 GiB\"\n",
    );
    if matches!(options.kind, Kind::Transfer | Kind::TransferBusy) {
        text.push_str("[security]\npackets = \"open\"\n");
    }
    if options.kind == Kind::TransferBusy {
        text.push_str("[reception]\nbusy_poll_us = 10000\n");
    }
    let names = ["A", "B", "C", "D", "E", "F", "G", "H"];
    for name in names.iter().take(options.to.len()) {
        let _ = write!(
            text,
            "[[network]]\nname = \"{name}\"\nbandwidth_mbit = {}\n",
            options.bandwidth_mbit
        );
    }
    for (node, addresses) in [("sender", &options.from), ("receiver", &options.to)] {
        let _ = write!(text, "[[node]]\nname = \"{node}\"\naddresses = {{ ");
        for (at, (name, address)) in names.iter().zip(addresses.iter()).enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let address = socket_address(*address, options.port);
            let _ = write!(text, "{separator}{name} = \"{address}\"");
        }
        text.push_str(" }\n");
    }
    let distribution = if options.spread {
        "spread"
    } else {
        "replicate"
    };
    let _ = write!(
        text,
        "[[group]]\nname = \"g\"\nnodes = [\"sender\", \"receiver\"]\nwithout_reference = true\n\
         [[application]]\nname = \"state\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 1\n\
         period_ms = 10\ncommit = \"before_output\"\nsize = 16\nchanged_share = 0.0\n\
         distribution = \"{distribution}\"\n"
    );
    let mut config = Config::parse(&text, "bench").map_err(|problems| told(&problems))?;
    let template = config.applications.pop().ok_or("no application")?;
    config.applications = (0..options.channels)
        .map(|at| application(&template, at, options))
        .collect::<Option<_>>()
        .ok_or("more channels than there are numbers; give --channels up to 65535")?;
    Ok(config)
}

fn application(
    template: &bumpless_config::Application,
    at: u32,
    options: &PeerOptions,
) -> Option<bumpless_config::Application> {
    let deadline = options
        .deadlines
        .get(at as usize)
        .copied()
        .unwrap_or(TIMEOUT);
    Some(bumpless_config::Application {
        name: format!("state-{at}"),
        channel: ChannelId::new(u16::try_from(at + 1).ok()?)?,
        period: deadline,
        deadline,
        // The newest state stays readable: only the measurement ends it.
        expiry: TIMEOUT * 2,
        state_max: options.max_size + security(options).overhead(),
        security: security(options),
        ..template.clone()
    })
}

/// What is done to each state by itself.
fn security(options: &PeerOptions) -> StateSecurity {
    let encryption = match options.kind {
        Kind::TransferChecksum => {
            return StateSecurity {
                integrity: Integrity::Checksum,
                ..StateSecurity::NONE
            };
        }
        Kind::TransferTagged => Encryption::None,
        Kind::TransferSealed => Encryption::Symmetric,
        Kind::TransferChacha => Encryption::ChaCha20Poly1305,
        _ => return StateSecurity::NONE,
    };
    StateSecurity {
        integrity: Integrity::Symmetric,
        encryption,
        replay: Replay::Counter,
        keys: StateKeys::Files(Vec::new()),
    }
}

fn socket_address(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}

fn told(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

/// Runs the receiving side.
///
/// # Errors
/// It cannot listen.
pub fn receive(options: &PeerOptions) -> Result<(), String> {
    let mut node = Node::start(configuration(options)?, "receiver")?;
    let subscribers = node.take_subscribers()?;
    let (end, ended) = channel::<()>();
    let checker = thread::spawn(move || {
        let mut readers: Vec<_> = subscribers.into_iter().map(|reader| (reader, 0)).collect();
        // The other end is dropped when the input ends.
        while ended.recv_timeout(LOOK.to_std()) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            for (reader, seen) in &mut readers {
                look(reader, seen);
            }
        }
    });
    let listening = ready(
        options.kind.name(),
        env!("CARGO_PKG_VERSION"),
        &settings(options, &node.notes),
    );
    tell(&mut io::stdout(), &listening).map_err(|error| error.to_string())?;
    wait_for_end();
    drop(end);
    let _ = checker.join();
    Ok(())
}

/// Checks the newest state, once; a wrong one ends the process.
fn look((reader, guard): &mut Reader, seen: &mut u32) {
    let Some(state) = reader.read(Clock.now()) else {
        return;
    };
    if state.cycle() != *seen {
        *seen = state.cycle();
        let opened = match guard {
            Some(guard) => guard.open(state.data()),
            None => Some(state.data()),
        };
        if !opened.is_some_and(is_whole) {
            eprintln!("transfer: a state arrived that was not sent");
            std::process::exit(1);
        }
    }
}

/// Runs the sending side.
///
/// # Errors
/// It cannot open its links, the receiver does not answer, or nobody reads what it says.
pub fn send(options: &PeerOptions) -> Result<(), String> {
    let mut node = Node::start(configuration(options)?, "sender")?;
    let channels = node.meet(MEETING, TIMEOUT * 2)?;
    let boxed = |channel| -> Box<dyn ChannelSender> { Box::new(channel) };
    let senders = channels.into_iter().map(boxed).collect();
    let mut output = io::stdout();
    let connected = ready(
        options.kind.name(),
        env!("CARGO_PKG_VERSION"),
        &settings(options, &node.notes),
    );
    let buffers = u64::from(options.max_size) * 2 * u64::from(options.channels);
    let mut input = io::stdin().lock();
    serve(
        &connected,
        senders,
        options.max_size as usize,
        Some(buffers),
        &mut input,
        &mut output,
    )
    .map_err(|error| error.to_string())
}
