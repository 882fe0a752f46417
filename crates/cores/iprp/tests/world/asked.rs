//! Whom a sender may go on to replicate for, judged from outside: by what receivers have said to it, what it has asked, and what was
//! answered (I-40, I-41).

use std::collections::{BTreeMap, BTreeSet};

use bumpless_base::{Duration, Instant};

/// So many questions without an answer, and so long since the first of them.
const QUESTIONS: usize = 3;
const SILENT: Duration = Duration::from_secs(1);
/// A host looks after its cores a moment after what is due.
const MOMENT: Duration = Duration::from_micros(2);

/// Tag and space of a session, as they stand in what it sends and in what it is answered.
type Place = [u8; 12];

fn place(bytes: &[u8]) -> Option<Place> {
    bytes.get(2..14)?.try_into().ok()
}

/// Whether a datagram asks.
fn asks(bytes: &[u8]) -> bool {
    bytes.get(1).is_some_and(|byte| byte & 0x20 != 0)
}

/// What one sender knows of a flow's receiver.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Until when its last advertisement is good.
    until: Option<Instant>,
    /// When it was asked, since it was heard last.
    asked: BTreeSet<Instant>,
    /// What was asked of which session is not known: nothing is said of it until it is heard.
    unknown: bool,
}

impl Known {
    /// Whether it counts as gone.
    fn is_gone(&self, now: Instant) -> bool {
        let is_old = self
            .asked
            .first()
            .is_some_and(|first| now >= *first + SILENT);
        self.asked.len() >= QUESTIONS && is_old
    }

    fn hear(&mut self) {
        self.asked.clear();
        self.unknown = false;
    }
}

/// All flows, each with the sender of its host as it runs at present.
#[derive(Default)]
pub struct Asked {
    flows: BTreeMap<usize, Known>,
    /// Whose sessions these are.
    places: BTreeMap<(usize, Place), usize>,
    /// Packets that left in copies while questions were open, and as they were since nobody had answered.
    pub doubtful: u64,
    pub let_go: u64,
}

impl Asked {
    /// A host's sender is another one, which knows nothing: its flows are these.
    pub fn begin(&mut self, host: usize, flows: impl Iterator<Item = usize>) {
        self.places.retain(|(of, _), _| *of != host);
        flows.for_each(|flow| {
            self.flows.remove(&flow);
        });
    }

    /// A receiver's advertisement has brought a key, or a group's counts without: it is good for so long.
    pub fn advertised(&mut self, now: Instant, flow: usize, lasts: Duration) {
        let known = self.flows.entry(flow).or_default();
        known.until = known.until.max(Some(now + lasts));
        known.hear();
    }

    /// A receiver has withdrawn its flow.
    pub fn withdrawn(&mut self, flow: usize) {
        self.flows.remove(&flow);
    }

    /// A probe, or a packet that leaves again.
    pub fn left(&mut self, now: Instant, host: usize, flows: &[usize], bytes: &[u8]) {
        if !asks(bytes) {
            return;
        }
        let of = place(bytes).and_then(|place| self.places.get(&(host, place)));
        match of.copied() {
            Some(flow) => {
                self.flows.entry(flow).or_default().asked.insert(now);
            }
            None => self.forget(flows),
        }
    }

    /// An answer that counts.
    pub fn answered(&mut self, host: usize, flows: &[usize], bytes: &[u8]) {
        let of = place(bytes).and_then(|place| self.places.get(&(host, place)));
        match of.copied() {
            Some(flow) => self.flows.entry(flow).or_default().hear(),
            None => self.forget(flows),
        }
    }

    fn forget(&mut self, flows: &[usize]) {
        for flow in flows {
            self.flows.entry(*flow).or_default().unknown = true;
        }
    }

    /// A packet of a flow leaves in these copies.
    pub fn in_copies(
        &mut self,
        now: Instant,
        (host, flow, asks_all): (usize, usize, bool),
        copies: &[Vec<u8>],
    ) -> Result<(), String> {
        let known = self.flows.entry(flow).or_default();
        if known.until.is_none_or(|until| now > until + MOMENT) {
            return Err(format!(
                "ends: flow {flow} is replicated, and its last advertisement was good until {:?}",
                known.until
            ));
        }
        if !asks_all {
            return Ok(());
        }
        if known.is_gone(now) && !known.unknown {
            return Err(format!(
                "lets go: flow {flow} is replicated after {} questions, none of which was answered, since {:?}",
                known.asked.len(),
                known.asked.first()
            ));
        }
        self.doubtful += u64::from(known.asked.len() > 1);
        for bytes in copies {
            if let Some(place) = place(bytes) {
                self.places.insert((host, place), flow);
            }
            if asks(bytes) {
                known.asked.insert(now);
            }
        }
        Ok(())
    }

    /// A packet of a flow that has a session, with networks, leaves as it is.
    pub fn plain(&mut self, now: Instant, flow: usize) -> Result<(), String> {
        let known = self.flows.entry(flow).or_default();
        if known.is_gone(now) || known.unknown {
            self.let_go += 1;
            return Ok(());
        }
        Err(format!(
            "holds on: flow {flow} is not replicated after {} questions without an answer, since {:?}",
            known.asked.len(),
            known.asked.first()
        ))
    }
}
