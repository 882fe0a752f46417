//! Keys of packets that change while the pair runs, in the steps in which nodes with certificates change them: opened with before
//! anything is sealed with them, and those before for a while (spec/management.md, M-20 to M-22).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use bumpless_base::{NodeId, PeerId, Random};
use bumpless_config::{Config, Security};
use bumpless_node::data_plane::Command;
use bumpless_node::data_plane::addresses::Correspondent;
use bumpless_node::data_plane::protection::Use;
use bumpless_secure::Keyring;

use super::World;
use crate::queue::{KeyStep, What};
use crate::readable::{Readable, secret};
use crate::script::Fault;
use crate::streams::{Purpose, stream};

/// Secrets that are opened with besides the one that seals (M-22).
const BEFORE: usize = 6;
/// How long a word takes from one node to the other through their session at most, nanoseconds.
const WORD: u64 = 5_000_000;
/// Between two looks whether the data plane has taken what it was given, nanoseconds.
const LOOK: u64 = 200_000;
/// How long a session takes from the start of a process, nanoseconds.
const SESSION: u64 = 10_000_000;

/// What one node shares with one of its partners.
struct KeyEnd {
    node: usize,
    partner: usize,
    peer: PeerId,
    /// The secrets by number, the one that seals first.
    numbers: Vec<u32>,
    /// Where the data plane says that it has taken what it was given last.
    taken: Option<Receiver<Arc<Keyring<Readable>>>>,
}

/// The keys of all pairs of partners.
pub struct Keys {
    ends: Vec<KeyEnd>,
    random: Random,
    /// The latest secret's number; with 0 processes begin.
    latest: u32,
    /// How often an end has begun to seal with a later secret.
    pub changes: u64,
}

impl Keys {
    /// Nobody has agreed on any yet; open messages have none.
    pub fn new(config: &Config, seed: u64) -> Self {
        let nodes = match config.security {
            Security::Open => 0,
            _ => config.nodes.len(),
        };
        let ends = (0..nodes).flat_map(|node| {
            let partners = config.partners(NodeId(node as u8)).into_iter();
            partners.enumerate().map(move |(peer, partner)| KeyEnd {
                node,
                partner: partner.0.into(),
                peer: PeerId(peer as u8),
                numbers: vec![0],
                taken: None,
            })
        });
        Self {
            ends: ends.collect(),
            random: stream(seed, Purpose::Keys, 0),
            latest: 0,
            changes: 0,
        }
    }

    fn other(&self, end: usize) -> Option<usize> {
        let own = &self.ends[end];
        let is_other = |it: &KeyEnd| (it.node, it.partner) == (own.partner, own.node);
        self.ends.iter().position(is_other)
    }
}

/// A ring of these secrets; `None`: two of them have one identifier (M-25).
fn ring(numbers: &[u32]) -> Option<Arc<Keyring<Readable>>> {
    let secrets = numbers.iter().map(|&number| secret(number));
    Keyring::new(secrets.collect()).ok().map(Arc::new)
}

impl World {
    /// The fault at `at` has all partners agree on other keys, again and again.
    pub(super) fn keys_act(&mut self, at: usize) {
        let Fault::Keys { every } = self.script[at].fault else {
            return;
        };
        if self.active.binary_search(&at).is_ok() {
            let all: Vec<usize> = (0..self.keys.ends.len()).collect();
            self.agree_on_a_key(&all, 0);
            let next = self.now() + every.max(1);
            self.queue.push(next, What::FaultActs { fault: at as u32 });
        }
    }

    /// A process of `node` has started with the first key. Once others were agreed on, it agrees with its partners on another.
    pub(super) fn keys_of_a_newcomer(&mut self, node: usize) {
        let mut concerned = Vec::new();
        for (at, end) in self.keys.ends.iter_mut().enumerate() {
            if end.node == node {
                (end.numbers, end.taken) = (vec![0], None);
            }
            if end.node == node || end.partner == node {
                concerned.push(at);
            }
        }
        if self.keys.latest > 0 {
            self.agree_on_a_key(&concerned, SESSION);
        }
    }

    fn agree_on_a_key(&mut self, ends: &[usize], after: u64) {
        let is_apart = |number: &u32| {
            let with = |end: &KeyEnd| ring(&[&[*number], &end.numbers[..]].concat()).is_some();
            self.keys.ends.iter().all(with)
        };
        let Some(number) = (self.keys.latest + 1..).find(is_apart) else {
            return;
        };
        self.keys.latest = number;
        for &end in ends {
            let at = self.now() + after + self.keys.random.below(WORD);
            self.plan_key(at, (end, number), KeyStep::Open);
        }
    }

    fn plan_key(&mut self, at: u64, (end, number): (usize, u32), step: KeyStep) {
        let end = end as u8;
        self.queue.push(at, What::Key { end, number, step });
    }

    /// Takes a step of an end that has begun to change to the secret `number`.
    pub(super) fn key_is_due(&mut self, end: usize, number: u32, step: KeyStep) {
        let own = &mut self.keys.ends[end];
        match step {
            KeyStep::Open => {
                own.numbers.retain(|known| *known != number);
                own.numbers.insert(1, number);
                own.numbers.truncate(BEFORE + 1);
                self.give_keys(end);
                self.plan_key(self.now() + LOOK, (end, number), KeyStep::Look);
            }
            KeyStep::Look => match own.taken.as_ref().map(Receiver::try_recv) {
                Some(Err(TryRecvError::Empty)) => {
                    self.plan_key(self.now() + LOOK, (end, number), KeyStep::Look);
                }
                Some(Ok(_)) => {
                    let told = self.now() + self.keys.random.below(WORD);
                    if let Some(other) = self.keys.other(end) {
                        self.plan_key(told, (other, number), KeyStep::Seal);
                    }
                }
                // The process has ended.
                Some(Err(TryRecvError::Disconnected)) | None => {}
            },
            KeyStep::Seal => {
                if let Some(place) = own.numbers.iter().position(|known| *known == number) {
                    own.numbers[..=place].rotate_right(1);
                    self.keys.changes += 1;
                    self.give_keys(end);
                } else if own.numbers.iter().all(|known| *known < number) {
                    // The other end was quicker. What was given up is followed by a later one.
                    self.plan_key(self.now() + LOOK, (end, number), KeyStep::Seal);
                }
            }
        }
    }

    fn give_keys(&mut self, end: usize) {
        let own = &mut self.keys.ends[end];
        own.taken = None;
        let process = self.hosts[own.node].process.as_mut();
        let (Some(keys), Some(process)) = (ring(&own.numbers), process) else {
            return;
        };
        let (reply, taken) = sync_channel(1);
        let order = Command::SetKeys {
            with: Correspondent::Partner(own.peer),
            keys,
            way: Use::SealAndOpen,
            reply,
        };
        if process.orders.push(order).is_ok() {
            own.taken = Some(taken);
        }
        let node = own.node;
        self.wake(node);
    }
}
