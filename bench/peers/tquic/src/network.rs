//! Sockets, one for each network, and the loop that drives an endpoint by them.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token, Waker};
use socket2::{Domain, Protocol, Socket, Type};
use tquic::{Endpoint, PacketInfo, PacketSendHandler};

/// Bytes asked for each socket's buffers.
const SOCKET_BUFFER: usize = 2 * 1024 * 1024;
const LARGEST_DATAGRAM: usize = 65_535;
const EVENTS: usize = 64;
/// How long a timer on a dead path is left alone.
const AGAIN: Duration = Duration::from_millis(1);
/// The token of the waker; sockets have the tokens below.
const WAKE: Token = Token(usize::MAX);

/// The sockets.
pub struct Sockets {
    sockets: Vec<(SocketAddr, UdpSocket)>,
}

impl Sockets {
    /// Binds a socket to each address; port 0 means any.
    pub fn bind(addresses: &[Ipv4Addr], port: u16) -> anyhow::Result<Rc<Self>> {
        let bind = |address: &Ipv4Addr| {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
            socket.set_recv_buffer_size(SOCKET_BUFFER)?;
            socket.set_send_buffer_size(SOCKET_BUFFER)?;
            socket.set_nonblocking(true)?;
            let address = SocketAddr::from((*address, port));
            let bound = socket.bind(&address.into());
            bound.with_context(|| format!("cannot bind to {address}"))?;
            let socket = UdpSocket::from_std(socket.into());
            Ok((socket.local_addr()?, socket))
        };
        let sockets = addresses.iter().map(bind).collect::<anyhow::Result<_>>()?;
        Ok(Rc::new(Self { sockets }))
    }

    /// The sockets' own addresses, in the order of the networks.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|(address, _)| *address).collect()
    }
}

impl PacketSendHandler for Sockets {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        for (sent, (bytes, info)) in packets.iter().enumerate() {
            let own = self
                .sockets
                .iter()
                .find(|(address, _)| *address == info.src);
            let Some((_, socket)) = own else { continue };
            match socket.send_to(bytes, info.dst) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(sent),
                // A network that is down loses what is sent to it.
                _ => {}
            }
        }
        Ok(packets.len())
    }
}

/// What drives an endpoint.
pub struct Driver {
    poll: Poll,
    events: Events,
    sockets: Rc<Sockets>,
    datagram: Vec<u8>,
    /// How long a timer is left alone after a turn in which one was due and nothing came.
    again: Duration,
    /// It was so in the last turn.
    has_fired: bool,
}

impl Driver {
    /// Registers the sockets.
    pub fn new(sockets: &Rc<Sockets>) -> anyhow::Result<Self> {
        use std::os::fd::AsRawFd;
        let poll = Poll::new()?;
        for (number, (_, socket)) in sockets.sockets.iter().enumerate() {
            let descriptor = socket.as_raw_fd();
            let mut source = mio::unix::SourceFd(&descriptor);
            poll.registry()
                .register(&mut source, Token(number), Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(EVENTS),
            sockets: sockets.clone(),
            datagram: vec![0; LARGEST_DATAGRAM],
            again: Duration::ZERO,
            has_fired: false,
        })
    }

    /// For whoever loses paths. tquic 1.6.0 may leave a timer due for as long as nothing comes on a path that is dead, which
    /// takes a processor: such a timer is left alone for a millisecond. So is one of pacing, which is why it is not always so.
    #[must_use]
    pub fn with_dead_paths(self) -> Self {
        Self {
            again: AGAIN,
            ..self
        }
    }

    /// What ends a wait from another thread.
    pub fn waker(&self) -> anyhow::Result<Waker> {
        Ok(Waker::new(self.poll.registry(), WAKE)?)
    }

    /// Waits for datagrams, a timer, or the waker, but not longer than `most`, and gives the endpoint what came.
    pub fn turn(&mut self, endpoint: &mut Endpoint, most: Duration) -> anyhow::Result<()> {
        let least = match self.has_fired {
            true => self.again,
            false => Duration::ZERO,
        };
        let wait = endpoint
            .timeout()
            .map_or(most, |timer| timer.max(least).min(most));
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
            _ => {}
        }
        let mut has_come = false;
        for (address, socket) in &self.sockets.sockets {
            while let Ok((length, from)) = socket.recv_from(&mut self.datagram) {
                let info = PacketInfo {
                    src: from,
                    dst: *address,
                    time: Instant::now(),
                };
                has_come = true;
                // A packet that cannot be taken is as one that was lost.
                let _ = endpoint.recv(&mut self.datagram[..length], &info);
            }
        }
        let is_due = endpoint.timeout().is_some_and(|timer| timer.is_zero());
        if is_due {
            endpoint.on_timeout(Instant::now());
        }
        self.has_fired = is_due && !has_come;
        Ok(())
    }
}
