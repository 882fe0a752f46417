//! What an eavesdropper keeps for replays: a fair sample of all that was ever sent, and of what
//! was sent lately.

use bumpless_base::Random;

use super::InFlight;
use crate::script::End;

const EVER: usize = 256;
const LATELY: usize = 64;

/// The eavesdropper's store.
pub struct Record {
    random: Random,
    seen: u64,
    ever: Vec<InFlight>,
    lately: Vec<InFlight>,
    next: usize,
}

impl Record {
    /// An empty one.
    pub fn new(random: Random) -> Self {
        Self {
            random,
            seen: 0,
            ever: Vec::with_capacity(EVER),
            lately: Vec::with_capacity(LATELY),
            next: 0,
        }
    }

    /// Keeps `datagram` perhaps (reservoir sampling, Vitter 1985, algorithm R).
    pub fn consider(&mut self, datagram: &InFlight) {
        self.seen += 1;
        let at = self.random.below(self.seen) as usize;
        if at < EVER {
            keep(&mut self.ever, at, EVER, datagram);
        }
        if self.seen.is_multiple_of(32) {
            keep(&mut self.lately, self.next, LATELY, datagram);
            self.next = (self.next + 1) % LATELY;
        }
    }

    /// One that went to `to` on `network`.
    pub fn draw(&mut self, network: usize, to: End) -> Option<InFlight> {
        let stores = [&self.ever, &self.lately];
        let store = stores[self.random.below(2) as usize];
        let start = self.random.below(store.len() as u64) as usize;
        let turned = store[start..].iter().chain(&store[..start]);
        turned
            .filter(|it| it.network == network && it.to == to)
            .map(InFlight::copy)
            .next()
    }
}

fn keep(store: &mut Vec<InFlight>, at: usize, most: usize, datagram: &InFlight) {
    if store.len() < most {
        store.push(datagram.copy());
    } else {
        let kept = &mut store[at];
        kept.bytes.clear();
        kept.bytes.extend_from_slice(&datagram.bytes);
        (kept.network, kept.source) = (datagram.network, datagram.source);
        (kept.to, kept.sent) = (datagram.to, datagram.sent);
    }
}
