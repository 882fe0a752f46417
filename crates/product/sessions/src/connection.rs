//! A session on a TCP connection that never blocks.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use socket2::{Domain, Protocol, Socket, Type};
use zeroize::Zeroizing;

use crate::ended::{Ended, SessionError};

/// Who has not shown within this who it is, or says nothing for as long, is given up.
const SILENT: Duration = Duration::from_secs(6);
/// How often one says that one is there, where that is said.
const ALIVE: Duration = Duration::from_secs(2);
/// Who is on the same networks answers far sooner.
const CONNECT: Duration = Duration::from_secs(1);
/// Most taken in one go, so that one connection does not keep the others waiting.
const CHUNK: usize = 16 * 1024;

/// What is said in a session over TLS.
pub trait Conversation {
    /// What is said.
    type Message;
    /// What happens by what the other end says.
    type Event;
    /// No message is longer, bytes.
    const LONGEST: usize;

    /// Takes `bytes` that have come; what has happened by them goes to `events`. Returns whether they show that the other end
    /// is there: who dribbles what is not understood yet is given up in the end.
    ///
    /// # Errors
    /// The session is over. What [`Conversation::transmit`] gives then tells the other end why.
    fn receive(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<Self::Event>,
    ) -> Result<bool, SessionError>;

    /// Says `message`. Returns whether there was room for it.
    fn say(&mut self, message: &Self::Message) -> bool;

    /// What is said now and then so that the other end knows that this one is there; `None`: nothing at present.
    fn alive(&self) -> Option<Self::Message>;

    /// Adds what is to be sent to `out`.
    fn transmit(&mut self, out: &mut Vec<u8>);

    /// Ends the session; [`Conversation::transmit`] gives what tells so.
    fn close(&mut self);
}

/// A session and its connection.
#[derive(Debug)]
pub struct Connection<S> {
    stream: TcpStream,
    session: S,
    /// It is being made still.
    connecting: bool,
    out: Vec<u8>,
    began: Instant,
    heard: Instant,
    said: Instant,
    /// What was said found no room.
    overflown: bool,
}

impl<S: Conversation> Connection<S> {
    /// Begins to connect to `to`, from this computer's address `from` if one is given.
    ///
    /// # Errors
    /// The system refuses at once.
    pub fn call(
        session: S,
        (from, to): (Option<IpAddr>, SocketAddr),
        now: Instant,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        if let Some(from) = from {
            socket.bind(&SocketAddr::new(from, 0).into())?;
        }
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
    pub fn answer(stream: TcpStream, session: S, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::new(stream, session, false, now)
    }

    fn new(stream: TcpStream, session: S, connecting: bool, now: Instant) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            session,
            connecting,
            out: Vec::new(),
            began: now,
            heard: now,
            said: now,
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

    /// The session.
    pub const fn session(&self) -> &S {
        &self.session
    }

    /// When it began.
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// Where the other end is.
    pub fn from(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }

    /// Says `message`. It leaves with the next [`drive`](Self::drive) or [`flush`](Self::flush).
    pub fn say(&mut self, message: &S::Message) {
        self.overflown |= !self.session.say(message);
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
    pub fn drive(&mut self, now: Instant, events: &mut Vec<S::Event>) -> Result<(), Ended> {
        if self.connecting && !self.is_connected(now)? {
            return Ok(());
        }
        let received = self.receive(now, events);
        if now >= self.said + ALIVE
            && let Some(alive) = self.session.alive()
        {
            self.said = now;
            self.say(&alive);
        }
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
                Err(error) if is_later(&error) && self.out.len() <= 4 * S::LONGEST => break,
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

    fn receive(&mut self, now: Instant, events: &mut Vec<S::Event>) -> Result<(), Ended> {
        let mut chunk = Zeroizing::new([0; CHUNK]);
        match self.stream.read(&mut chunk[..]) {
            Ok(0) => Err(SessionError::Closed.into()),
            Ok(read) => {
                if self.session.receive(&chunk[..read], events)? {
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
