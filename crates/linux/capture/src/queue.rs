//! Packets that wait for a verdict (NFQUEUE; linux/netfilter/nfnetlink_queue.h).

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use rustix::net::netlink;

use crate::decide::{Decide, Each, Held, Queued, Release, Verdict};
use crate::netlink::{Message, Netlink, attributes, failed, messages};
use crate::packet::keep_on_host;

const SUBSYSTEM: u16 = 3 << 8;
const PACKET: u16 = SUBSYSTEM;
const VERDICT: u16 = SUBSYSTEM | 1;
const CONFIG: u16 = SUBSYSTEM | 2;
const VERDICT_BATCH: u16 = SUBSYSTEM | 3;

const NETFILTER_LEN: usize = 4;

mod attribute {
    pub const HEADER: u16 = 1;
    pub const VERDICT: u16 = 2;
    pub const OUT: u16 = 6;
    pub const PAYLOAD: u16 = 10;
    pub const COMMAND: u16 = 1;
    pub const PARAMETERS: u16 = 2;
    pub const LENGTH_MAX: u16 = 3;
    pub const MASK: u16 = 4;
    pub const FLAGS: u16 = 5;
}

/// The kernel lets packets pass that it cannot queue.
const FAIL_OPEN: u32 = 1;
/// Large segments come whole.
const WHOLE: u32 = 4;
/// Bytes of a packet that is held which are shown: the header of IPv6.
const HEAD: [u8; 4] = [0, 0, 0, 40];
const BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
/// Longest packet and what the kernel says of it.
const BUFFER: usize = 0x1_0000 + 4096;
/// Bytes that wait to be read: some thousand packets.
const ROOM: usize = 8 << 20;

/// Lets packets of a turn go on that are to be dropped at its end.
#[derive(Debug)]
struct Releasing<'a> {
    netlink: &'a Netlink,
    queue: u16,
}

impl Release for Releasing<'_> {
    fn release(&self, id: u32) {
        tell(self.netlink, VERDICT, (self.queue, 1), id);
    }
}

/// A queue of the kernel's. When this is dropped, or the process ends however, packets pass it by.
#[derive(Debug)]
pub struct Queue {
    netlink: Netlink,
    number: u16,
    buffer: Box<[u8]>,
    /// Room for a verdict with a packet.
    verdict: Box<[u8]>,
}

impl Queue {
    /// Binds queue `number`, in which at most `length` packets wait; what would be one more passes it by. Large segments
    /// that the host would leave to its network card come cut, and with their checksums.
    ///
    /// # Errors
    /// Another process has the queue, or the right to it (CAP_NET_ADMIN) is missing.
    pub fn open(number: u16, length: u32) -> io::Result<Self> {
        Self::bound(number, length, [0, 0, 0xFF, 0xFF], FAIL_OPEN)
    }

    /// Binds queue `number` to hold packets of which only the head is of interest, and which go on by [`Self::release`].
    /// At most `length` wait; what would be one more is lost, as with any queue that is full. Large segments stay whole.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn hold(number: u16, length: u32) -> io::Result<Self> {
        Self::bound(number, length, HEAD, WHOLE)
    }

    fn bound(number: u16, length: u32, range: [u8; 4], flags: u32) -> io::Result<Self> {
        let netlink = Netlink::open(Some(netlink::NETFILTER))?;
        netlink.set_room(ROOM);
        let [a, b, c, d] = range;
        // All in one message: no packet can come in between.
        let message = Message::new()
            .begin(CONFIG, 0)
            .netfilter(0, number)
            .attribute(attribute::COMMAND, &[BIND, 0, 0, 0])
            .attribute(attribute::PARAMETERS, &[a, b, c, d, COPY_PACKET])
            .number(attribute::LENGTH_MAX, length)
            .number(attribute::MASK, flags)
            .number(attribute::FLAGS, flags);
        netlink
            .transact(message.bytes())
            .map_err(|error| failed(&format!("cannot bind NFQUEUE {number}"), error))?;
        Ok(Self {
            netlink,
            number,
            buffer: vec![0; BUFFER].into(),
            verdict: vec![0; BUFFER].into(),
        })
    }

    /// Gives number and head of each packet that has come to `take`, at most about `max`; they are held until they are
    /// released.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub fn take(&mut self, max: usize, mut take: impl FnMut(u32, &[u8])) -> io::Result<()> {
        let mut count = 0;
        while count < max {
            let Some(answers) = self.netlink.receive(&mut self.buffer)? else {
                break;
            };
            let packets = messages(answers).filter(|(kind, _)| *kind == PACKET);
            for head in packets.filter_map(|(_, body)| read(body)) {
                count += 1;
                take(head.id, head.bytes);
            }
        }
        Ok(())
    }

    /// Lets a packet go on that was held.
    pub fn release(&self, id: u32) {
        tell(&self.netlink, VERDICT, (self.number, 1), id);
    }

    /// Hands at most `max` packets to `decide`, in order, and tells the kernel the verdicts; returns how many there were.
    ///
    /// # Errors
    /// The kernel had more than it could keep for this process (packets passed by, and the next call gives the rest), or
    /// the socket is broken.
    pub fn drain(
        &mut self,
        max: usize,
        decide: impl FnMut(Queued<'_>) -> Verdict,
    ) -> io::Result<usize> {
        self.drain_by(max, Each(decide))
    }

    /// The same for one that decides on some packets only after it has seen others.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub fn drain_by(&mut self, max: usize, mut decide: impl Decide) -> io::Result<usize> {
        let releasing = Releasing {
            netlink: &self.netlink,
            queue: self.number,
        };
        let held = Held::of(&releasing);
        let (mut count, mut dropped) = (0, None);
        let result = loop {
            if count >= max {
                break Ok(());
            }
            let answers = match self.netlink.receive(&mut self.buffer) {
                Ok(Some(answers)) => answers,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            for (kind, body) in messages(answers) {
                if kind != PACKET {
                    continue;
                }
                let Some(packet) = read(body) else {
                    continue;
                };
                let id = packet.id;
                count += 1;
                match decide.decide(packet, held) {
                    Verdict::Drop => dropped = Some(id),
                    Verdict::Accept => held.release(id),
                    Verdict::Keep => {
                        let room = &mut self.verdict;
                        if !keep(&self.netlink, self.number, id, packet.bytes, room) {
                            dropped = Some(id);
                        }
                    }
                }
            }
        };
        decide.end(held);
        // Those that were accepted are not in the queue any more: what is left up to here is dropped in one go.
        if let Some(id) = dropped {
            tell(&self.netlink, VERDICT_BATCH, (self.number, 0), id);
        }
        result.map(|()| count)
    }
}

