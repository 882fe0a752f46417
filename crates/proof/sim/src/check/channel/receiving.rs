//! The receiver of the model: a flag for each packet, everything said again each time.

use bumpless_base::{Duration, Instant};
use bumpless_wire::{AckHeader, DataHeader, MAX_ACK_BLOCKS, WireVersion, packet_count, piece};

use super::ChannelTerms;
use crate::check::{Delivered, Verdict};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Assembling,
    Complete,
    Expired,
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    number: u32,
    /// Bytes of its state, and whether that is cut into short pieces.
    size: (u32, bool),
    expires_at: Instant,
    stage: Stage,
}

/// What a node has received on a channel in the present session.
pub struct Receiving {
    terms: ChannelTerms,
    session: Option<u32>,
    newest: Option<Cycle>,
    /// Whether each packet of the newest cycle is there.
    got: Vec<bool>,
    missing: usize,
    /// All packets below are there, and none from `beyond` on.
    whole_below: usize,
    beyond: usize,
    /// The blocks of packets that are there, as an acknowledgement shows them.
    blocks: Vec<(u32, u32)>,
    /// What became whole and was not looked at yet, and in which session it came.
    ready: Option<(u32, Instant)>,
    ready_in: Option<u32>,
    /// It must acknowledge in this turn, and has.
    owes: bool,
    paid: bool,
}

impl Receiving {
    /// Nothing has come.
    pub fn new(terms: &ChannelTerms) -> Self {
        Self {
            terms: terms.clone(),
            session: None,
            newest: None,
            got: Vec::new(),
            missing: 0,
            whole_below: 0,
            beyond: 0,
            blocks: Vec::new(),
            ready: None,
            ready_in: None,
            owes: false,
            paid: false,
        }
    }

    /// The session.
    pub fn session(&self) -> Option<u32> {
        self.session
    }

    /// T-28.
    pub fn admits(&self, header: &DataHeader) -> bool {
        let same = match header.version {
            WireVersion::V1 => self.session.is_some(),
            WireVersion::V2 => self.session == Some(header.tag),
        };
        same && header.version == self.terms.version
    }

    /// A packet that is admitted.
    pub fn take(&mut self, header: &DataHeader, payload: usize, now: Instant) {
        let piece = piece(self.terms.payload_size, header.short);
        let packets = packet_count(header.total_size, piece);
        // T-32, and a state that had no time left when it was sent.
        let fits = header.total_size <= self.terms.max_size
            && header.sequence < packets
            && payload == full_payload(header, self.terms.payload_size);
        if !fits || header.expiry == Duration::ZERO || !self.enters(header, packets) {
            return;
        }
        let Some(cycle) = &mut self.newest else {
            return;
        };
        let last = header.sequence + 1 == packets;
        if cycle.stage == Stage::Complete {
            self.owes |= last || header.retransmission;
            return;
        }
        // T-33.
        cycle.expires_at = cycle.expires_at.min(now + header.expiry);
        let there = &mut self.got[header.sequence as usize];
        self.missing -= usize::from(!*there);
        *there = true;
        self.beyond = self.beyond.max(header.sequence as usize + 1);
        while self.got.get(self.whole_below) == Some(&true) {
            self.whole_below += 1;
        }
        self.owes |= last || header.retransmission || self.missing == 0;
        if self.missing == 0 {
            if cycle.expires_at <= now {
                cycle.stage = Stage::Expired;
            } else {
                cycle.stage = Stage::Complete;
                self.ready = Some((cycle.number, cycle.expires_at));
                self.ready_in = self.session;
            }
        }
    }

    /// Whether the packet is of the newest cycle, which it may begin (T-29, T-30).
    fn enters(&mut self, header: &DataHeader, packets: u32) -> bool {
        let size = (header.total_size, header.short);
        let newer = match self.newest {
            None => true,
            Some(cycle) if cycle.number == header.cycle => {
                let same = cycle.size == size || cycle.stage == Stage::Complete;
                return same && cycle.stage != Stage::Expired;
            }
            Some(cycle) => is_newer(header.version, header.cycle, cycle.number),
        };
        if newer {
            self.newest = Some(Cycle {
                number: header.cycle,
                size,
                expires_at: Instant::FAR_FUTURE,
                stage: Stage::Assembling,
            });
            self.got.clear();
            self.got.resize(packets as usize, false);
            self.missing = packets as usize;
            (self.whole_below, self.beyond) = (0, 0);
        }
        newer
    }

    /// An admitted packet asks for the channel's acknowledgement (T-15.3).
    pub fn is_asked(&mut self) {
        self.owes |= self.newest.is_some();
    }

