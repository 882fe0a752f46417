//! The cables of a backup, which can be cut as links of the network can.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use bumpless_capture::netlink::Message;

use super::link::Slot;
use super::{held, link, namespace};

/// A cable from a router to each host, by place of a host.
#[derive(Clone, Debug)]
pub struct Cables(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    router: OwnedFd,
    /// The queue in which the router holds packets.
    queue: u16,
    /// The namespace of each host, and the number of its interface there.
    hosts: Vec<(PathBuf, u32)>,
}

impl Cables {
    /// Those of the router in this namespace; it has an interface for each host, in order.
    pub(super) fn new((router, queue): (OwnedFd, u16), hosts: Vec<(PathBuf, u32)>) -> Self {
        Self(Arc::new(Ends {
            router,
            queue,
            hosts,
        }))
    }

    /// How many packets found no room where the router holds them.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn overflowed(&self) -> io::Result<u64> {
        namespace::apart(|| {
            namespace::enter(&self.0.router)?;
            held::lost_here(self.0.queue)
        })
    }

    /// Makes the cable to the host of this place lose everything, in both directions. Nobody is told.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn cut(&self, place: usize) -> io::Result<()> {
        self.each_end(place, |number| {
            link::lose(Message::new(), number, Slot::Root)
        })
    }

    /// Makes it carry everything again.
    ///
    /// # Errors
    /// The kernel refuses; it carries everything already, for example.
    pub fn heal(&self, place: usize) -> io::Result<()> {
        self.each_end(place, |number| link::send_at_once(Message::new(), number))
    }

    fn each_end(&self, place: usize, order: fn(u32) -> Message) -> io::Result<()> {
        let ends = &*self.0;
        let (host, number) = &ends.hosts[place];
        let all = || {
            namespace::enter(&ends.router)?;
            namespace::socket()?.transact(order(link::number(place)).bytes())?;
            namespace::enter(&File::open(host)?)?;
            namespace::socket()?.transact(order(*number).bytes())
        };
        thread::scope(|scope| scope.spawn(all).join())
            .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
    }
}
