//! The host's networks are others.

use bumpless_base::Instant;

use super::{BURST, DataPlane, KnownMembers};
use crate::exchange::Attached;

/// Turns in which a socket that goes is emptied at most: more than can wait there, so that only what still comes can be left.
const TURNS: usize = 512;

impl DataPlane {
    /// The host's networks are these from here on. Sockets of networks that stay are the same ones in `attached`, with what waits there. What
    /// waits at those that close is taken before that.
    pub(super) fn attach(&mut self, now: Instant, attached: Box<Attached>) {
        // They look at each session, while packets come on.
        self.sender.set_networks(attached.networks);
        self.receiver.set_networks(now, attached.networks);
        for place in 0..self.attached.ports.len() {
            if !self.attached.ports.is_among(place, &attached.ports) {
                self.empty(now, place);
            }
        }
        let before = attached.inds.iter().map(|ind| self.attached.card(*ind));
        self.passed.renumber(&before.collect::<Vec<_>>());
        self.attached = attached;
        // They were told by numbers of cards.
        self.members = KnownMembers::default();
    }

    fn empty(&mut self, now: Instant, place: usize) {
        for _ in 0..TURNS {
            if self.receive(now, place) < BURST {
                return;
            }
        }
    }
}