/// Bytes of a verdict.
const VERDICT_LEN: usize = 32;

/// Tells the verdict on one packet, or on all that are left up to it.
fn tell(netlink: &Netlink, kind: u16, verdict: (u16, u32), id: u32) {
    // Netlink takes what it is given at once; a packet whose verdict is lost waits until the queue closes.
    let _ = netlink.send(&verdict_on(kind, verdict, id, VERDICT_LEN));
}

/// Lets a packet go on that stays on this host; whether the kernel has taken it.
fn keep(netlink: &Netlink, queue: u16, id: u32, packet: &[u8], room: &mut [u8]) -> bool {
    const ATTRIBUTE: usize = 4;
    let (begin, end) = (
        VERDICT_LEN + ATTRIBUTE,
        VERDICT_LEN + ATTRIBUTE + packet.len(),
    );
    // Attributes end at words of four bytes.
    let padded = end.next_multiple_of(4);
    let (Some(message), Ok(len)) = (
        room.get_mut(..padded),
        u16::try_from(ATTRIBUTE + packet.len()),
    ) else {
        return false;
    };
    message[..VERDICT_LEN].copy_from_slice(&verdict_on(VERDICT, (queue, 1), id, padded));
    message[VERDICT_LEN..VERDICT_LEN + 2].copy_from_slice(&len.to_ne_bytes());
    message[VERDICT_LEN + 2..begin].copy_from_slice(&attribute::PAYLOAD.to_ne_bytes());
    message[begin..end].copy_from_slice(packet);
    message[end..].fill(0);
    keep_on_host(&mut message[begin..end]);
    netlink.send(message).is_ok()
}

/// The bytes of a verdict, of a message of `len` bytes.
fn verdict_on(kind: u16, (queue, verdict): (u16, u32), id: u32, len: usize) -> [u8; VERDICT_LEN] {
    // By hand, and on the stack: once for each packet that goes on.
    let mut bytes = [0u8; VERDICT_LEN];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &(len as u32).to_ne_bytes());
    put(4, &kind.to_ne_bytes());
    put(6, &1u16.to_ne_bytes());
    put(18, &queue.to_be_bytes());
    put(20, &12u16.to_ne_bytes());
    put(22, &attribute::VERDICT.to_ne_bytes());
    put(24, &verdict.to_be_bytes());
    put(28, &id.to_be_bytes());
    bytes
}

/// A queued packet.
fn read(body: &[u8]) -> Option<Queued<'_>> {
    let (mut id, mut bytes, mut out) = (None, &[][..], 0);
    for (kind, value) in attributes(body, NETFILTER_LEN) {
        match kind {
            attribute::HEADER => id = value.first_chunk().map(|id| u32::from_be_bytes(*id)),
            attribute::PAYLOAD => bytes = value,
            attribute::OUT => out = value.first_chunk().map_or(0, |it| u32::from_be_bytes(*it)),
            _ => {}
        }
    }
    let id = id?;
    Some(Queued { id, bytes, out })
}

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.netlink.as_raw_fd()
    }
}
