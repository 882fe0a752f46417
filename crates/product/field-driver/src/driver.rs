//! The driver's side of the connection with its node.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{RecvFlags, SendFlags, sockopt};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::message::{self, MESSAGE_MAX, Opening};
use crate::{Direction, Order, Outcome, Point, Value};

/// What a driver is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// What messages for people call the device.
    pub device: String,
    /// Where it is: IP address and port.
    pub address: String,
    /// What the configuration says besides, each with its name.
    pub options: Vec<(String, String)>,
    /// The inputs.
    pub inputs: Vec<Point>,
    /// The outputs.
    pub outputs: Vec<Point>,
}

impl Setup {
    /// What the configuration says under `name`.
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.options.iter();
        options.find_map(|(known, value)| (known == name).then_some(value.as_str()))
    }
}

/// The connection with the node: the process's standard input, a socket of whole messages.
#[derive(Debug)]
pub struct Driver {
    socket: Arc<OwnedFd>,
    buffer: Vec<u8>,
    /// What answers carry: the number of the order that came last.
    number: u32,
}

impl Driver {
    /// Takes up the connection, and hears what it is for. From then on the process ends with the one that started it.
    ///
    /// # Errors
    /// Nobody is there, or not a node of this version.
    pub fn attach() -> io::Result<(Self, Setup)> {
        let socket = rustix::io::dup(rustix::stdio::stdin())?;
        end_with_parent(&socket)?;
        let mut driver = Self {
            socket: Arc::new(socket),
            buffer: vec![0; MESSAGE_MAX + 1],
            number: 0,
        };
        let setup = driver.setup()?;
        Ok((driver, setup))
    }

    fn setup(&mut self) -> io::Result<Setup> {
        let Some(Order::Open(Opening {
            inputs,
            outputs,
            device,
            address,
            options,
        })) = self.order()?
        else {
            return Err(unexpected());
        };
        let mut setup = Setup {
            device,
            address,
            options,
            ..Setup::default()
        };
        loop {
            match self.order()? {
                Some(Order::Point(at, point)) => {
                    let all = match point.direction {
                        Direction::Input => &mut setup.inputs,
                        Direction::Output => &mut setup.outputs,
                    };
                    if all.len() != at as usize {
                        return Err(unexpected());
                    }
                    all.push(point);
                }
                Some(Order::Begin) => break,
                _ => return Err(unexpected()),
            }
        }
        let counts = (setup.inputs.len() as u32, setup.outputs.len() as u32);
        match counts == (inputs, outputs) {
            true => Ok(setup),
            false => Err(unexpected()),
        }
    }

    /// Waits for the next order; `None`: there is no more, and the driver ends.
    ///
    /// # Errors
    /// The system's, or what came is no order of this version.
    pub fn order(&mut self) -> io::Result<Option<Order>> {
        let received = rustix::io::retry_on_intr(|| {
            rustix::net::recv(&*self.socket, &mut self.buffer[..], RecvFlags::empty())
        });
        let (_, len) = match received {
            Ok((_, 0)) | Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Ok(received) => received,
            Err(error) => return Err(error.into()),
        };
        let order = Order::parse(&self.buffer[..len.min(self.buffer.len())]);
        let (number, order) =
            order.map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
        self.number = number;
        Ok(Some(order))
    }

    /// Says that orders may come; `what` is the driver's name and version.
    ///
    /// # Errors
    /// The node is gone.
    pub fn ready(&self, what: &str) -> io::Result<()> {
        let answers = self.answers();
        answers.send(|buffer| message::put_ready(buffer, self.number, what))
    }

    /// Says why it cannot do what it is asked to, and what to do.
    ///
    /// # Errors
    /// The node is gone.
    pub fn refuse(&self, why: &str) -> io::Result<()> {
        let answers = self.answers();
        answers.send(|buffer| message::put_refused(buffer, self.number, why))
    }

    /// What answers the order that came last.
    pub fn answers(&self) -> Answers {
        Answers {
            socket: Arc::clone(&self.socket),
            number: self.number,
        }
    }
}

/// What answers one order, from any thread.
#[derive(Clone, Debug)]
pub struct Answers {
    socket: Arc<OwnedFd>,
    number: u32,
}

impl Answers {
    /// Answers [`Order::Read`] with the values that were due, in their order.
    ///
    /// # Errors
    /// The node is gone.
    pub fn values(&self, outcome: Outcome, values: &[Value]) -> io::Result<()> {
        self.send(|buffer| message::put_values(buffer, self.number, outcome, values))
    }

    /// Answers [`Order::Write`].
    ///
    /// # Errors
    /// The node is gone.
    pub fn written(&self, outcome: Outcome) -> io::Result<()> {
        self.send(|buffer| message::put_written(buffer, self.number, outcome))
    }

    /// Answers [`Order::Probe`].
    ///
    /// # Errors
    /// The node is gone.
    pub fn state(&self, outcome: Outcome) -> io::Result<()> {
        self.send(|buffer| message::put_state(buffer, self.number, outcome))
    }

    /// Tells people something, which holds until the next; an empty text takes it back.
    ///
    /// # Errors
    /// The node is gone.
    pub fn note(&self, text: &str) -> io::Result<()> {
        self.send(|buffer| message::put_note(buffer, text))
    }

    fn send(&self, put: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut buffer = Vec::new();
        put(&mut buffer);
        let sent = rustix::io::retry_on_intr(|| {
            rustix::net::send(&*self.socket, &buffer, SendFlags::NOSIGNAL)
        });
        sent.map(|_| ()).map_err(Into::into)
    }
}

/// Has the system end this process with its parent: the node, or what the node has started instead of it. The node has
/// asked for that for its own child, which another program in between does not pass on.
fn end_with_parent(socket: &OwnedFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Whose parent has ended before is a child of the first process, which is a node only where that made the socket.
    let node = sockopt::socket_peercred(socket).map(|it| it.pid);
    let parent = getppid();
    match parent == Some(Pid::INIT) && node.ok() != parent {
        true => Err(io::ErrorKind::BrokenPipe.into()),
        false => Ok(()),
    }
}

fn unexpected() -> io::Error {
    let wrong = "what came is not what a node says to a driver that begins";
    io::Error::new(io::ErrorKind::InvalidData, wrong)
}
