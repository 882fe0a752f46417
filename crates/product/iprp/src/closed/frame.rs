//! What is sealed: a frame's bytes.

use std::net::IpAddr;

use bumpless_iprp::{Ind, MAX_MESSAGE, MAX_NETWORKS};
use bumpless_wire::EnvelopeHeader;

/// First byte of what is sealed.
pub const VERSION: u8 = 1;
/// Longest frame, with what seals it.
pub const FRAME_MAX: usize = EnvelopeHeader::OVERHEAD + FIXED + MAX_NETWORKS * 18 + MAX_MESSAGE;
/// Version, kind, two challenges, number of addresses.
const FIXED: usize = 1 + 1 + 8 + 8 + 1;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing but its challenges.
    Hello,
    /// The addressee's sender.
    ForSender,
    /// The addressee's receiver.
    ForReceiver,
    /// An answer is asked for, on the same network.
    Ping,
    /// Such an answer.
    Pong,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Hello,
        Self::ForSender,
        Self::ForReceiver,
        Self::Ping,
        Self::Pong,
    ];
}

/// The host's end of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Which network.
    pub ind: Ind,
    /// The address there.
    pub address: IpAddr,
}

/// Why what was sealed says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is of another version.
    Version(u8),
    /// It does not keep to its format.
    Malformed,
}

/// A frame as it is read.
pub struct Frame<'a> {
    pub kind: Kind,
    pub challenge: u64,
    pub echo: u64,
    pub cards: Vec<Card>,
    pub message: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads what was sealed.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let (&version, rest) = bytes.split_first().ok_or(Unreadable::Malformed)?;
        if version != VERSION {
            return Err(Unreadable::Version(version));
        }
        Self::read_rest(rest).ok_or(Unreadable::Malformed)
    }

    /// Adds it to `out`, with nothing around it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend([VERSION, self.kind as u8]);
        out.extend(self.challenge.to_be_bytes());
        out.extend(self.echo.to_be_bytes());
        out.push(self.cards.len() as u8);
        for card in &self.cards {
            out.push(card.ind.get());
            match card.address {
                IpAddr::V4(v4) => {
                    out.push(4);
                    out.extend(v4.octets());
                }
                IpAddr::V6(v6) => {
                    out.push(16);
                    out.extend(v6.octets());
                }
            }
        }
        out.extend(self.message);
    }

    fn read_rest(rest: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = rest.split_first()?;
        let (challenge, rest) = rest.split_first_chunk()?;
        let (echo, rest) = rest.split_first_chunk()?;
        let (&count, mut rest) = rest.split_first()?;
        let mut cards = Vec::new();
        for _ in 0..count {
            let (&[ind, len], behind) = rest.split_first_chunk()?;
            let ind = Ind::new(ind)?;
            let address = match len {
                4 => IpAddr::from(*behind.first_chunk::<4>()?),
                16 => IpAddr::from(*behind.first_chunk::<16>()?),
                _ => return None,
            };
            rest = behind.get(usize::from(len)..)?;
            cards.push(Card { ind, address });
        }
        (cards.len() <= MAX_NETWORKS).then_some(())?;
        Some(Self {
            kind: *Kind::ALL.get(usize::from(kind))?,
            challenge: u64::from_be_bytes(*challenge),
            echo: u64::from_be_bytes(*echo),
            cards,
            message: rest,
        })
    }
}
