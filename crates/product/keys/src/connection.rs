//! A session on a TCP connection that never blocks.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use bumpless_base::{Duration, Instant};
use rustix::event::{PollFd, PollFlags};
use socket2::{Domain, Protocol, Socket, Type};
use zeroize::Zeroizing;

use crate::message::{LONGEST, Message};
use crate::session::{Session, SessionError};

/// Who has not shown within this who it is, or says nothing for as long, is given up.
const SILENT: Duration = Duration::from_secs(6);
/// A server on the plant's networks answers far sooner.
const CONNECT: Duration = Duration::from_secs(1);
/// Most taken in one go, so that one connection does not keep the others waiting.
const CHUNK: usize = 16 * 1024;
/// Most that waits to be sent.
const BACKLOG: usize = 4 * LONGEST;

/// Why a connection ends.
#[derive(Debug)]
pub enum Ended {
    /// The session says so.
    Session(SessionError),
    /// The system says so.
    System(io::Error),
    /// Nothing has come for too long, or what was said was not taken.
    Silent,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Session(error) => error.fmt(f),
            Self::System(error) => write!(f, "{error}"),
            Self::Silent => f.write_str("it was silent for seconds"),
        }
    }
}

impl From<SessionError> for Ended {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// A session and its connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    session: Session,
    /// It is being made still.
    connecting: bool,
    out: Vec<u8>,
    began: Instant,
    heard: Instant,
    /// What was said found no room.
    overflown: bool,
}

impl Connection {
    /// Begins to connect to `to`.
    ///
    /// # Errors
    /// The system refuses at once.
    pub fn call(session: Session, to: SocketAddr, now: Instant) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        match socket.connect(&to.into()) {
            Err(error)
                if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
            {
                Err(error)
            }
            _ => Self::new(socket.into(), session, true, now),
        }
    }

    /// Of a connection that has come.
    ///
    /// # Errors
    /// The system refuses its settings.
    pub fn answer(stream: TcpStream, session: Session, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::new(stream, session, false, now)
    }

    fn new(
        stream: TcpStream,
        session: Session,
        connecting: bool,
        now: Instant,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            session,
            connecting,
            out: Vec::new(),
            began: now,
            heard: now,
            overflown: false,
        })
    }

    /// What to wait for.
    pub fn poll(&self) -> PollFd<'_> {
        let flags = match self.connecting || !self.out.is_empty() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        PollFd::new(&self.stream, flags)
    }

    /// Who is at the other end, if that is known.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Where the other end is.
    pub fn from(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }

    /// Says `message`. It leaves with the next [`drive`](Self::drive).
    pub fn say(&mut self, message: &Message) {
        self.overflown |= !self.session.say(message);
    }

    /// Ends it, and tells the other end so if that is possible at once.
    pub fn close(mut self) {
        self.session.close();
        self.session.transmit(&mut self.out);
        let _ = self.stream.write(&self.out);
    }

    /// Does what can be done: takes what has come, sends what is to be sent. What was said goes to `heard`.
    ///
    /// # Errors
    /// Why it is over; what tells the other end has been sent as far as possible.
    pub fn drive(&mut self, now: Instant, heard: &mut Vec<Message>) -> Result<(), Ended> {
        if self.connecting && !self.is_connected(now)? {
            return Ok(());
        }
        let received = self.receive(now, heard);
        let sent = self.flush();
        received?;
        sent?;
        match self.overflown || now >= self.heard + SILENT {
            true => Err(Ended::Silent),
            false => Ok(()),
        }
    }

    /// Sends what is to be sent, as far as that is possible at once.
    ///
    /// # Errors
    /// The system refuses.
    pub fn flush(&mut self) -> Result<(), Ended> {
        self.session.transmit(&mut self.out);
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(sent) => drop(self.out.drain(..sent)),
                Err(error) if is_later(&error) && self.out.len() <= BACKLOG => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn is_connected(&mut self, now: Instant) -> Result<bool, Ended> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error.into());
        }
        if self.stream.peer_addr().is_ok() {
            self.connecting = false;
            self.heard = now;
            return Ok(true);
        }
        match now >= self.began + CONNECT {
            true => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            false => Ok(false),
        }
    }

    fn receive(&mut self, now: Instant, heard: &mut Vec<Message>) -> Result<(), Ended> {
        let mut chunk = Zeroizing::new([0; CHUNK]);
        match self.stream.read(&mut chunk[..]) {
            Ok(0) => Err(SessionError::Closed.into()),
            Ok(read) => {
                let before = heard.len();
                self.session.receive(&chunk[..read], heard)?;
                // What is no message yet does not count as being there: who dribbles is given up in the end.
                if heard.len() > before {
                    self.heard = now;
                }
                Ok(())
            }
            Err(error) if is_later(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
