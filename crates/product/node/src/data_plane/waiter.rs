//! Waiting between two turns of the loop: for a datagram, a wake-up, or the next deadline.

use bumpless_base::Instant;
use bumpless_net_linux::{Clock, Poller, Waker};

use super::link_port::LinkPort;
use super::{DataPlane, Turn};
use crate::event::NodeEvent;
use crate::warn;

/// What the data-plane thread waits with.
pub struct Waiter {
    poller: Poller,
    /// Position in `poller` of each port's descriptor.
    descriptors: Vec<Option<usize>>,
}

impl Waiter {
    /// Waits for the links and ICMP sockets of `plane`, and for `waker`.
    pub fn new(plane: &DataPlane, waker: Waker) -> Self {
        let mut watched = Vec::new();
        let mut watch = |descriptor| {
            watched.push(descriptor);
            watched.len() - 1
        };
        let ports = plane.ports.iter();
        let descriptors = ports
            .map(|port| port.as_ref().and_then(LinkPort::descriptor).map(&mut watch))
            .collect();
        for pinger in plane.pingers.iter().flatten() {
            watch(pinger.descriptor());
        }
        Self {
            poller: Poller::new(&watched, waker),
            descriptors,
        }
    }

    /// Runs `plane` until it ends.
    pub fn run(&mut self, plane: &mut DataPlane) {
        plane.tell_started(Clock.now());
        loop {
            match plane.turn(|| Clock.now()) {
                Turn::Wait(until) => self.wait(plane, until),
                Turn::Ended => break,
                Turn::WatchdogExpired(period) => {
                    warn(format_args!(
                        "a cycle of an application with a period of {period} does not end; this node ends so \
                         that its partner takes over"
                    ));
                    std::process::abort();
                }
            }
        }
        plane
            .surroundings
            .sink
            .record(Clock.now(), NodeEvent::Stopping);
    }

    fn wait(&mut self, plane: &mut DataPlane, until: Instant) {
        self.watch_full(plane, true);
        let began = Clock.now();
        // A failed wait (out of kernel memory) must not become a busy loop that starves the
        // machine.
        if self.poller.wait(until).is_err() {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        self.watch_full(plane, false);
        plane.resume(until.max(began), Clock.now());
    }

    /// Wakes up when a link whose queue was full can take more.
    fn watch_full(&mut self, plane: &DataPlane, watch: bool) {
        for (port, descriptor) in plane.ports.iter().zip(&self.descriptors) {
            if let (Some(true), Some(at)) = (port.as_ref().map(|port| port.full), descriptor) {
                self.poller.watch_writable(*at, watch);
            }
        }
    }
}
