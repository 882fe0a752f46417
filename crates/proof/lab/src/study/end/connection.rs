//! One connection of the client, none of whose calls waits: messages go in, answers come out.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::event::PollFlags;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};

use super::MESSAGE;
use super::certificate::NAME;
use crate::study::transport::Socket;

/// Bytes that are read at once.
const CHUNK: usize = 16 << 10;

/// The congestion control of the paper's transports of one way, and of MPTCP v1.
const CONGESTION: &[u8] = b"cubic";

/// A connection, or the socket that stands for one.
#[derive(Debug)]
pub enum Connection {
    /// Bytes in a row.
    Stream(Box<Stream>),
    /// Datagrams, one for each message.
    Datagrams(UdpSocket),
}

/// A stream, enciphered or not.
#[derive(Debug)]
pub struct Stream {
    socket: TcpStream,
    tls: Option<ClientConnection>,
    established: bool,
    out: Vec<u8>,
    came: Vec<u8>,
}

impl Connection {
    /// Begins one; it need not be established yet.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin(
        socket: Socket,
        tls: Option<&Arc<ClientConfig>>,
        (from, to): (SocketAddrV4, SocketAddrV4),
    ) -> io::Result<Self> {
        let protocol = match socket {
            Socket::Udp => {
                let socket = UdpSocket::bind(from)?;
                socket.connect(to)?;
                socket.set_nonblocking(true)?;
                return Ok(Self::Datagrams(socket));
            }
            Socket::Tcp => Protocol::TCP,
            Socket::Mptcp => Protocol::MPTCP,
            Socket::Quic | Socket::MultipathQuic | Socket::Sctp | Socket::State => {
                return Err(ErrorKind::Unsupported.into());
            }
        };
        let socket = RawSocket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        congestion_control(&socket);
        socket.bind(&from.into())?;
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        let tls = tls.map(|config| {
            let name = ServerName::try_from(NAME).expect("a name");
            ClientConnection::new(Arc::clone(config), name)
                .map(|mut it| {
                    it.set_buffer_limit(None);
                    it
                })
                .map_err(io::Error::other)
        });
        Ok(Self::Stream(Box::new(Stream {
            socket: socket.into(),
            tls: tls.transpose()?,
            established: false,
            out: Vec::new(),
            came: Vec::new(),
        })))
    }

    /// Whether messages pass, as far as this end knows.
    pub fn is_established(&self) -> bool {
        match self {
            Self::Datagrams(_) => true,
            Self::Stream(it) => {
                it.established && it.tls.as_ref().is_none_or(|tls| !tls.is_handshaking())
            }
        }
    }

    /// Gives a message to it, which leaves as soon as it can.
    ///
    /// # Errors
    /// The connection has failed.
    pub fn send(&mut self, message: &[u8; MESSAGE]) -> io::Result<()> {
        match self {
            Self::Datagrams(socket) => not_waiting(socket.send(message)).map(drop),
            Self::Stream(it) => {
                match &mut it.tls {
                    Some(tls) => tls.writer().write_all(message)?,
                    None => it.out.extend_from_slice(message),
                }
                it.flush()
            }
        }
    }

    /// What it waits for.
    pub fn waits_for(&self) -> PollFlags {
        match self {
            Self::Stream(it) if !it.established || it.has_output() => {
                PollFlags::IN | PollFlags::OUT
            }
            _ => PollFlags::IN,
        }
    }

    /// Does what can be done, and gives each message that has come, whole, to `heard`.
    ///
    /// # Errors
    /// The connection has failed, or its other end has ended it.
    pub fn advance(&mut self, mut heard: impl FnMut(&[u8])) -> io::Result<()> {
        let it = match self {
            Self::Datagrams(socket) => {
                let mut datagram = [0; MESSAGE + 1];
                while let Some(len) = not_waiting(socket.recv(&mut datagram))? {
                    if len == MESSAGE {
                        heard(&datagram[..len]);
                    }
                }
                return Ok(());
            }
            Self::Stream(it) => it,
        };
        it.read()?;
        it.flush()?;
        let whole = it.came.len() / MESSAGE * MESSAGE;
        it.came[..whole].chunks_exact(MESSAGE).for_each(&mut heard);
        it.came.drain(..whole);
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stream(it) => it.socket.as_fd(),
            Self::Datagrams(socket) => socket.as_fd(),
        }
    }
}

impl Stream {
    fn has_output(&self) -> bool {
        let tls = self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        tls || !self.out.is_empty()
    }

    fn read(&mut self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        loop {
            let read = match &mut self.tls {
                Some(tls) => not_waiting(tls.read_tls(&mut self.socket))?,
                None => not_waiting(self.socket.read(&mut chunk))?,
            };
            match read {
                None => return Ok(()),
                Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Some(len) => {
                    self.established = true;
                    match &mut self.tls {
                        Some(tls) => decipher(tls, &mut self.came)?,
                        None => self.came.extend_from_slice(&chunk[..len]),
                    }
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.established {
            if let Some(error) = self.socket.take_error()? {
                return Err(error);
            }
            self.established = self.socket.peer_addr().is_ok();
        }
        while self.has_output() {
            let wrote = match &mut self.tls {
                Some(tls) => not_waiting(tls.write_tls(&mut self.socket))?,
                None => not_waiting(self.socket.write(&self.out))?,
            };
            match wrote {
                None => break,
                Some(len) if self.tls.is_none() => drop(self.out.drain(..len)),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// What the paper's table I has, where the kernel has it, too.
pub fn congestion_control(socket: &RawSocket) {
    let _ = socket.set_tcp_congestion(CONGESTION);
}

fn decipher(tls: &mut ClientConnection, came: &mut Vec<u8>) -> io::Result<()> {
    tls.process_new_packets().map_err(io::Error::other)?;
    let mut chunk = [0; CHUNK];
    while let Some(len) = not_waiting(tls.reader().read(&mut chunk))? {
        if len == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        came.extend_from_slice(&chunk[..len]);
    }
    Ok(())
}

/// `None` if it would have to wait; a socket that is not connected yet waits, too.
fn not_waiting(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(len) => Ok(Some(len)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected => Ok(None),
            _ => Err(error),
        },
    }
}
