//! Messages to the kernel and from it (RFC 3549; linux/netlink.h, linux/netfilter/nfnetlink.h).

mod message;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send,
    socket_with,
};

pub use message::{Message, attributes, messages};

/// The answer to a message that asked for one, or the error of any message.
const ERROR: u16 = 2;
/// The end of an answer in several parts.
const DONE: u16 = 3;
/// Room for what the kernel answers in one go.
const ANSWER_MAX: usize = 64 * 1024;

/// `what` could not be done since the kernel said `error`.
pub fn failed(what: &str, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// A socket to one part of the kernel. It never blocks, and no child process inherits it.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
}

impl Netlink {
    /// Opens a socket of this protocol; `None`: that of routes, which has the number 0.
    pub fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        Self::open_to_groups(protocol, 0)
    }

    /// The same, to which news of these groups come, a bit for each of the first 32.
    pub fn open_to_groups(protocol: Option<Protocol>, groups: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        bind(&fd, &SocketAddrNetlink::new(0, groups))?;
        Ok(Self { fd })
    }

    /// Asks for room for so many bytes of what has come and was not read; takes what it gets.
    pub fn set_room(&self, bytes: usize) {
        if set_socket_recv_buffer_size_force(&self.fd, bytes).is_err() {
            let _ = set_socket_recv_buffer_size(&self.fd, bytes);
        }
    }

    /// Sends whole messages.
    pub fn send(&self, messages: &[u8]) -> io::Result<()> {
        send(&self.fd, messages, SendFlags::empty())?;
        Ok(())
    }

    /// What has come, if anything has: whole messages, in `buffer`.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        match recv(&self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((length, _)) => Ok(Some(&buffer[..length])),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends messages and looks at the answers, which the kernel has given when it has taken the messages. What else
    /// has come is lost.
    ///
    /// # Errors
    /// The first error among the answers.
    pub fn transact(&self, messages: &[u8]) -> io::Result<()> {
        self.send(messages)?;
        let mut first = Ok(());
        let mut buffer = vec![0; ANSWER_MAX];
        while let Some(answers) = self.receive(&mut buffer)? {
            for (_, body) in message::messages(answers).filter(|(kind, _)| *kind == ERROR) {
                first = first.and(refusal(body));
            }
        }
        first
    }

    /// Sends a question and gives each part of the answer to `take`, until the end.
    ///
    /// # Errors
    /// The kernel refuses the question.
    pub fn dump(&self, question: &[u8], mut take: impl FnMut(u16, &[u8])) -> io::Result<()> {
        self.send(question)?;
        let mut buffer = vec![0; ANSWER_MAX];
        // The next parts are made while the former are read.
        while let Some(answers) = self.receive(&mut buffer)? {
            for (kind, body) in message::messages(answers) {
                match kind {
                    DONE => return Ok(()),
                    ERROR => refusal(body)?,
                    _ => take(kind, body),
                }
            }
        }
        Ok(())
    }
}

/// What an answer of the kind [`ERROR`] says; 0 is no error.
fn refusal(body: &[u8]) -> io::Result<()> {
    let code = body
        .first_chunk()
        .map_or(0, |code| i32::from_ne_bytes(*code));
    match code {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

impl AsRawFd for Netlink {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