    /// After what had come: the session is this, and the time `now`.
    pub fn act(&mut self, session: Option<u32>, now: Instant) {
        if session != self.session {
            self.session = session;
            self.newest = None;
        }
        if let Some(cycle) = &mut self.newest
            && cycle.stage == Stage::Assembling
            && cycle.expires_at <= now
        {
            cycle.stage = Stage::Expired;
        }
    }

    /// An acknowledgement leaves (T-17).
    pub fn acknowledges(&mut self, header: &AckHeader, blocks: &[(u32, u32)]) -> Verdict {
        let Some(cycle) = self.newest.filter(|cycle| cycle.stage != Stage::Expired) else {
            return Err(format!(
                "acknowledges transfer cycle {}, of which it has nothing",
                header.cycle
            ));
        };
        self.paid = true;
        self.find_blocks();
        let there = &self.blocks;
        let count = (self.got.len() - self.missing) as u32;
        let told = header.received.unwrap_or(count);
        let shown = &there[..there.len().min(MAX_ACK_BLOCKS)];
        if (header.cycle, told, blocks) != (cycle.number, count, shown) {
            return Err(format!(
                "acknowledges {told} packets {blocks:?} of transfer cycle {}, and has {count} {shown:?} \
                 of {}",
                header.cycle, cycle.number
            ));
        }
        if header.version == WireVersion::V2 && Some(header.tag) != self.session {
            return Err(format!("acknowledges in session {:#x}", header.tag));
        }
        Ok(())
    }

    fn find_blocks(&mut self) {
        let blocks = &mut self.blocks;
        blocks.clear();
        if let Some(high) = self.whole_below.checked_sub(1) {
            blocks.push((0, high as u32));
        }
        for at in (self.whole_below..self.beyond).filter(|&at| self.got[at]) {
            let at = at as u32;
            match blocks.last_mut() {
                Some((_, high)) if *high + 1 == at => *high = at,
                _ => blocks.push((at, at)),
            }
        }
    }

    /// Whether it has acknowledged what it must.
    pub fn ends_turn(&mut self) -> Verdict {
        let (owes, paid) = (
            std::mem::take(&mut self.owes),
            std::mem::take(&mut self.paid),
        );
        let Some(cycle) = self.newest.filter(|cycle| cycle.stage != Stage::Expired) else {
            return Ok(());
        };
        if owes && !paid {
            return Err(format!(
                "does not acknowledge transfer cycle {}, although it must",
                cycle.number
            ));
        }
        Ok(())
    }

    /// A state lies ready. Returns the session in which it came: in the same turn the next one may have begun.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn delivered(&mut self, delivered: &Delivered) -> Result<Option<u32>, String> {
        let expected = self.ready.take();
        let seen = (delivered.transfer_cycle, delivered.expires_at);
        if expected == Some(seen) {
            return Ok(self.ready_in);
        }
        let whose = format!(
            "application {} of node {}",
            delivered.application, delivered.node
        );
        match expected {
            Some((cycle, _)) if cycle == seen.0 => Err(format!(
                "{whose} can use transfer cycle {cycle} until another time than its packets say"
            )),
            Some((cycle, _)) => Err(format!(
                "{whose} can read transfer cycle {}, and should read {cycle}",
                seen.0
            )),
            None => Err(format!(
                "{whose} can read transfer cycle {}, which has not come whole and in time",
                seen.0
            )),
        }
    }

    /// Whether no more is to be said of it until something comes or the session ends.
    pub fn is_quiet(&self) -> bool {
        let stands = |cycle: Cycle| cycle.stage != Stage::Assembling;
        !self.owes && !self.paid && self.newest.is_none_or(stands)
    }

    /// What has come was nobody's to read.
    pub const fn nobody_read(&mut self) {
        self.ready = None;
    }

    /// The cycle that should have been shown.
    pub fn is_missing(&self) -> Option<u32> {
        self.ready.map(|(cycle, _)| cycle)
    }
}

/// The length that the payload of this packet has when it leaves, where the configured one is `payload_size`.
pub fn full_payload(header: &DataHeader, payload_size: u16) -> usize {
    let piece = piece(payload_size, header.short);
    let start = u64::from(header.sequence) * u64::from(piece);
    let left = u64::from(header.total_size).saturating_sub(start);
    left.min(u64::from(piece)) as usize
}

/// T-29: less than half way round ahead.
fn is_newer(version: WireVersion, cycle: u32, than: u32) -> bool {
    let (ahead, half) = match version {
        WireVersion::V1 => (u32::from((cycle as u16).wrapping_sub(than as u16)), 1 << 15),
        WireVersion::V2 => (cycle.wrapping_sub(than), 1 << 31),
    };
    ahead != 0 && ahead < half
}
