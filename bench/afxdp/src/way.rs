//! How a program waits for datagrams of two flows and takes them: by sockets as a node does, or from rings.

use std::io;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{Clock, Link, Poller, UdpConfig, UdpLink, Waker};

use crate::ring::Rings;
use crate::world::{HERE, PORTS};

/// Frames that are taken from a ring in a turn: as many as a node's socket gives buffers in one.
const TURN: u32 = 16;

pub enum Way<'a> {
    /// A node's own links and its waiting.
    Sockets {
        links: Vec<UdpLink>,
        poller: Poller,
    },
    Rings(&'a mut Rings, usize),
}

impl<'a> Way<'a> {
    /// For the first `flows` flows, to be opened by the thread that receives, in its namespace. Sockets that ask the interface with each
    /// read have SO_BUSY_POLL.
    pub fn open(rings: Option<&'a mut Rings>, flows: usize, asks: bool) -> Result<Self, String> {
        if let Some(rings) = rings {
            return Ok(Self::Rings(rings, flows));
        }
        let mut links = Vec::new();
        for port in &PORTS[..flows] {
            let local = format!("{HERE}:{port}").parse().expect("an address");
            let mut config = UdpConfig::new(local);
            if asks {
                config.busy_poll = Duration::from_micros(50);
            }
            links.push(UdpLink::open(&config).map_err(|error| error.to_string())?);
        }
        let descriptors: Vec<_> = links.iter().filter_map(Link::descriptor).collect();
        let waker = Waker::new().map_err(|error| error.to_string())?;
        let poller = Poller::new(&descriptors, waker);
        Ok(Self::Sockets { links, poller })
    }

    /// Until something is there, or the instant has come.
    pub fn wait(&mut self, until: Instant, busy: bool) {
        match self {
            Self::Sockets { poller, .. } if busy => drop(poller.look_busily(until)),
            Self::Sockets { poller, .. } => drop(poller.wait(until)),
            Self::Rings(rings, _) if busy => {
                while !rings.has_input() && Clock.now() < until {
                    std::thread::yield_now();
                }
            }
            Self::Rings(rings, flows) => sleep(rings, *flows, until),
        }
    }

    /// Takes a turn's datagrams of a flow: whether there may be more.
    pub fn receive(&mut self, flow: usize, sink: &mut dyn FnMut(&[u8])) -> bool {
        match self {
            Self::Sockets { links, .. } => links[flow].receive(&mut |_, bytes| sink(bytes)).more,
            Self::Rings(rings, _) => rings.receive(flow, TURN, sink),
        }
    }
}

fn sleep(rings: &Rings, flows: usize, until: Instant) {
    let mut entries = [0, 1].map(|flow| libc::pollfd {
        fd: rings.descriptor(flow),
        events: libc::POLLIN,
        revents: 0,
    });
    let left = until.since(Clock.now()).as_nanos();
    let timeout = libc::timespec {
        tv_sec: (left / 1_000_000_000) as _,
        tv_nsec: (left % 1_000_000_000) as _,
    };
    // SAFETY: the entries are borrowed through the call, the timeout lives through it, and no mask leaves signals alone.
    let result = unsafe {
        libc::ppoll(
            entries.as_mut_ptr(),
            flows as _,
            &raw const timeout,
            std::ptr::null(),
        )
    };
    assert!(result >= 0, "{}", io::Error::last_os_error());
}
