//! What must hold, judged from outside: by what was sent, and what came of it.

use std::collections::{BTreeMap, BTreeSet};

use bumpless_base::{Duration, Instant};

/// A packet of an application, by its number in the world.
pub type PacketId = u64;

/// What may be done with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Must {
    /// It is the first valid copy.
    Deliver,
    /// It is another copy, too late, or its key is not the receiver's.
    Refuse,
    /// Nobody promises anything.
    Either,
}

/// A copy on its way.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub bytes: Vec<u8>,
    /// What it is a copy of; none if it is a probe, an answer or forged.
    pub packet: Option<PacketId>,
    /// An attacker sends it, who has seen it before.
    pub replayed: bool,
    pub forged: bool,
}

/// Key, session and number, as the clear part of a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub tag: u64,
    pub space: u32,
}

impl Datagram {
    pub fn place(&self) -> Option<Place> {
        Some(Place {
            tag: u64::from_be_bytes(self.bytes.get(2..10)?.try_into().ok()?),
            space: u32::from_be_bytes(self.bytes.get(10..14)?.try_into().ok()?),
        })
    }

    pub fn number(&self) -> u32 {
        let bytes = self.bytes.get(14..18).and_then(|it| it.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    }

    pub fn is_of_group(&self) -> bool {
        self.bytes.get(1).is_some_and(|byte| byte & 0x40 != 0)
    }

    pub fn is_feedback(&self) -> bool {
        bumpless_iprp::is_feedback(&self.bytes)
    }
}

/// One process of a host's receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life {
    pub host: usize,
    pub number: u32,
    /// What its keys derive from.
    pub root: u32,
    pub began: Instant,
}

#[derive(Default)]
pub struct Checker {
    /// How long what was recorded before a restart may open: four `T_CAP` (I-34).
    grace: Duration,
    /// By packet and host: in which life it was delivered.
    delivered: BTreeMap<(PacketId, usize), u32>,
    /// The highest number that has opened.
    highs: BTreeMap<(usize, u32, Place), u32>,
    /// The sessions of a flow in the order in which they were first seen in a life.
    seen: BTreeMap<(usize, u32, usize), Vec<Place>>,
    /// Which receiver's root made a tag, and the last one for each sender.
    tags: BTreeMap<u64, (usize, u32)>,
    newest: BTreeMap<(usize, usize), u64>,
    pub first_copies: u64,
    pub refused: u64,
    pub replays: u64,
    pub restarts_survived: u64,
}

impl Checker {
    /// One of a world in which what was recorded may open for so long.
    pub fn new(grace: Duration) -> Self {
        Self {
            grace,
            ..Self::default()
        }
    }

    /// A receiver's life has given `tag` to the sender on host `source`.
    pub fn offered(&mut self, life: &Life, source: usize, tag: u64) {
        self.tags.insert(tag, (life.host, life.root));
        self.newest.insert((life.host, source), tag);
    }

    pub fn was_delivered(&self, packet: PacketId, host: usize) -> bool {
        self.delivered.contains_key(&(packet, host))
    }

    pub fn expect(
        &self,
        life: &Life,
        flow: usize,
        source: usize,
        datagram: &Datagram,
        max_lost: u32,
    ) -> Must {
        let Some(packet) = datagram.packet.filter(|_| !datagram.forged) else {
            return Must::Refuse;
        };
        let Some(place) = datagram.place() else {
            return Must::Refuse;
        };
        if self.delivered.get(&(packet, life.host)) == Some(&life.number) {
            return Must::Refuse;
        }
        let is_group = datagram.is_of_group();
        if !is_group && self.tags.get(&place.tag) != Some(&(life.host, life.root)) {
            return Must::Refuse;
        }
        let high = self.highs.get(&(life.host, life.number, place));
        if high.is_some_and(|high| *high > datagram.number().saturating_add(max_lost)) {
            return Must::Refuse;
        }
        if datagram.replayed {
            return Must::Either;
        }
        let seen = self.seen.get(&(life.host, life.number, flow));
        let seen = seen.map_or(&[][..], Vec::as_slice);
        let position = seen.iter().position(|other| *other == place);
        // What is promised is the present session and the one before; a session that ends before anything of it has come is
        // none.
        let is_remembered = match position {
            Some(position) => position + 2 >= seen.len(),
            None => {
                let is_newest =
                    is_group || self.newest.get(&(life.host, source)) == Some(&place.tag);
                is_newest
                    && seen
                        .iter()
                        .all(|it| it.tag != place.tag || it.space < place.space)
                    || seen.is_empty()
            }
        };
        match is_remembered {
            true => Must::Deliver,
            false => Must::Either,
        }
    }

    /// Something opened.
    pub fn opened(&mut self, life: &Life, flow: usize, datagram: &Datagram) {
        let Some(place) = datagram.place() else {
            return;
        };
        let high = self
            .highs
            .entry((life.host, life.number, place))
            .or_default();
        *high = datagram.number().max(*high);
        let seen = self.seen.entry((life.host, life.number, flow)).or_default();
        if !seen.contains(&place) {
            seen.push(place);
        }
    }

    /// A probe opened.
    pub fn opened_probe(&mut self, life: &Life, flow: usize, datagram: &Datagram) {
        self.opened(life, flow, datagram);
    }

    /// A packet was delivered.
    pub fn deliver(
        &mut self,
        now: Instant,
        life: &Life,
        packet: PacketId,
        datagram: &Datagram,
    ) -> Result<(), String> {
        self.first_copies += 1;
        self.replays += u64::from(datagram.replayed);
        let before = self.delivered.insert((packet, life.host), life.number);
        let Some(before) = before else { return Ok(()) };
        if before == life.number {
            return Err(format!(
                "once: packet {packet} was delivered twice in one life"
            ));
        }
        self.restarts_survived += 1;
        // Only what is on its way while a receiver restarts may come twice: an attacker gains nothing by keeping it.
        let grace = self.grace + Duration::from_millis(1);
        match datagram.is_of_group() || now.since(life.began) <= grace {
            true => Ok(()),
            false => Err(format!(
                "recorded: packet {packet} of an earlier life was delivered again"
            )),
        }
    }

    /// Packets of `ids` that were not delivered at `host`.
    pub fn missing(&self, ids: &BTreeSet<PacketId>, host: usize) -> Vec<PacketId> {
        let missing = ids.iter().filter(|id| !self.was_delivered(**id, host));
        missing.copied().collect()
    }
}
