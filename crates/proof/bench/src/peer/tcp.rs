//! States over the kernel's TCP or MPTCP.
//!
//! A frame is the channel and the length, 4 bytes each, then the state; the receiver reads all of it,
//! checks it, and answers with the channel, 4 bytes. With many connections each channel's thread
//! writes and reads on its own; with one connection frames are written whole, one after the other, and
//! a thread hands the answers out.

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bumpless_base::Duration;
use bumpless_net_linux::Clock;

use super::payload::is_whole;
use super::stream;
use super::{ChannelSender, Kind, PeerOptions, kernel_version, wait_for_end};
use crate::conversation::serve::tell;
use crate::conversation::{ready, serve};

pub(super) const HEADER: usize = 8;

/// Runs the receiving side.
///
/// # Errors
/// It cannot listen.
pub fn receive(options: &PeerOptions) -> Result<(), String> {
    let address = address(options)?;
    let listener =
        stream::listen(options.kind, address).map_err(|error| refused(options.kind, &error))?;
    let (kind, max_size) = (options.kind, options.max_size as usize);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                if let Err(error) = take_states(kind, stream, max_size)
                    && error.kind() == io::ErrorKind::InvalidData
                {
                    eprintln!("{}: {error}", kind.name());
                    std::process::exit(1);
                }
            });
        }
    });
    let listening = ready(kind.name(), &kernel_version(), "");
    tell(&mut io::stdout(), &listening).map_err(|error| error.to_string())?;
    wait_for_end();
    Ok(())
}

pub(super) fn address(options: &PeerOptions) -> Result<SocketAddr, String> {
    let first = options
        .to
        .first()
        .ok_or("no address to listen at or connect to")?;
    Ok(SocketAddr::new(*first, options.port))
}

pub(super) fn refused(kind: Kind, error: &io::Error) -> String {
    let remedy = match (kind, error.raw_os_error()) {
        (Kind::Mptcp, Some(libc::EPROTONOSUPPORT | libc::ENOPROTOOPT)) => {
            "; this kernel has no MPTCP, or sysctl net.mptcp.enabled is 0"
        }
        _ => "",
    };
    format!("cannot open a socket: {error}{remedy}")
}

/// Reads and answers states until the connection ends.
fn take_states(kind: Kind, mut stream: TcpStream, max_size: usize) -> io::Result<()> {
    stream::prepare(kind, &stream)?;
    let mut state = vec![0; max_size];
    loop {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header)?;
        let [channel, size] = unpack(header);
        let state = state
            .get_mut(..size as usize)
            .ok_or_else(|| invalid("a frame is longer than --max-size"))?;
        if kind == Kind::TcpTuned {
            stream::quick_ack(&stream);
        }
        stream.read_exact(state)?;
        if !is_whole(state) {
            return Err(invalid("a state arrived that was not sent"));
        }
        stream.write_all(&channel.to_be_bytes())?;
    }
}

pub(super) fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

pub(super) fn unpack(header: [u8; HEADER]) -> [u32; 2] {
    let value = u64::from_be_bytes(header);
    [(value >> 32) as u32, value as u32]
}

/// Runs the sending side.
///
/// # Errors
/// It cannot connect, or nobody reads what it says.
pub fn send(options: &PeerOptions) -> Result<(), String> {
    let mut settings = String::new();
    let count = if options.many { options.channels } else { 1 };
    let streams = (0..count)
        .map(|_| connect(options, &mut settings))
        .collect::<Result<Vec<_>, _>>()?;
    let senders = if options.many {
        let owned = streams.into_iter().zip(0..).map(|(stream, channel)| {
            Box::new(OwnConnection {
                kind: options.kind,
                stream,
                channel,
            }) as Box<dyn ChannelSender>
        });
        owned.collect()
    } else {
        share(options, streams).map_err(|error| format!("cannot share the connection: {error}"))?
    };
    let mut output = io::stdout();
    let connected = ready(options.kind.name(), &kernel_version(), &settings);
    let mut input = io::stdin().lock();
    let served = serve(
        &connected,
        senders,
        options.max_size as usize,
        None,
        &mut input,
        &mut output,
    );
    served.map_err(|error| error.to_string())
}

