//! Who published which state when: what the other checkers compare with.

use bumpless_base::{Epoch, Instant};

/// States of an application that are remembered: those of ten minutes at 10 ms, because a node that stood still may
/// read what its partner published before.
const REMEMBERED: usize = 65_536;

/// A state that an application handed to its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// The application.
    pub application: usize,
    /// On which node.
    pub node: usize,
    /// In which life of its process.
    pub incarnation: u32,
    /// The epoch in its envelope.
    pub epoch: Epoch,
    /// The cycle in its envelope.
    pub cycle: u64,
    /// Digest of all its bytes.
    pub digest: u64,
    /// True time.
    pub at: u64,
}

/// A state that lies ready for an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// The application.
    pub application: usize,
    /// On which node.
    pub node: usize,
    /// The session with the partner, by the tag of its packets.
    pub session: u32,
    /// The transfer cycle.
    pub transfer_cycle: u32,
    /// Digest of all bytes.
    pub digest: u64,
    /// How long they are.
    pub len: usize,
    /// Until when it can be read, by the node's clock.
    pub expires_at: Instant,
    /// True time.
    pub at: u64,
    /// How long the quickest of its packets was under way until it was taken, nanoseconds.
    pub transit: u64,
}

/// The newest states of each application.
pub struct Ledger {
    applications: Vec<Vec<Published>>,
    next: Vec<usize>,
}

impl Ledger {
    /// An empty one.
    pub fn new(applications: usize) -> Self {
        Self {
            applications: vec![Vec::new(); applications],
            next: vec![0; applications],
        }
    }

    /// Enters a state.
    pub fn publish(&mut self, published: Published) {
        let (states, next) = (
            &mut self.applications[published.application],
            &mut self.next[published.application],
        );
        if states.len() < REMEMBERED {
            states.push(published);
        } else {
            states[*next] = published;
        }
        *next = (*next + 1) % REMEMBERED;
    }

    /// The publication whose bytes these are.
    pub fn origin(&self, delivered: &Delivered) -> Option<Published> {
        let states = &self.applications[delivered.application];
        // The newest stands before `next`; where that is 0, at the very end.
        let (before, behind) = states.split_at(self.next[delivered.application].min(states.len()));
        let newest_first = before.iter().rev().chain(behind.iter().rev());
        newest_first
            .filter(|published| published.digest == delivered.digest)
            .copied()
            .next()
    }
}
