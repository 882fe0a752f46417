//! Arrivals out of a recorded file: the classic pcap format, in either byte order, with micro- or nanoseconds.

use std::fmt;

use bumpless_base::Instant;

use crate::load::Arrival;

/// Why a file is no capture that can be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureError {
    /// It begins like none.
    NotPcap,
    /// It is of the newer format.
    PcapNg,
    /// It ends within the packet of this number.
    Cut(usize),
    /// The packet of this number is earlier than the one before.
    Backwards(usize),
    /// It has no packet.
    Empty,
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPcap => f.write_str("it is no pcap file: give one that tcpdump -w has written"),
            Self::PcapNg => f.write_str(
                "it is a pcapng file: convert it with editcap -F pcap (or tshark -F pcap -r OLD -w NEW)",
            ),
            Self::Cut(at) => write!(f, "it ends within packet {at}: record it again, or cut it with editcap"),
            Self::Backwards(at) => write!(
                f,
                "packet {at} is earlier than the one before: sort it with reordercap"
            ),
            Self::Empty => f.write_str("it has no packet"),
        }
    }
}

impl std::error::Error for CaptureError {}

/// Arrivals of the file's packets, the first at the origin of time, with the lengths that they had on the wire.
///
/// # Errors
/// See [`CaptureError`].
pub fn read(file: &[u8]) -> Result<Vec<Arrival>, CaptureError> {
    let magic = file.first_chunk::<4>().ok_or(CaptureError::NotPcap)?;
    let (little, nanos) = match *magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => (true, false),
        [0xa1, 0xb2, 0xc3, 0xd4] => (false, false),
        [0x4d, 0x3c, 0xb2, 0xa1] => (true, true),
        [0xa1, 0xb2, 0x3c, 0x4d] => (false, true),
        [0x0a, 0x0d, 0x0d, 0x0a] => return Err(CaptureError::PcapNg),
        _ => return Err(CaptureError::NotPcap),
    };
    let word = |bytes: &[u8], at: usize| -> Option<u64> {
        let word = *bytes.get(at..)?.first_chunk::<4>()?;
        let word = match little {
            true => u32::from_le_bytes(word),
            false => u32::from_be_bytes(word),
        };
        Some(word.into())
    };
    let mut rest = file.get(24..).ok_or(CaptureError::Cut(0))?;
    let (mut arrivals, mut first, mut last) = (Vec::new(), None, 0);
    while !rest.is_empty() {
        let number = arrivals.len() + 1;
        let cut = CaptureError::Cut(number);
        let field = |at| word(rest, at).ok_or_else(|| cut.clone());
        let (seconds, part, kept, len) = (field(0)?, field(4)?, field(8)?, field(12)?);
        let at = seconds * 1_000_000_000 + part * if nanos { 1 } else { 1_000 };
        if at < last {
            return Err(CaptureError::Backwards(number));
        }
        last = at;
        arrivals.push(Arrival {
            at: Instant::from_nanos(at - *first.get_or_insert(at)),
            len: len as u32,
        });
        rest = rest.get(16 + kept as usize..).ok_or(cut)?;
    }
    match arrivals.is_empty() {
        true => Err(CaptureError::Empty),
        false => Ok(arrivals),
    }
}

/// A file with these arrivals, packets without content: what [`read`] reads.
pub fn write(arrivals: &[Arrival]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 0, 1] {
        file.extend(word.to_le_bytes());
    }
    for arrival in arrivals {
        let at = arrival.at.as_nanos();
        let (seconds, part) = (at / 1_000_000_000, at % 1_000_000_000);
        for word in [seconds as u32, part as u32, 0, arrival.len] {
            file.extend(word.to_le_bytes());
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_every_cut_is_named() {
        let arrival = |at, len| Arrival {
            at: Instant::from_nanos(at),
            len,
        };
        let arrivals = vec![
            arrival(0, 60),
            arrival(1_500, 1514),
            arrival(2_000_000_001, 60),
        ];
        let file = write(&arrivals);
        assert_eq!(read(&file), Ok(arrivals));
        for len in 0..file.len() {
            let whole = len >= 24 && (len - 24) % 16 == 0;
            assert_eq!(read(&file[..len]).is_ok(), whole && len > 24, "{len}");
        }
        assert_eq!(read(&file[..24]), Err(CaptureError::Empty));
        assert_eq!(read(b"\x0a\x0d\x0d\x0aetc"), Err(CaptureError::PcapNg));
    }

    #[test]
    fn microseconds_in_network_order_are_read() {
        let mut file = vec![0xa1, 0xb2, 0xc3, 0xd4];
        file.extend([0; 20]);
        for word in [7u32, 3, 2, 900, 7, 2, 0, 1] {
            file.extend(word.to_be_bytes());
            if word == 900 {
                file.extend([1, 2]);
            }
        }
        assert_eq!(read(&file), Err(CaptureError::Backwards(2)));
        let first = read(&file[..24 + 18]).expect("one packet");
        assert_eq!((first[0].at, first[0].len), (Instant::ZERO, 900));
    }
}
