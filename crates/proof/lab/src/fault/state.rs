//! Where the plan lies for the data path to read: one block of atomics per link.
//!
//! The fields of a plan become visible one by one. That is harmless: each packet is judged by each
//! field alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::plan::{Cut, FaultPlan, LinkFaults, PacketFaults};

/// One, as a probability in fixed point.
const ONE: f64 = (1u64 << 32) as f64;

/// The faults of all links of a process.
#[derive(Debug)]
pub struct FaultState {
    links: Vec<(String, Arc<LinkState>)>,
}

/// The faults of one link, and what they did.
#[derive(Debug, Default)]
pub(super) struct LinkState {
    cut: AtomicU8,
    pub(super) send: PacketState,
    pub(super) receive: PacketState,
}

/// Faults of single packets in one direction.
#[derive(Debug, Default)]
pub(super) struct PacketState {
    pub(super) loss: Share,
    pub(super) burst: Share,
    pub(super) burst_length: AtomicU32,
    pub(super) duplicate: Share,
    pub(super) reorder: Share,
    pub(super) corrupt: Share,
    pub(super) lost: AtomicU64,
    pub(super) doubled: AtomicU64,
    pub(super) reordered: AtomicU64,
    pub(super) corrupted: AtomicU64,
}

/// A probability: of 2^32 drawn numbers, so many hit.
#[derive(Debug, Default)]
pub(super) struct Share(AtomicU64);

impl Share {
    fn set(&self, share: f64) {
        self.0.store((share * ONE) as u64, Relaxed);
    }

    /// Whether `drawn`, 64 random bits, hits.
    pub(super) fn hits(&self, drawn: u64) -> bool {
        drawn >> 32 < self.0.load(Relaxed)
    }
}

/// What the driver did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injected {
    /// Packets taken away by loss, bursts and cuts.
    pub lost: u64,
    /// Packets that came twice.
    pub doubled: u64,
    /// Packets that were overtaken.
    pub reordered: u64,
    /// Packets with a bit turned over.
    pub corrupted: u64,
}

impl LinkState {
    pub(super) fn cut(&self) -> Cut {
        match self.cut.load(Relaxed) {
            0 => Cut::Nothing,
            1 => Cut::Partners,
            _ => Cut::All,
        }
    }

    fn set(&self, faults: &LinkFaults) {
        self.send.set(&faults.send);
        self.receive.set(&faults.receive);
        self.cut.store(faults.cut as u8, Relaxed);
    }
}

impl PacketState {
    fn set(&self, faults: &PacketFaults) {
        self.burst_length.store(faults.burst_length, Relaxed);
        self.loss.set(faults.loss);
        self.burst.set(faults.burst);
        self.duplicate.set(faults.duplicate);
        self.reorder.set(faults.reorder);
        self.corrupt.set(faults.corrupt);
    }

    fn add_to(&self, sum: &mut Injected) {
        sum.lost += self.lost.load(Relaxed);
        sum.doubled += self.doubled.load(Relaxed);
        sum.reordered += self.reordered.load(Relaxed);
        sum.corrupted += self.corrupted.load(Relaxed);
    }
}

impl FaultState {
    /// No faults on links with these names.
    pub fn new<'a>(links: impl IntoIterator<Item = &'a str>) -> Arc<Self> {
        let links = links
            .into_iter()
            .map(|name| (name.to_owned(), Arc::default()))
            .collect();
        Arc::new(Self { links })
    }

    /// Replaces all faults by those of `plan`.
    ///
    /// # Errors
    /// If the plan names a link that is not there or has a share that is no probability; nothing
    /// changes then.
    pub fn set(&self, plan: &FaultPlan) -> Result<(), String> {
        for (name, faults) in &plan.links {
            if self.link(name).is_none() {
                let names: Vec<_> = self.links.iter().map(|(name, _)| name.as_str()).collect();
                return Err(format!(
                    "no link is called {name:?}; there are {}",
                    names.join(", ")
                ));
            }
            if !(faults.send.is_sound() && faults.receive.is_sound()) {
                return Err(format!(
                    "link {name:?}: every share must lie between 0 and 1"
                ));
            }
        }
        let none = LinkFaults::default();
        for (name, state) in &self.links {
            state.set(plan.links.get(name).unwrap_or(&none));
        }
        Ok(())
    }

    /// What was done so far on all links.
    pub fn injected(&self) -> Injected {
        let mut sum = Injected::default();
        for (_, link) in &self.links {
            link.send.add_to(&mut sum);
            link.receive.add_to(&mut sum);
        }
        sum
    }

    /// The links in the order in which they were named.
    pub(super) fn links(&self) -> impl Iterator<Item = &Arc<LinkState>> {
        self.links.iter().map(|(_, state)| state)
    }

    fn link(&self, name: &str) -> Option<&Arc<LinkState>> {
        self.links
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, state)| state)
    }
}
