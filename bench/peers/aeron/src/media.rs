//! The embedded media driver, the client, and the channels between the two ends.

use std::ffi::{CStr, CString};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::anyhow;
use peer_conversation::Arguments;
use rusteron_client::{
    Aeron, AeronAsyncAddExclusivePublication, AeronContext, AeronExclusivePublication,
    AeronSubscription, Handlers,
};
use rusteron_media_driver::testing::EmbeddedDriver;
use rusteron_media_driver::{AeronCError, AeronDriverContext};

/// Bytes before each state: the channel.
pub const HEADER: usize = 8;
/// Aeron's default term length, and its limits. A message may be an eighth of a term long.
const DEFAULT_TERM: usize = 16 << 20;
const SMALLEST_TERM: usize = 64 << 10;
const LARGEST_TERM: usize = 1 << 30;
const MESSAGES_IN_TERM: usize = 8;
/// So many streams have the default term length; with more, each has only as much as its states need.
const FEW_STREAMS: usize = 16;
/// The tuned form's socket buffers, and its MTU: UDP payload in an Ethernet frame with an IPv4 header, a
/// multiple of 32 as Aeron asks. The receiver's window stays at 128 KiB: Aeron sends it at once, and a larger
/// one overflows the queue of a 1 Gbit/s link.
const SOCKET_BUFFER: usize = 2 << 20;
const MTU: usize = 1472;
/// The tuned form's backoff in the driver: spins, yields, first and longest park.
const TUNED_BACKOFF: &CStr = c"10-20-1us-20us";
/// Streams that the driver is asked for at once: it answers the last of too many too late.
const AT_ONCE: usize = 32;
const ADDING: Duration = Duration::from_secs(10);

/// Where Aeron keeps its files on Linux, and how our directories there begin; a process's number follows.
const MEMORY: &str = "/dev/shm";
const DIRECTORIES: &str = "aeron-peer-";

static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// An exclusive publication that is being added.
pub type Publishing = AeronAsyncAddExclusivePublication;

/// A client with its driver.
pub struct Media {
    aeron: Aeron,
    _driver: EmbeddedDriver,
}

impl Media {
    /// Starts a driver in a directory that this process names, and connects to it.
    pub fn start(arguments: &Arguments) -> anyhow::Result<Self> {
        remove_what_the_killed_left();
        let driver = EmbeddedDriver::launch_with(|context| configure(context, arguments))
            .map_err(|error| anyhow!("cannot start the media driver: {error}"))?;
        let _ = DIRECTORY.set(PathBuf::from(driver.dir()));
        let directory = CString::new(driver.dir())?;
        let connect = || {
            let context = AeronContext::new()?;
            context.set_dir(&directory)?;
            context.set_error_handler(Some(|code: i32, text: &str| {
                eprintln!("aeron: error {code}: {text}");
            }))?;
            let aeron = Aeron::new(&context)?;
            aeron.start()?;
            Ok(aeron)
        };
        let aeron = connect().map_err(|error: rusteron_client::AeronCError| {
            anyhow!("cannot connect to the media driver: {error}")
        })?;
        Ok(Self {
            aeron,
            _driver: driver,
        })
    }

    /// Begins to add exclusive publications.
    pub fn publish(&self, uri: &str, stream: usize) -> anyhow::Result<Publishing> {
        let adding = self
            .aeron
            .async_add_exclusive_publication(&CString::new(uri)?, number(stream));
        adding.map_err(|error| anyhow!("cannot add a publication to {uri}: {error}"))
    }

    /// Adds exclusive publications to one channel.
    pub fn publish_all(
        &self,
        uri: &str,
        streams: usize,
    ) -> anyhow::Result<Vec<AeronExclusivePublication>> {
        let mut publications = Vec::new();
        for first in (0..streams).step_by(AT_ONCE) {
            let some = first..streams.min(first + AT_ONCE);
            let begun: Vec<_> = some
                .map(|stream| self.publish(uri, stream))
                .collect::<Result<_, _>>()?;
            for adding in begun {
                let added = adding.poll_blocking(ADDING);
                publications.push(
                    added.map_err(|error| anyhow!("cannot add a publication to {uri}: {error}"))?,
                );
            }
        }
        Ok(publications)
    }

