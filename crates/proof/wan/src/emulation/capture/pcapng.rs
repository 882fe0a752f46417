//! The file of a capture: pcapng, with an interface for each place, which Wireshark and tcpdump read (IETF draft-ietf-opsawg-pcapng).

/// Blocks of the format.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
/// Byte order and version of a section.
const MAGIC: u32 = 0x1a2b_3c4d;
const VERSION: [u16; 2] = [1, 0];
/// A section whose length is not said.
const UNKNOWN: u64 = u64::MAX;
const ETHERNET: u16 = 1;
/// Options.
const END: u16 = 0;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;
const RECEIVED: u16 = 4;
const DROPPED: u16 = 5;
/// Times are in nanoseconds.
const NANOSECONDS: u8 = 9;
/// Bytes of a block of statistics, at most.
pub const STATISTICS_LEN: u64 = 64;

/// Whether a packet came or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It came.
    In,
    /// It left.
    Out,
}

/// A captured packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// When, nanoseconds since 1970.
    pub at_ns: u64,
    /// Whether it came or left.
    pub direction: Direction,
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// How many it had.
    pub length: u32,
}

/// A block under construction.
struct Block(Vec<u8>);

impl Block {
    fn new(kind: u32) -> Self {
        // Its length comes here at its end.
        Self([kind.to_le_bytes(), [0; 4]].concat())
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn word(self, word: u32) -> Self {
        self.bytes(&word.to_le_bytes())
    }

    /// Times have their upper half first, whatever the order of bytes.
    fn time(self, ns: u64) -> Self {
        self.word((ns >> 32) as u32).word(ns as u32)
    }

    fn padded(mut self) -> Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn option(self, code: u16, value: &[u8]) -> Self {
        // An option's length has 16 bits; names here are far shorter.
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        let head = [code, value.len() as u16].map(u16::to_le_bytes).concat();
        self.bytes(&head).bytes(value).padded()
    }

    fn end(mut self) -> Vec<u8> {
        let length = (self.0.len() + 4) as u32;
        self.0[4..8].copy_from_slice(&length.to_le_bytes());
        self.word(length).0
    }

    fn end_of_options(self) -> Vec<u8> {
        self.option(END, &[]).end()
    }
}

/// What a file begins with; `program` is what writes it.
pub fn section(program: &str) -> Vec<u8> {
    Block::new(SECTION)
        .word(MAGIC)
        .bytes(&VERSION.map(u16::to_le_bytes).concat())
        .bytes(&UNKNOWN.to_le_bytes())
        .option(APPLICATION, program.as_bytes())
        .end_of_options()
}

/// An interface, which packets after it name by its place among all.
pub fn interface(name: &str, description: &str, longest: u32) -> Vec<u8> {
    Block::new(INTERFACE)
        .bytes(&ETHERNET.to_le_bytes())
        .bytes(&[0, 0])
        .word(longest)
        .option(NAME, name.as_bytes())
        .option(DESCRIPTION, description.as_bytes())
        .option(RESOLUTION, &[NANOSECONDS])
        .end_of_options()
}

/// A packet at an interface.
pub fn packet(interface: u32, packet: Packet<'_>) -> Vec<u8> {
    let direction: u32 = match packet.direction {
        Direction::In => 1,
        Direction::Out => 2,
    };
    Block::new(PACKET)
        .word(interface)
        .time(packet.at_ns)
        .word(packet.bytes.len() as u32)
        .word(packet.length)
        .bytes(packet.bytes)
        .padded()
        .option(FLAGS, &direction.to_le_bytes())
        .end_of_options()
}

/// What was captured at an interface until then, and how many more there were.
pub fn statistics(interface: u32, at_ns: u64, (received, dropped): (u64, u64)) -> Vec<u8> {
    Block::new(STATISTICS)
        .word(interface)
        .time(at_ns)
        .option(RECEIVED, &received.to_le_bytes())
        .option(DROPPED, &dropped.to_le_bytes())
        .end_of_options()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
    }

    #[test]
    fn each_block_tells_its_length_twice_and_is_of_whole_words() {
        let long = [7; 61];
        let blocks = [
            section("bumpless 0.1.0"),
            interface("s01:eth1", "s01 to g01-1a", 262_144),
            packet(
                3,
                Packet {
                    at_ns: 1 << 40 | 5,
                    direction: Direction::Out,
                    bytes: &long,
                    length: 1_500,
                },
            ),
            statistics(3, 9, (1, 2)),
        ];
        for block in &blocks {
            let length = block.len();
            assert_eq!(length % 4, 0);
            assert_eq!(word(block, 4) as usize, length);
            assert_eq!(word(block, length - 4) as usize, length);
        }
        assert!(blocks[3].len() as u64 <= STATISTICS_LEN);
    }

    #[test]
    fn a_packet_has_interface_time_lengths_bytes_and_direction_where_readers_look() {
        let of = |direction, bytes: &[u8]| {
            packet(
                2,
                Packet {
                    at_ns: 0x0000_0102_0304_0506,
                    direction,
                    bytes,
                    length: 90,
                },
            )
        };
        let block = of(Direction::In, &[1, 2, 3, 4, 5]);
        let words: Vec<u32> = (0..7).map(|place| word(&block, 4 * place)).collect();
        assert_eq!(
            words,
            [6, block.len() as u32, 2, 0x0102, 0x0304_0506, 5, 90]
        );
        assert_eq!(block[28..36], [1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(block[36..44], [2, 0, 4, 0, 1, 0, 0, 0], "inbound");
        assert_eq!(of(Direction::Out, &[]).get(32), Some(&2), "outbound");
    }
}
