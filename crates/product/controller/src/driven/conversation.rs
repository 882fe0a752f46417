//! The conversation with a driver's process: one order at a time, and never a wait beyond the deadline.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bumpless_base::{Duration, Instant};
use bumpless_field_driver::message::{MESSAGE_MAX, Said};
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use super::{DriverFault, DriverLink};
use crate::{FieldErrorKind, TimeSource};

/// A driver that owes an answer for longer is given up.
const HUNG: Duration = Duration::from_secs(1);
/// A driver that tells people more than this in one call is given up.
const NOTES_MAX: usize = 16;

/// The driver's process does not run.
const GONE: FieldErrorKind = FieldErrorKind::DriverGone;

pub(super) struct Conversation {
    link: Box<dyn DriverLink>,
    socket: Option<UnixDatagram>,
    /// Number of the order that is not answered yet, and when it was sent.
    pending: Option<(u32, Instant)>,
    number: u32,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// What the driver tells people and could not be shown at once.
    note: Option<String>,
}

/// A socket that the runtime waits for. Its kind keeps the bounds of messages as one of datagrams does, for which the
/// runtime has a type.
fn watched(socket: OwnedFd) -> io::Result<UnixDatagram> {
    let socket = std::os::unix::net::UnixDatagram::from(socket);
    socket.set_nonblocking(true)?;
    UnixDatagram::from_std(socket)
}

/// What was received.
enum Came {
    /// The answer to the pending order, so many bytes.
    Answer(usize),
    /// Nothing more at present.
    Nothing,
}

impl Conversation {
    pub fn new(link: Box<dyn DriverLink>) -> Self {
        Self {
            link,
            socket: None,
            pending: None,
            number: 0,
            outgoing: Vec::new(),
            incoming: vec![0; MESSAGE_MAX + 1],
            note: None,
        }
    }

    pub fn failure(&mut self) -> Option<Arc<str>> {
        self.link.failure()
    }

    /// Sees to it that there is a driver that owes nothing. Returns whether it is another one than before.
    pub fn attend(&mut self, now: Instant) -> Result<bool, FieldErrorKind> {
        if let Some(note) = self.note.take()
            && !self.link.note(&note)
        {
            self.note = Some(note);
        }
        let is_new = match self.link.take() {
            Some(socket) => {
                self.socket = watched(socket).ok();
                self.pending = None;
                true
            }
            None => false,
        };
        if self.pending.is_some()
            && let Came::Nothing = self.look()?
            && let Some((_, sent)) = self.pending
        {
            let owed = now.since(sent);
            return Err(match owed > HUNG {
                true => self.give_up(DriverFault::Hung(owed)),
                false => FieldErrorKind::DriverBusy,
            });
        }
        match self.socket {
            Some(_) => Ok(is_new),
            None => Err(GONE),
        }
    }

    /// Sends the order that `put` writes, and returns the answer to it, both before `until`.
    pub async fn ask(
        &mut self,
        clock: &impl TimeSource,
        until: Instant,
        put: impl FnOnce(&mut Vec<u8>, u32),
    ) -> Result<&[u8], FieldErrorKind> {
        let now = clock.now();
        if now >= until {
            return Err(FieldErrorKind::Timeout);
        }
        self.number = self.number.wrapping_add(1).max(1);
        put(&mut self.outgoing, self.number);
        self.send()?;
        self.pending = Some((self.number, now));
        loop {
            if let Came::Answer(len) = self.look()? {
                return Ok(&self.incoming[..len]);
            }
            let left = until.since(clock.now());
            if left == Duration::ZERO {
                return Err(FieldErrorKind::Timeout);
            }
            let Some(socket) = &self.socket else {
                return Err(GONE);
            };
            match tokio::time::timeout(left.to_std(), socket.readable()).await {
                Err(_elapsed) => {}
                Ok(Err(_)) => return Err(self.lose()),
                // Whether there is something to read, only a look can tell: the next wait is for what comes after that.
                Ok(Ok(())) => {
                    let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                    let _ = socket.try_io(Interest::READABLE, nothing);
                }
            }
        }
    }

    fn send(&mut self) -> Result<(), FieldErrorKind> {
        let Some(socket) = &self.socket else {
            return Err(GONE);
        };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(socket, &self.outgoing, flags) {
            Ok(_) => Ok(()),
            // It has not read what it was sent before.
            Err(rustix::io::Errno::AGAIN) => Err(FieldErrorKind::DriverBusy),
            Err(_) => Err(self.lose()),
        }
    }

    /// Takes what has come, as far as the answer to the pending order.
    fn look(&mut self) -> Result<Came, FieldErrorKind> {
        for _ in 0..NOTES_MAX {
            let Some(socket) = &self.socket else {
                return Err(GONE);
            };
            let received = rustix::net::recv(socket, &mut self.incoming[..], RecvFlags::DONTWAIT);
            let len = match received {
                Ok((_, 0)) => return Err(self.lose()),
                Ok((_, len)) => len,
                Err(error) if io::Error::from(error).kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Came::Nothing);
                }
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return Err(self.lose()),
            };
            // Who sends more than a message may have is found out by its length.
            let len = len.min(self.incoming.len());
            let pending = self.pending.map(|(number, _)| number);
            match Said::parse(&self.incoming[..len]) {
                Ok((0, Said::Note(text))) => {
                    if !self.link.note(text) {
                        self.note = Some(text.to_owned());
                    }
                }
                Ok((_, Said::Ready(_) | Said::Refused(_) | Said::Note(_))) => {
                    return Err(self.give_up(DriverFault::Unasked));
                }
                Ok((number, _)) if Some(number) == pending => {
                    self.pending = None;
                    return Ok(Came::Answer(len));
                }
                Ok(_) => return Err(self.give_up(DriverFault::Unasked)),
                Err(fault) => return Err(self.give_up(DriverFault::Said(fault))),
            }
        }
        Err(self.give_up(DriverFault::Unasked))
    }

    /// The process has ended; whoever watches it knows why.
    fn lose(&mut self) -> FieldErrorKind {
        (self.socket, self.pending) = (None, None);
        GONE
    }

    pub fn give_up(&mut self, fault: DriverFault) -> FieldErrorKind {
        self.link.give_up(fault);
        self.lose()
    }
}
