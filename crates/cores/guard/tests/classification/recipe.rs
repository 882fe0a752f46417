//! What frames are made of that a slow parser judges as well.

use proptest::collection::vec;
use proptest::prelude::*;

/// What a frame is made of.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub tags: Vec<u16>,
    pub kind: u16,
    pub options: usize,
    pub fragment: u16,
    pub extensions: Vec<(u8, u8, u16)>,
    pub protocol: u8,
    pub hop_limit: u8,
    pub payload: Vec<u8>,
    pub padding: usize,
    pub edits: Vec<(usize, u8)>,
    pub keep: usize,
}

impl Recipe {
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = vec![0x11; 12];
        for tag in &self.tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0x20, 0x07]);
        }
        frame.extend(self.kind.to_be_bytes());
        match self.kind {
            0x86dd => self.ipv6(&mut frame),
            0x0806 => {
                frame.extend([0, 1, 8, 0, 6, 4, 0, 2]);
                frame.extend([[0x22; 10], [0x33; 10]].concat());
            }
            _ => self.ipv4(&mut frame),
        }
        frame.extend(std::iter::repeat_n(0xee, self.padding));
        for &(at, value) in &self.edits {
            let len = frame.len();
            frame[at % len] = value;
        }
        frame.truncate(self.keep);
        frame
    }

    fn ipv4(&self, frame: &mut Vec<u8>) {
        let header = 20 + self.options * 4;
        let total = (header + self.payload.len()) as u16;
        frame.extend([0x40 | (header / 4) as u8, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend([0, 1]);
        frame.extend(self.fragment.to_be_bytes());
        frame.extend([self.hop_limit, self.protocol, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(std::iter::repeat_n(1, self.options * 4));
        frame.extend(&self.payload);
    }

    fn ipv6(&self, frame: &mut Vec<u8>) {
        let kinds = self.extensions.iter().map(|extension| extension.0);
        let mut kinds = kinds.chain([self.protocol]);
        let first = kinds.next().expect("there is the protocol");
        let mut after = Vec::new();
        for (&(kind, len, offset), next) in self.extensions.iter().zip(kinds) {
            match kind {
                44 => {
                    after.extend([next, 0]);
                    after.extend(offset.to_be_bytes());
                    after.extend([0; 4]);
                }
                _ => {
                    after.extend([next, len]);
                    after.extend(std::iter::repeat_n(0, usize::from(len) * 8 + 6));
                }
            }
        }
        after.extend(&self.payload);
        frame.extend([0x60, 0, 0, 0]);
        frame.extend((after.len() as u16).to_be_bytes());
        frame.extend([first, self.hop_limit]);
        frame.extend([0xfd; 32]);
        frame.extend(after);
    }
}

/// Frames of all kinds, some of them broken.
pub fn recipes() -> impl Strategy<Value = Recipe> {
    let tag = prop_oneof![Just(0x8100u16), Just(0x88a8), Just(0x9100)];
    let kind = prop_oneof![
        4 => Just(0x0800u16),
        6 => Just(0x86dd),
        1 => Just(0x0806),
        1 => any::<u16>()
    ];
    let offset = prop_oneof![2 => Just(0u16), 1 => Just(1), 1 => any::<u16>()];
    let extension = prop_oneof![Just(0u8), Just(43), Just(44), Just(60), Just(51), Just(135)];
    let edits = vec((any::<usize>(), any::<u8>()), 0..4);
    let keep = prop_oneof![2 => Just(usize::MAX), 1 => 0usize..120];
    let ethernet = (vec(tag, 0..4), kind, 0usize..20, edits, keep);
    let extensions = vec((extension, 0u8..3, offset), 0..11);
    let recipe = |(ethernet, extensions, internet, payload)| {
        let (tags, kind, padding, edits, keep) = ethernet;
        let (options, fragment, protocol, hop_limit) = internet;
        Recipe {
            tags,
            kind,
            options,
            fragment,
            extensions,
            protocol,
            hop_limit,
            payload,
            padding,
            edits,
            keep,
        }
    };
    (ethernet, extensions, internet(), payloads()).prop_map(recipe)
}

/// What a header of the internet protocol says: options, fragment, protocol, hops left.
fn internet() -> impl Strategy<Value = (usize, u16, u8, u8)> {
    let fragment =
        prop_oneof![4 => Just(0u16), 1 => Just(0x4000), 1 => Just(0x2000), 1 => any::<u16>()];
    let protocol = prop_oneof![
        Just(17u8),
        Just(6),
        Just(1),
        Just(58),
        Just(59),
        any::<u8>()
    ];
    let hop_limit = prop_oneof![Just(255u8), any::<u8>()];
    (0usize..11, fragment, protocol, hop_limit)
}

fn payloads() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        // A TCP header of 20 bytes and of more; neighbour discovery.
        vec(any::<u8>(), 20..60).prop_map(|mut bytes| {
            bytes[12] = 0x50 | (bytes[12] & 0x1f);
            bytes
        }),
        vec(133u8..138, 1..9),
        // Echo requests and replies of both families.
        prop_oneof![Just(0u8), Just(8), Just(128), Just(129)].prop_map(|kind| vec![kind, 0, 0, 0]),
    ]
}
