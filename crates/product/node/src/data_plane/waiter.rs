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
    lookout: Lookout,
}

/// Whether something is to be expected soon enough to look for it without sleeping (V-100).
struct Lookout {
    /// For so long after something came.
    busy_poll: Duration,
    /// When something came last.
    came: Instant,
}

impl Lookout {
    /// Has `look` look until something comes or the instant that it is given, where the next deadline is `until` and links whose queue is
    /// full are waited for or not: whether something came. `None`: it is the time to sleep.
    fn look(
        &self,
        until: Instant,
        is_full: bool,
        look: impl FnOnce(Instant) -> bool,
    ) -> Option<bool> {
        // Room to write is not looked for.
        if self.busy_poll == Duration::ZERO || is_full {
            return None;
        }
        let end = self.came + self.busy_poll;
        let came = look(until.min(end));
        (came || until <= end).then_some(came)
    }
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
            lookout: Lookout {
                busy_poll,
                came: Clock.now(),
            },
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
        let is_full = plane.ports.iter().flatten().any(|port| port.full);
        let look = |end| self.poller.look_busily(end);
        let came = match self.lookout.look(until, is_full, look) {
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
            self.lookout.came = Clock.now();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn lookout(busy_poll: u64) -> Lookout {
        Lookout {
            busy_poll: Duration::from_micros(busy_poll),
            came: at(1000),
        }
    }

    #[test]
    fn without_busy_polling_and_while_a_queue_is_full_nothing_is_looked_for_without_sleeping() {
        let never = |_| -> bool { panic!("it looks") };
        assert_eq!(lookout(0).look(at(1001), false, never), None);
        assert_eq!(lookout(50).look(at(1001), true, never), None);
    }

    #[test]
    fn what_comes_is_found_and_a_deadline_ends_the_look_as_it_ends_a_sleep() {
        for (until, end) in [(1020, 1020), (1050, 1050), (1051, 1050), (9000, 1050)] {
            let mut looked = None;
            let found = lookout(50).look(at(until), false, |it| {
                looked = Some(it);
                true
            });
            assert_eq!((found, looked), (Some(true), Some(at(end))), "{until}");
        }
        // Nothing came: at its deadline the plane has its turn, before it the thread sleeps until then.
        for (until, found) in [(1020, Some(false)), (1050, Some(false)), (1051, None)] {
            assert_eq!(
                lookout(50).look(at(until), false, |_| false),
                found,
                "{until}"
            );
        }
    }
}
