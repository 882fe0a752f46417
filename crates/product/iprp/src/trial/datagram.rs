//! The datagrams of a trial.

/// Shortest and longest datagram of a stream, bytes. A copy of the longest fits into an MTU of 1,500 bytes.
pub const LEN_MIN: usize = 32;
/// See [`LEN_MIN`].
pub const LEN_MAX: usize = 1380;
/// What asks for a report is as long as a report may be: nobody gets more than he sends.
pub const ASK_LEN: usize = 1200;

const MARK: [u8; 5] = *b"bmpT\x01";

/// What a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The sender is there.
    Hello,
    /// The listener is; `number` is 1 if the port is monitored there.
    Welcome,
    /// One of the stream.
    Data,
    /// A report is asked for.
    Ask,
    /// It follows.
    Report,
}

/// The head of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it is for.
    pub kind: Kind,
    /// Which stream: drawn by the sender.
    pub run: u64,
    /// Sequence number in the stream, from 0.
    pub number: u32,
    /// Datagrams in the whole stream.
    pub total: u32,
    /// When it left, by the sender's clock, nanoseconds.
    pub sent_ns: u64,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Hello,
        Self::Welcome,
        Self::Data,
        Self::Ask,
        Self::Report,
    ];
}

impl Head {
    /// mark(5) kind(1) zero(2) run(8) number(4) total(4) sent(8), highest byte first.
    pub fn bytes(&self) -> [u8; LEN_MIN] {
        let mut bytes = [0; LEN_MIN];
        bytes[..5].copy_from_slice(&MARK);
        bytes[5] = self.kind as u8;
        bytes[8..16].copy_from_slice(&self.run.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.number.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.total.to_be_bytes());
        bytes[24..].copy_from_slice(&self.sent_ns.to_be_bytes());
        bytes
    }

    /// The head of a datagram of this length.
    pub fn padded(&self, len: usize) -> Vec<u8> {
        let mut bytes = self.bytes().to_vec();
        bytes.resize(len.max(LEN_MIN), 0);
        bytes
    }

    /// The head of a datagram, if it is one of a trial, and what follows it.
    pub fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<LEN_MIN>()?;
        let word = |at: usize| Some(u32::from_be_bytes(*head.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_be_bytes(*head.get(at..)?.first_chunk()?));
        let head = Self {
            kind: *Kind::ALL.get(usize::from(head[5]))?,
            run: long(8)?,
            number: word(16)?,
            total: word(20)?,
            sent_ns: long(24)?,
        };
        bytes.starts_with(&MARK).then_some((head, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_survive_the_way_and_what_is_foreign_is_none() {
        for kind in Kind::ALL {
            let head = Head {
                kind,
                run: u64::MAX - 1,
                number: 7,
                total: 9,
                sent_ns: 1 << 40,
            };
            let bytes = head.padded(100);
            assert_eq!(Head::read(&bytes), Some((head, &[0; 68][..])));
            assert_eq!(Head::read(&bytes[..LEN_MIN - 1]), None);
            let mut foreign = bytes.clone();
            foreign[4] = 2;
            assert_eq!(Head::read(&foreign), None, "another version");
        }
        let mut unknown = [0; LEN_MIN];
        unknown[..5].copy_from_slice(&MARK);
        unknown[5] = 5;
        assert_eq!(Head::read(&unknown), None);
    }
}
