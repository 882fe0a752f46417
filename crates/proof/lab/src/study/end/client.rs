//! The client: a message every 50 ms, and when its answer came (fifth paper, V-A).

use std::io::{self, ErrorKind};
use std::net::SocketAddrV4;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::Clock;
use rustix::event::{PollFd, Timespec, poll};
use rustls::ClientConfig;

use super::MESSAGE;
use super::connection::Connection;
use crate::study::transport::Socket;

/// Between two messages.
pub const PERIOD: Duration = Duration::from_millis(50);
/// An answer that is later has a program that knows of a backup go there.
const TIMEOUT: Duration = Duration::from_millis(50);
/// How long a first connection may take to be established.
const ESTABLISHED: Duration = Duration::from_secs(5);
/// How long answers are waited for when all messages have left.
pub const LINGER: Duration = Duration::from_secs(3);
/// Nothing is waited for longer at once: somebody may want to stop.
pub const LOOK: Duration = Duration::from_millis(50);

/// What a client does.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its socket.
    pub socket: Socket,
    /// TLS on it.
    pub tls: Option<Arc<ClientConfig>>,
    /// From where to where.
    pub primary: (SocketAddrV4, SocketAddrV4),
    /// Where it goes when an answer is late.
    pub backup: Option<(SocketAddrV4, SocketAddrV4)>,
    /// How many messages.
    pub messages: usize,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it was to be given to the socket.
    pub due: Instant,
    /// When it was.
    pub sent: Instant,
    /// When its answer had come.
    pub answered: Option<Instant>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Every message.
    pub messages: Vec<Message>,
    /// When it went to its backup.
    pub switched: Option<Instant>,
}

impl Client {
    /// Sends all messages, the first one so long `after` the connection is there; `began` is told when that is.
    ///
    /// # Errors
    /// What the system says, or that somebody wants to stop.
    pub fn run(
        &self,
        after: Duration,
        began: &Sender<Instant>,
        stop: &AtomicBool,
    ) -> io::Result<Heard> {
        // By default the kernel wakes a thread up to 50 us later than it asks for.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut run = Run {
            client: self,
            connection: Connection::begin(self.socket, self.tls.as_ref(), self.primary)?,
            heard: Heard::default(),
            oldest: 0,
        };
        let limit = Clock.now() + ESTABLISHED;
        while !run.connection.is_established() {
            run.wait(limit, stop)?;
            if Clock.now() >= limit {
                let why = format!("no connection to {} within 5 s", self.primary.1);
                return Err(io::Error::other(why));
            }
        }
        let first = Clock.now() + after;
        let _ = began.send(first);
        run.all(first, stop)?;
        Ok(run.heard)
    }
}

struct Run<'a> {
    client: &'a Client,
    connection: Connection,
    heard: Heard,
    /// The first message that has no answer.
    oldest: usize,
}

impl Run<'_> {
    fn all(&mut self, first: Instant, stop: &AtomicBool) -> io::Result<()> {
        let count = self.client.messages;
        let due = |number: usize| first + Duration::from_nanos(PERIOD.as_nanos() * number as u64);
        loop {
            let (now, next) = (Clock.now(), self.heard.messages.len());
            if next < count && due(next) <= now {
                self.message(due(next), now)?;
                continue;
            }
            let late = self.late_at();
            if late.is_some_and(|late| late <= now) {
                self.go_to_backup(now)?;
                continue;
            }
            let end = due(count - 1) + LINGER;
            if self.oldest == count || now >= end {
                return Ok(());
            }
            let until = if next < count { due(next) } else { end };
            self.wait(late.map_or(until, |late| late.min(until)), stop)?;
        }
    }

    fn message(&mut self, due: Instant, sent: Instant) -> io::Result<()> {
        let number = self.heard.messages.len();
        self.heard.messages.push(Message {
            due,
            sent,
            answered: None,
        });
        let sent = self.connection.send(&bytes(number));
        self.unless_backup(sent)
    }

    /// When the answer that is missing longest is late; never for a program that knows of no backup, or is there.
    fn late_at(&self) -> Option<Instant> {
        let waits = self.client.backup.is_some() && self.heard.switched.is_none();
        let oldest = self.heard.messages.get(self.oldest).filter(|_| waits)?;
        Some(oldest.sent + TIMEOUT)
    }

    /// A connection that fails is left for the backup, if there is one.
    fn unless_backup(&mut self, result: io::Result<()>) -> io::Result<()> {
        match result {
            Err(_) if self.client.backup.is_some() && self.heard.switched.is_none() => {
                self.go_to_backup(Clock.now())
            }
            // What an earlier datagram met says nothing of the next one.
            Err(_) if self.client.socket == Socket::Udp => Ok(()),
            other => other,
        }
    }

    /// A new connection, over which all that has no answer is sent again.
    fn go_to_backup(&mut self, now: Instant) -> io::Result<()> {
        let Some(backup) = self.client.backup else {
            return Ok(());
        };
        self.heard.switched = Some(now);
        let client = self.client;
        self.connection = Connection::begin(client.socket, client.tls.as_ref(), backup)?;
        for number in self.oldest..self.heard.messages.len() {
            if self.heard.messages[number].answered.is_none() {
                self.connection.send(&bytes(number))?;
            }
        }
        Ok(())
    }

    /// Waits for the connection until then, or a little less, and takes what has come.
    fn wait(&mut self, until: Instant, stop: &AtomicBool) -> io::Result<()> {
        if stop.load(Ordering::Relaxed) {
            return Err(ErrorKind::Interrupted.into());
        }
        let nanos = until.since(Clock.now()).min(LOOK).as_nanos();
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: nanos as i64,
        };
        let mut ends = [PollFd::new(&self.connection, self.connection.waits_for())];
        match poll(&mut ends, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let messages = &mut self.heard.messages;
        let advanced = self.connection.advance(|answer| {
            let number = answer.first_chunk().map(|it| u32::from_be_bytes(*it));
            let known = number.and_then(|number| messages.get_mut(number as usize));
            if let Some(message) = known {
                message.answered.get_or_insert_with(|| Clock.now());
            }
        });
        let unanswered = |it: &Message| it.answered.is_none();
        let found = messages[self.oldest..].iter().position(unanswered);
        self.oldest = found.map_or(messages.len(), |place| self.oldest + place);
        self.unless_backup(advanced)
    }
}

/// A message: its number, and what nobody reads.
pub fn bytes(number: usize) -> [u8; MESSAGE] {
    let mut bytes = [number as u8; MESSAGE];
    bytes[..4].copy_from_slice(&(number as u32).to_be_bytes());
    bytes
}
