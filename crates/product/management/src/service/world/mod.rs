//! Two nodes of a pair whose clocks, lists and processes change as a seed draws it, and strangers and revoked certificates
//! in the place of one of them. The shipped thread's turns are called, one node after the other in one thread, with times of the
//! world's own; TCP is this computer's.
//!
//!     BUMPLESS_SESSION_SEEDS=200 cargo test -p bumpless-management --lib world
//!
//! Judged is what the data planes of both are given (`check.rs`): keys are shared with who is *known* alone, *gone* within two
//! seconds of a revocation, *dated*, and do not go otherwise (*goes on*); *limits* come before keys, what seals is *opened first*
//! and for as long as it seals (*opens*); differences are *told*, proposals are *answered* as they were, and after all of it
//! the pair agrees again (*heals*).

mod check;
mod node;
mod site;

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use self::check::{Occupant, Pair, Verdict};
use self::node::{Node, address};
use self::site::Site;
use super::proposal::{Carried, Order};

/// Drawn events of a world.
const EVENTS: usize = 40;
/// How long a list may take until it counts (M-7).
const COUNTS_WITHIN: Duration = Duration::from_secs(2);
/// How long a pair whose parts are all sound may take to agree: in turns, since what passes between both is not the
/// world's.
const HEALS_WITHIN: usize = 3_000;

/// The world's random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// A proposal on its way: who asked for what, and where the answer comes.
struct Asked {
    to: usize,
    text: String,
    answer: Receiver<Carried>,
}

pub(super) struct World {
    random: Random,
    now: Instant,
    site: Site,
    pair: Arc<Mutex<Pair>>,
    nodes: [Node; 2],
    asked: Vec<Asked>,
    proposals: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut site = Site::new();
        let ports = [0, 1].map(|at| TcpListener::bind((address(at), 0)).unwrap());
        let ports = ports.map(|listener| listener.local_addr().unwrap().port());
        let differs = random.below(2) == 0;
        let lifetime = Duration::from_millis(500 + random.below(4_000));
        let nodes = [0, 1].map(|at| Node::new(at, &mut site, (ports, differs), lifetime));
        let mut world = Self {
            random,
            now: Instant::now(),
            site,
            pair: Arc::default(),
            nodes,
            asked: Vec::new(),
            proposals: 0,
        };
        for at in 0..2 {
            world.start(at, Occupant::Partner);
        }
        world
    }

    fn run(&mut self) -> Verdict {
        self.pass(3_000)?;
        for _ in 0..EVENTS {
            self.happens()?;
            let span = self.random.below(2_500);
            self.pass(span)?;
        }
        self.heal()
    }

    /// Lets so many milliseconds pass.
    fn pass(&mut self, ms: u64) -> Verdict {
        let until = self.now + Duration::from_millis(ms);
        while self.now < until {
            self.turn()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Verdict {
        self.now += Duration::from_millis(10 + self.random.below(40));
        for node in &mut self.nodes {
            node.turn(self.now);
        }
        let pair = &mut *self.pair.lock().unwrap();
        let facts = self.nodes.each_ref().map(Node::facts);
        pair.judge(&facts, self.now)?;
        self.asked.retain(|asked| match asked.answer.try_recv() {
            Ok(carried) => {
                pair.answered(asked.to, &asked.text, &carried);
                false
            }
            Err(TryRecvError::Empty) => true,
            Err(TryRecvError::Disconnected) => false,
        });
        pair.problems.pop().map_or(Ok(()), Err)
    }

    fn happens(&mut self) -> Verdict {
        let at = self.random.below(2) as usize;
        match self.random.below(12) {
            0 => return self.begin(at, Occupant::Partner),
            1 => return self.begin(1, Occupant::OfOtherPair),
            2 => return self.begin(1, Occupant::OfOtherAuthority),
            3 => return self.begin(1, Occupant::SaysOtherName),
            4 => self.revoke(1 - at),
            5 => {
                // Who is ahead of the end of all certificates looks at them anew.
                let days = [0, 2][self.random.below(2) as usize];
                self.nodes[at].set_clock(days, self.now);
                self.nodes[at].bring_list(&mut self.site, self.now);
            }
            6 => {
                let pair = &mut self.pair.lock().unwrap();
                self.nodes[at].bring_unsound_list(&mut self.site, self.now, pair);
            }
            7 | 8 => {
                let days = [0, 2, -2][self.random.below(3) as usize];
                self.nodes[at].set_clock(days, self.now);
            }
            9 => {
                let refuses = self.random.below(4) as u32;
                self.pair().seen[at].refuses = refuses;
            }
            _ => self.propose(at),
        }
        Ok(())
    }

    fn pair(&self) -> MutexGuard<'_, Pair> {
        self.pair.lock().unwrap()
    }

    /// The process at `at` ends, and after a while there is another one.
    fn begin(&mut self, at: usize, occupant: Occupant) -> Verdict {
        self.nodes[at].end();
        // What it has said last is heard, and not taken for what the next one says.
        for _ in 0..10 {
            self.turn()?;
        }
        self.start(at, occupant);
        Ok(())
    }

    fn start(&mut self, at: usize, occupant: Occupant) {
        let node = &mut self.nodes[at];
        self.pair.lock().unwrap().begins(at);
        node.start(&mut self.site, &self.pair, occupant, self.now);
    }

    /// All certificates of the node at `of` are revoked, and the other one has the list.
    fn revoke(&mut self, of: usize) {
        self.site.revoke(of);
        let refuses = self.random.below(4) as u32;
        self.pair().seen[1 - of].refuses = refuses;
        self.nodes[1 - of].bring_list(&mut self.site, self.now);
    }

    fn propose(&mut self, from: usize) {
        self.proposals += 1;
        let word = ["yes", "no", "silence"][self.random.below(3) as usize];
        let text = format!("{word} {}", self.proposals);
        let (reply, answer) = sync_channel(1);
        let order = Order::Propose {
            partner: 0,
            text: text.clone(),
            reply,
            until: self.now + Duration::from_secs(2),
        };
        if self.nodes[from].order(order) {
            let to = 1 - from;
            self.asked.push(Asked { to, text, answer });
        }
    }

    /// Everything is set right; then both agree on a key, and know what differs.
    fn heal(&mut self) -> Verdict {
        for at in 0..2 {
            self.nodes[at].set_clock(0, self.now);
            self.pair().seen[at].refuses = 0;
        }
        for at in 0..2 {
            self.begin(at, Occupant::Partner)?;
        }
        for _ in 0..HEALS_WITHIN {
            self.turn()?;
            if self.pair().is_sound() {
                let facts = self.nodes.each_ref().map(Node::facts);
                return self.pair().told(&facts);
            }
        }
        Err(format!(
            "heals: the pair does not agree: {:?}",
            self.pair().states()
        ))
    }
}

fn run(seed: u64) -> Verdict {
    let mut world = World::new(seed);
    world.run().map_err(|what| format!("{what}, seed {seed}"))
}

#[test]
fn keys_are_for_who_is_known_alone_whatever_becomes_of_lists_clocks_and_processes() {
    let given = std::env::var("BUMPLESS_SESSION_SEEDS").ok();
    let seeds = given.map_or(6, |given| given.parse().expect("a number of seeds"));
    for seed in 0..seeds {
        run(seed).unwrap_or_else(|what| panic!("{what}"));
    }
}
