//! A session on a TCP connection that never blocks.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::message::{LONGEST, Message};
use crate::session::{Event, Session, SessionError};

/// Who has not shown within this who it is, or says nothing for as long, is given up.
const SILENT: Duration = Duration::from_secs(6);
/// How often one says that one is there.
const ALIVE: Duration = Duration::from_secs(2);
/// A partner on the same networks answers far sooner.
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
    /// Nothing has come for too long.
    Silent,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Session(error) => error.fmt(f),
            Self::System(error) => write!(f, "{error}"),
            Self::Silent => f.write_str("nothing came for seconds"),
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
    said: Instant,
    agreed: bool,
}

impl Connection {
    /// Begins to connect `from` this computer's address to `to`.
    ///
    /// # Errors
    /// The system refuses at once.
    pub fn call(
        session: Session,
        (from, to): (IpAddr, SocketAddr),
        now: Instant,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
        match socket.connect(&to.into()) {
            Err(error)
                if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
            {
                return Err(error);
            }
            _ => {}
        }
        Self::new(socket.into(), session, true, now)
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
            said: now,
            agreed: false,
        })
    }

    /// The descriptor to wait on.
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether to wait until it is writable.
    pub const fn wants_write(&self) -> bool {
        self.connecting || !self.out.is_empty()
    }

    /// Who is at the other end, if that is known.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// When it began.
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// Says `message`.
    pub fn say(&mut self, message: &Message) {
        self.session.say(message);
    }

    /// Ends it, and tells the other end so if that is possible at once.
    pub fn close(mut self) {
        self.session.close();
        self.session.transmit(&mut self.out);
        let _ = self.stream.write(&self.out);
    }

    /// Does what can be done: takes what has come, sends what is to be sent. What has happened goes to `events`.
    ///
    /// # Errors
    /// Why it is over; what tells the other end has been sent as far as possible.
    pub fn drive(&mut self, now: Instant, events: &mut Vec<Event>) -> Result<(), Ended> {
        if self.connecting && !self.is_connected(now)? {
            return Ok(());
        }
        let received = self.receive(now, events);
        self.agreed |= !events.is_empty();
        if self.agreed && now >= self.said + ALIVE {
            self.said = now;
            self.session.say(&Message::Alive);
        }
        self.session.transmit(&mut self.out);
        let sent = self.send();
        received?;
        sent?;
        match now >= self.heard + SILENT {
            true => Err(Ended::Silent),
            false => Ok(()),
        }
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

    fn receive(&mut self, now: Instant, events: &mut Vec<Event>) -> Result<(), Ended> {
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(SessionError::Closed.into()),
            Ok(read) => {
                // What is not understood yet does not count as being there: who dribbles is given up in the end.
                self.session.receive(&chunk[..read], events)?;
                if self.agreed || !events.is_empty() {
                    self.heard = now;
                }
                Ok(())
            }
            Err(error) if is_later(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self) -> Result<(), Ended> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(sent) => drop(self.out.drain(..sent)),
                Err(error) if is_later(&error) && self.out.len() <= BACKLOG => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
