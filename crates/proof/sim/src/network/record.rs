//! What an eavesdropper keeps for replays: a fair sample of all that was ever sent, and of what
//! was sent lately.

use bumpless_base::Random;

use super::Datagram;

const EVER: usize = 256;
const LATELY: usize = 64;

/// The eavesdropper's store.
pub struct Record {
    random: Random,
    seen: u64,
    ever: Vec<Datagram>,
    lately: Vec<Datagram>,
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
    pub fn consider(&mut self, datagram: &Datagram) {
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

    /// One that is `wanted`.
    pub fn draw(&mut self, wanted: impl Fn(&Datagram) -> bool) -> Option<&Datagram> {
        let stores = [&self.ever, &self.lately];
        let store = stores[self.random.below(2) as usize];
        let start = self.random.below(store.len() as u64) as usize;
        let turned = store[start..].iter().chain(&store[..start]);
        let mut fitting = turned.filter(|it| wanted(it));
        fitting.next()
    }
}

fn keep(store: &mut Vec<Datagram>, at: usize, most: usize, datagram: &Datagram) {
    if store.len() < most {
        store.push(datagram.clone());
    } else {
        let kept = &mut store[at];
        let mut bytes = std::mem::take(&mut kept.bytes);
        bytes.clear();
        bytes.extend_from_slice(&datagram.bytes);
        *kept = Datagram { bytes, ..*datagram };
    }
}
