//! What the kernel hands over, packet by packet.

use std::os::fd::{AsRawFd, RawFd};

use bumpless_bpf::{Place, Record, Ring};

use super::plain::Plain;
use super::program::{HEAD, LONGEST};
use crate::datagram::cut;
use crate::decide::{Decide, Held, Queued, Release, Verdict};

/// Packets that one record may have: as many as a socket gives the kernel in one call (UDP_SEGMENT).
const SEGMENTS: usize = 128;
/// Bytes of the headers before each.
const HEADERS: usize = 48;
/// Bytes of packets that were one record.
const CUT: usize = LONGEST + SEGMENTS * HEADERS;

/// Where a packet of this turn is.
#[derive(Clone, Copy, Debug)]
enum Kept {
    /// It is a record.
    Record(Place),
    /// It was cut from one: begin and length.
    Cut(usize, usize),
}

/// Packets that were handed over. They stay in the ring until the turn in which they are decided on ends.
#[derive(Debug)]
pub struct Diverted {
    ring: Ring,
    plain: Plain,
    /// Those of this turn, with the interface by which each would leave.
    packets: Vec<(Kept, u32)>,
    cut: Vec<u8>,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handed<'a> {
    out: u32,
    segment_len: usize,
    packet: &'a [u8],
}

fn read(record: &[u8]) -> Option<Handed<'_>> {
    let (head, rest) = record.split_first_chunk::<HEAD>()?;
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| head[at + i]));
    Some(Handed {
        out: word(0),
        segment_len: word(8) as usize,
        packet: rest.get(..word(4) as usize)?,
    })
}

/// Lets packets of a turn go on.
#[derive(Debug)]
struct Releasing<'a> {
    ring: &'a Ring,
    plain: &'a Plain,
    packets: &'a [(Kept, u32)],
    cut: &'a [u8],
}

impl<'a> Releasing<'a> {
    /// A packet of this turn.
    fn packet(&self, kept: Kept) -> Option<&'a [u8]> {
        match kept {
            Kept::Cut(begin, len) => self.cut.get(begin..begin + len),
            Kept::Record(place) => match self.ring.record(place)? {
                (Record::Whole(record), _) => read(record).map(|it| it.packet),
                (Record::GivenUp, _) => None,
            },
        }
    }
}

impl Release for Releasing<'_> {
    fn release(&self, id: u32) {
        let Some((kept, out)) = self.packets.get(id as usize) else {
            return;
        };
        if let Some(packet) = self.packet(*kept) {
            self.plain.send(packet, *out);
        }
    }
}

impl Diverted {
    pub(super) fn new(ring: Ring, mark: u32) -> Self {
        Self {
            ring,
            plain: Plain::new(mark, LONGEST),
            packets: Vec::with_capacity(2 * SEGMENTS),
            cut: Vec::with_capacity(CUT),
        }
    }

    /// Packets that were to leave as they are, and that the host did not take.
    pub fn lost(&self) -> u64 {
        self.plain.lost()
    }

    fn releasing(&self) -> Releasing<'_> {
        Releasing {
            ring: &self.ring,
            plain: &self.plain,
            packets: &self.packets,
            cut: &self.cut,
        }
    }

    /// Hands at most about `max` packets to `decide`, in order, and returns how many there were.
    ///
    /// [`Verdict::Keep`] is not for these: none of them is to a group, and it counts as [`Verdict::Drop`].
    pub fn drain_by(&mut self, max: usize, mut decide: impl Decide) -> usize {
        self.packets.clear();
        self.cut.clear();
        let max = max.min(SEGMENTS);
        let mut place = self.ring.begin();
        while self.packets.len() < max {
            let Some((record, behind)) = self.ring.record(place) else {
                break;
            };
            let handed = match record {
                Record::Whole(bytes) => read(bytes),
                Record::GivenUp => None,
            };
            let is_cut = handed.is_some_and(|it| it.segment_len > 0);
            if is_cut && !self.cut.is_empty() {
                break;
            }
            let first = self.packets.len();
            if let Some(handed) = handed {
                keep(&mut self.packets, &mut self.cut, place, handed);
            }
            self.decide_from(first, &mut decide);
            place = behind;
        }
        decide.end(Held::of(&self.releasing()));
        self.ring.give_back(place);
        self.packets.len()
    }

    /// Has the packets from this one on decided on.
    fn decide_from(&self, first: usize, decide: &mut impl Decide) {
        let releasing = self.releasing();
        let held = Held::of(&releasing);
        for (at, (kept, out)) in self.packets.iter().enumerate().skip(first) {
            let bytes = releasing.packet(*kept);
            let (id, out) = (at as u32, *out);
            let Some(bytes) = bytes else {
                continue;
            };
            if decide.decide(Queued { id, bytes, out }, held) == Verdict::Accept {
                held.release(id);
            }
        }
    }
}

/// Remembers where the packets of a record are.
fn keep(packets: &mut Vec<(Kept, u32)>, room: &mut Vec<u8>, place: Place, handed: Handed<'_>) {
    let Handed {
        out,
        segment_len,
        packet,
    } = handed;
    if segment_len == 0 {
        packets.push((Kept::Record(place), out));
        return;
    }
    cut(packet, segment_len, room, |begin, len| {
        if packets.len() < packets.capacity() {
            packets.push((Kept::Cut(begin, len), out));
        }
    });
}

impl AsRawFd for Diverted {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}
