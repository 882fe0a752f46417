//! The conversation with a driver's process: one order at a time, and never a wait beyond the deadline.

use std::io;
use std::os::fd::OwnedFd;

use bumpless_base::{Duration, Instant};
use bumpless_field_driver::message::{MESSAGE_MAX, Said};
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::driver_link::{DriverFailures, DriverFault, DriverLink, DriverNumber, HandedOver};
use crate::{FieldErrorKind, TimeSource};

/// A driver that owes an answer for longer is given up.
const HUNG: Duration = Duration::from_secs(1);
/// A driver that tells people more than this between an order and its answer is given up.
const NOTES_MAX: usize = 16;

/// The driver's process does not run.
const GONE: FieldErrorKind = FieldErrorKind::DriverGone;

pub(super) struct Conversation {
    link: Box<dyn DriverLink>,
    /// A connection that the runtime does not wait for yet: it came with a driver that was taken over.
    arrived: Option<OwnedFd>,
    socket: Option<UnixDatagram>,
    /// Number of the order that is not answered yet, and when it was sent.
    pending: Option<(u32, Instant)>,
    number: u32,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// What the driver tells people and could not be shown at once.
    note: Option<String>,
    /// How often it has told something since the last order.
    notes: usize,
}

/// In the place of a link that was given away.
struct Nobody;

impl DriverLink for Nobody {
    fn take(&mut self) -> Option<OwnedFd> {
        None
    }
    fn give_up(&mut self, _: DriverFault) {}
    fn note(&mut self, _: &str) -> bool {
        true
    }
    fn failures(&mut self) -> Option<DriverFailures> {
        None
    }
    fn number(&self) -> DriverNumber {
        DriverNumber(0)
    }
    fn heir_to(&self) -> Option<DriverNumber> {
        None
    }
    fn end(&mut self) {}
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
            arrived: None,
            socket: None,
            pending: None,
            number: 0,
            outgoing: Vec::with_capacity(MESSAGE_MAX),
            incoming: vec![0; MESSAGE_MAX + 1],
            note: None,
            notes: 0,
        }
    }

    /// Goes on where another one has ended.
    pub fn taken_over(driver: HandedOver) -> Self {
        Self {
            arrived: driver.socket,
            pending: driver.pending,
            number: driver.number,
            ..Self::new(driver.link)
        }
    }

    pub fn hand_over(&mut self) -> HandedOver {
        let socket = self.socket.take().and_then(|it| it.into_std().ok());
        HandedOver {
            link: std::mem::replace(&mut self.link, Box::new(Nobody)),
            socket: socket.map(OwnedFd::from).or_else(|| self.arrived.take()),
            pending: self.pending.take(),
            number: self.number,
        }
    }

    pub fn leads_to(&self) -> DriverNumber {
        self.link.number()
    }

    pub fn heir_to(&self) -> Option<DriverNumber> {
        self.link.heir_to()
    }

    pub fn end(&mut self) {
        self.link.end();
    }

    pub fn failures(&mut self) -> Option<DriverFailures> {
        self.link.failures()
    }

    /// Sees to it that there is a driver that owes nothing. Returns whether it is another one than before.
    pub fn attend(&mut self, now: Instant) -> Result<bool, FieldErrorKind> {
        if let Some(note) = self.note.take()
            && !self.link.note(&note)
        {
            self.note = Some(note);
        }
        let arrived = self.arrived.take();
        let is_new = match (self.link.take(), arrived) {
            (Some(socket), _) => {
                (self.pending, self.note) = (None, None);
                self.wait_for(socket)?;
                true
            }
            (None, Some(socket)) => {
                self.wait_for(socket)?;
                true
            }
            (None, None) => false,
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

    /// Has the runtime wait for what comes through `socket`.
    fn wait_for(&mut self, socket: OwnedFd) -> Result<(), FieldErrorKind> {
        match watched(socket) {
            Ok(socket) => {
                self.socket = Some(socket);
                Ok(())
            }
            Err(_) => Err(self.lose()),
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
        self.notes = 0;
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
        while self.notes < NOTES_MAX {
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
                    self.notes += 1;
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

    /// The process has ended, or is about to; whoever watches it sees to it that it does.
    fn lose(&mut self) -> FieldErrorKind {
        self.give_up(DriverFault::LetGo)
    }

    pub fn give_up(&mut self, fault: DriverFault) -> FieldErrorKind {
        self.link.give_up(fault);
        (self.socket, self.pending) = (None, None);
        GONE
    }
}