    /// Adds subscriptions to one channel.
    pub fn subscribe_all(
        &self,
        uri: &str,
        streams: usize,
    ) -> anyhow::Result<Vec<AeronSubscription>> {
        let c_uri = CString::new(uri)?;
        let mut subscriptions = Vec::new();
        for first in (0..streams).step_by(AT_ONCE) {
            let begun = (first..streams.min(first + AT_ONCE)).map(|stream| {
                let none = Handlers::NONE;
                self.aeron
                    .async_add_subscription(&c_uri, number(stream), none, Handlers::NONE)
            });
            let added = begun.collect::<Result<Vec<_>, _>>().and_then(|begun| {
                begun
                    .iter()
                    .map(|adding| adding.poll_blocking(ADDING))
                    .collect::<Result<Vec<_>, _>>()
            });
            subscriptions
                .extend(added.map_err(|error| anyhow!("cannot subscribe to {uri}: {error}"))?);
        }
        Ok(subscriptions)
    }
}

fn configure(context: &AeronDriverContext, arguments: &Arguments) -> Result<(), AeronCError> {
    let name = format!("{MEMORY}/{DIRECTORIES}{}", std::process::id());
    context.set_dir(&CString::new(name).unwrap_or_default())?;
    context.set_term_buffer_length(term_length(arguments))?;
    if arguments.tuned {
        // A strategy takes the arguments that are there when it is set.
        context.set_sender_idle_strategy_init_args(TUNED_BACKOFF)?;
        context.set_sender_idle_strategy(c"backoff")?;
        context.set_receiver_idle_strategy_init_args(TUNED_BACKOFF)?;
        context.set_receiver_idle_strategy(c"backoff")?;
        context.set_socket_so_rcvbuf(SOCKET_BUFFER)?;
        context.set_socket_so_sndbuf(SOCKET_BUFFER)?;
        context.set_mtu_length(MTU)?;
    }
    Ok(())
}

/// Removes the directories of processes that are no more: they are memory.
fn remove_what_the_killed_left() {
    for entry in fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(DIRECTORIES));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn term_length(arguments: &Arguments) -> usize {
    let needed = (arguments.max_size + HEADER).saturating_mul(MESSAGES_IN_TERM);
    let least = if arguments.connection_count() <= FEW_STREAMS {
        DEFAULT_TERM
    } else {
        SMALLEST_TERM
    };
    needed.next_power_of_two().clamp(least, LARGEST_TERM)
}

/// A channel to an address; an own address chooses the network.
pub fn channel(to: Ipv4Addr, port: u16, from: Option<Ipv4Addr>) -> String {
    let interface = from
        .map(|from| format!("|interface={from}"))
        .unwrap_or_default();
    format!("aeron:udp?endpoint={to}:{port}{interface}")
}

/// The port for acknowledgements: the sender listens there.
pub fn port_back(arguments: &Arguments) -> u16 {
    arguments.port.wrapping_add(1)
}

/// Stream identifiers begin with 1.
fn number(stream: usize) -> i32 {
    i32::try_from(stream + 1).unwrap_or(i32::MAX)
}

/// Removes the driver's files: they are memory.
pub fn remove_directory() {
    if let Some(directory) = DIRECTORY.get() {
        let _ = fs::remove_dir_all(directory);
    }
}

/// Aeron's version, and that of the crate which holds its sources.
pub fn version() -> String {
    // SAFETY: the function returns a constant text.
    let text = unsafe { CStr::from_ptr(rusteron_client::bindings::aeron_version_text()) };
    format!(
        "{} (rusteron {})",
        text.to_string_lossy(),
        env!("PEER_VERSION")
    )
}

/// The settings in words.
pub fn describe(arguments: &Arguments) -> String {
    let tuned = if arguments.tuned {
        "; idle strategy backoff up to 20 us, MTU 1472, socket buffers 2 MiB"
    } else {
        ", else defaults (idle strategy backoff up to 1 ms, MTU 1408, receiver window 128 KiB)"
    };
    format!(
        "embedded C media driver with threading mode DEDICATED, exclusive publications, terms of {} KiB{tuned}{}",
        term_length(arguments) / 1024,
        arguments.one_network_note()
    )
}