fn connect(options: &PeerOptions, settings: &mut String) -> Result<TcpStream, String> {
    let to = address(options)?;
    let from = *options.from.first().ok_or("no address to connect from")?;
    let stream = stream::connect(options.kind, from, to)
        .map_err(|error| format!("cannot connect to {to}: {}", refused(options.kind, &error)))?;
    *settings = stream::prepare(options.kind, &stream)
        .map_err(|error| format!("cannot set up the connection: {error}"))?;
    Ok(stream)
}

/// Writes header and state in as few calls as the kernel needs.
fn write_frame(stream: &mut TcpStream, channel: u32, state: &[u8]) -> io::Result<()> {
    let header = ((u64::from(channel) << 32) | state.len() as u64).to_be_bytes();
    let sent = stream.write_vectored(&[IoSlice::new(&header), IoSlice::new(state)])?;
    if sent < HEADER {
        stream.write_all(&header[sent..])?;
    }
    stream.write_all(&state[sent.saturating_sub(HEADER)..])
}

/// A channel with a connection of its own.
struct OwnConnection {
    kind: Kind,
    stream: TcpStream,
    channel: u32,
}

impl ChannelSender for OwnConnection {
    fn transfer(&mut self, state: &[u8], timeout: Duration) -> Result<Duration, String> {
        let failed = |error: io::Error| format!("the connection failed: {error}");
        let limit = Some(timeout.to_std());
        self.stream.set_read_timeout(limit).map_err(failed)?;
        self.stream.set_write_timeout(limit).map_err(failed)?;
        let began = Clock.now();
        write_frame(&mut self.stream, self.channel, state).map_err(failed)?;
        if self.kind == Kind::TcpTuned {
            stream::quick_ack(&self.stream);
        }
        let mut answer = [0; 4];
        self.stream.read_exact(&mut answer).map_err(failed)?;
        let took = Clock.now().since(began);
        if u32::from_be_bytes(answer) != self.channel {
            return Err("another channel was acknowledged".into());
        }
        Ok(took)
    }
}

/// A channel among others on one connection.
struct SharedConnection {
    writer: Arc<Mutex<TcpStream>>,
    acknowledged: Receiver<()>,
    channel: u32,
}

/// Channels that share one connection; with a single channel it is its own.
fn share(
    options: &PeerOptions,
    mut streams: Vec<TcpStream>,
) -> io::Result<Vec<Box<dyn ChannelSender>>> {
    let Some(stream) = streams.pop() else {
        return Ok(Vec::new());
    };
    let kind = options.kind;
    if options.channels == 1 {
        return Ok(vec![Box::new(OwnConnection {
            kind,
            stream,
            channel: 0,
        })]);
    }
    let reader = stream.try_clone()?;
    let writer = Arc::new(Mutex::new(stream));
    let (answers, acknowledged): (Vec<_>, Vec<_>) =
        (0..options.channels).map(|_| channel()).unzip();
    thread::spawn(move || hand_out(kind, reader, &answers));
    Ok(acknowledged
        .into_iter()
        .zip(0..)
        .map(|(acknowledged, channel)| {
            let writer = Arc::clone(&writer);
            Box::new(SharedConnection {
                writer,
                acknowledged,
                channel,
            }) as Box<dyn ChannelSender>
        })
        .collect())
}

fn hand_out(kind: Kind, mut reader: TcpStream, answers: &[Sender<()>]) {
    let mut answer = [0; 4];
    while reader.read_exact(&mut answer).is_ok() {
        if kind == Kind::TcpTuned {
            stream::quick_ack(&reader);
        }
        if let Some(answers) = answers.get(u32::from_be_bytes(answer) as usize) {
            let _ = answers.send(());
        }
    }
}

impl ChannelSender for SharedConnection {
    fn transfer(&mut self, state: &[u8], timeout: Duration) -> Result<Duration, String> {
        // Of a state that was given up: its late answer is not this one's.
        while self.acknowledged.try_recv().is_ok() {}
        let began = Clock.now();
        {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            write_frame(&mut writer, self.channel, state)
                .map_err(|error| format!("the connection failed: {error}"))?;
        }
        match self.acknowledged.recv_timeout(timeout.to_std()) {
            Ok(()) => Ok(Clock.now().since(began)),
            Err(RecvTimeoutError::Timeout) => Err(format!("no acknowledgement within {timeout}")),
            Err(RecvTimeoutError::Disconnected) => Err("the connection ended".into()),
        }
    }
}
