//! Waiting between two turns of the loop: for a datagram, a wake-up, or the next deadline.

use bumpless_base::{Duration, Instant};
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
    /// For how long it looks without sleeping after something came.
    busy_poll: Duration,
    /// When something came last.
    came: Instant,
}

impl Waiter {
    /// Waits for the links and ICMP sockets of `plane`, and for `waker`; for `busy_poll` after something came it looks for the next without
    /// sleeping.
    pub fn new(plane: &DataPlane, waker: Waker, busy_poll: Duration) -> Self {
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
            busy_poll,
            came: Clock.now(),
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
        let came = match self.look_busily(plane, until) {
            Some(came) => came,
            None => self.poller.wait(until).map_or_else(
                |_| {
                    // A failed wait (out of kernel memory) must not become a busy loop that starves the machine.
                    std::thread::sleep(std::time::Duration::from_micros(100));
                    false
                },
                |ready| !ready.is_empty(),
            ),
        };
        if came {
            self.came = Clock.now();
        }
        self.watch_full(plane, false);
        plane.resume(until.max(began), Clock.now());
    }

    /// Looks for something without sleeping as long as it is to be expected soon: whether something came. `None`: it is the time to sleep.
    fn look_busily(&mut self, plane: &DataPlane, until: Instant) -> Option<bool> {
        let end = self.came + self.busy_poll;
        let is_full = |port: &LinkPort| port.full;
        // Room to write is not looked for.
        if self.busy_poll == Duration::ZERO || plane.ports.iter().flatten().any(is_full) {
            return None;
        }
        let came = self.poller.look_busily(until.min(end));
        (came || until <= end).then_some(came)
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
