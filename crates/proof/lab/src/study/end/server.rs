//! The servers of a substation: each sends back what it hears.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};

use super::MESSAGE;
use super::connection::congestion_control;
use crate::study::transport::{Socket, Transport};

/// Where a substation listens, opened before anybody calls.
#[derive(Debug)]
pub enum Ports {
    /// For connections.
    Stream(TcpListener, Option<Arc<ServerConfig>>),
    /// For datagrams.
    Datagrams(UdpSocket),
}

impl Ports {
    /// Opens the port of a transport at `address`, which is one of the host in whose namespace the calling thread is.
    ///
    /// # Errors
    /// What the system says: a kernel may lack MPTCP.
    pub fn open(
        transport: &Transport,
        address: Ipv4Addr,
        tls: &Arc<ServerConfig>,
    ) -> io::Result<Self> {
        let at = |address| SocketAddrV4::new(address, transport.port);
        // Connections may come over the backup, too.
        let here = at(Ipv4Addr::UNSPECIFIED);
        let protocol = match transport.socket {
            // Answers are from the address that was asked.
            Socket::Udp => return UdpSocket::bind(at(address)).map(Self::Datagrams),
            Socket::Tcp => Protocol::TCP,
            Socket::Mptcp => Protocol::MPTCP,
            Socket::Quic | Socket::MultipathQuic | Socket::Sctp | Socket::State => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        };
        let socket = RawSocket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        socket.set_reuse_address(true)?;
        congestion_control(&socket);
        socket.bind(&here.into())?;
        socket.listen(64)?;
        let tls = transport.tls.then(|| Arc::clone(tls));
        Ok(Self::Stream(socket.into(), tls))
    }
}

/// Serves a port on threads of its own, until the process ends.
pub fn serve(ports: Ports) {
    thread::spawn(move || match ports {
        Ports::Datagrams(socket) => {
            let mut datagram = [0; MESSAGE + 1];
            loop {
                // Nobody is there to be told of one that cannot be sent back.
                if let Ok((len, from)) = socket.recv_from(&mut datagram) {
                    let _ = socket.send_to(&datagram[..len], from);
                }
            }
        }
        Ports::Stream(listener, tls) => {
            for stream in listener.incoming().flatten() {
                let tls = tls.clone();
                thread::spawn(move || answer(stream, tls));
            }
        }
    });
}

/// Sends back what comes until the other end ends it.
fn answer(stream: TcpStream, tls: Option<Arc<ServerConfig>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match tls {
        None => echo(stream),
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(io::Error::other)?;
            echo(StreamOwned::new(connection, stream))
        }
    }
}

fn echo(mut stream: impl Read + Write) -> io::Result<()> {
    let mut chunk = [0; 4 * MESSAGE];
    loop {
        let len = stream.read(&mut chunk)?;
        if len == 0 {
            return Ok(());
        }
        stream.write_all(&chunk[..len])?;
        stream.flush()?;
    }
}
