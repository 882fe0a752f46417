//! What nodes say to each other in a session: frames of a length and JSON (`spec/management.md`, M-10 to M-13).

use serde::{Deserialize, Serialize};

/// Longest message, bytes: a configuration file of the longest kind in JSON, in which a character may take two bytes.
pub const LONGEST: usize = (2 << 20) + 1024;
/// Bytes of the length before each.
const LENGTH: usize = 4;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// Who one is, and what both must agree upon. The first one, and only that.
    Hello(Profile),
    /// The packets' key of this session opens here: it may seal.
    Ready,
    /// Packets are sealed with this session's key from here on.
    Sealing,
    /// Nothing; that one is there.
    Alive,
    /// The other end is asked to prepare the change to this configuration.
    Propose {
        /// Its file.
        text: String,
    },
    /// What came of what was proposed last.
    Proposed {
        /// Why it is not prepared; `None`: it is.
        refused: Option<String>,
    },
    /// The other end is asked to give up what it has prepared.
    Withdraw,
}

/// What a node says of itself (RSTP-MM's profiles; first paper, 7.3.1 to 7.3.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// What the pair is called.
    pub pair: String,
    /// What the node is called.
    pub node: String,
    /// Its number in envelopes and heartbeats.
    pub number: u8,
    /// Bytes of each packet of a state.
    pub payload_bytes: u16,
    /// Packets of states that may be on their way to it unacknowledged.
    pub in_flight_max: u32,
    /// Its links.
    pub links: Vec<LinkProfile>,
}

/// A node's end of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkProfile {
    /// What the network is called.
    pub network: String,
    /// Bit/s at which the node sends and takes states at most; zero: it states none.
    pub bandwidth: u64,
    /// Longest IP packet, bytes.
    pub mtu: u32,
}

impl Profile {
    /// What differs from what `there` says of itself, a line each with both sides' values. Links that one
    /// side alone has are no mismatch, and a witness has nothing to compare.
    pub fn mismatches(&self, there: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.pair != there.pair {
            return found;
        }
        let mut compare = |what: &str, here: String, there_: String, then: &str| {
            if here != there_ {
                let node = &there.node;
                found.push(format!(
                    "{what} is {here} here and {there_} at '{node}'{then}"
                ));
            }
        };
        let number = |number: &dyn ToString| number.to_string();
        compare(
            "the payload of a packet",
            number(&self.payload_bytes),
            number(&there.payload_bytes),
            "",
        );
        compare(
            "the limit of packets in flight",
            number(&self.in_flight_max),
            number(&there.in_flight_max),
            LOWER,
        );
        for link in &self.links {
            let other = there.links.iter().find(|it| it.network == link.network);
            let Some(other) = other else {
                continue;
            };
            let of = |what: &str| format!("the {what} of network '{}'", link.network);
            compare(&of("MTU"), number(&link.mtu), number(&other.mtu), "");
            compare(
                &of("bandwidth in Mbit/s"),
                megabits(link.bandwidth),
                megabits(other.bandwidth),
                LOWER,
            );
        }
        found
    }
}

/// Of what both ends state, and of neither end's plan.
const LOWER: &str = "; the lower counts, and each node's plan reckons with its own";

fn megabits(bandwidth: u64) -> String {
    match bandwidth {
        0 => "not limited".into(),
        stated => (stated as f64 / 1e6).to_string(),
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is longer than [`LONGEST`].
    TooLong,
    /// It is no JSON of a known kind.
    Garbled,
}

/// Adds `message` to `out` as it is sent.
pub fn write(message: &Message, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend([0; LENGTH]);
    // Writing to memory cannot fail, and neither can strings and numbers.
    let _ = serde_json::to_writer(&mut *out, message);
    let length = (out.len() - at - LENGTH) as u32;
    out[at..at + LENGTH].copy_from_slice(&length.to_be_bytes());
}

/// Takes the first whole message from `bytes`; `None` if there is none yet.
///
/// # Errors
/// It is none, and nothing that comes after it can be understood.
pub fn take(bytes: &mut Vec<u8>) -> Result<Option<Message>, Malformed> {
    let Some(length) = bytes.first_chunk::<LENGTH>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length > LONGEST {
        return Err(Malformed::TooLong);
    }
    let Some(body) = bytes.get(LENGTH..LENGTH + length) else {
        return Ok(None);
    };
    let message = serde_json::from_slice(body).map_err(|_| Malformed::Garbled)?;
    bytes.drain(..LENGTH + length);
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_cut() {
        let said = [
            Message::Hello(Profile {
                pair: "tank".into(),
                links: vec![LinkProfile::default()],
                ..Profile::default()
            }),
            Message::Ready,
            Message::Alive,
            Message::Propose {
                text: "[pair]\nname = \"tänk\"\n".repeat(1000),
            },
            Message::Proposed {
                refused: Some("no".into()),
            },
            Message::Withdraw,
        ];
        let mut bytes = Vec::new();
        said.iter().for_each(|message| write(message, &mut bytes));
        let (mut arrived, mut heard) = (Vec::new(), Vec::new());
        for byte in bytes {
            arrived.push(byte);
            while let Some(message) = take(&mut arrived).unwrap() {
                heard.push(message);
            }
        }
        assert_eq!(heard, said);
    }

    #[test]
    fn a_big_length_is_refused_before_anything_is_kept_for_it() {
        let mut bytes = vec![0xFF; 4];
        assert_eq!(take(&mut bytes), Err(Malformed::TooLong));
        let mut garbled = vec![0, 0, 0, 1, b'{'];
        assert_eq!(take(&mut garbled), Err(Malformed::Garbled));
        let mut unknown = Vec::new();
        unknown.extend([0, 0, 0, 15]);
        unknown.extend(br#"{"kind":"fire"}"#);
        assert_eq!(take(&mut unknown), Err(Malformed::Garbled));
    }

    #[test]
    fn a_mismatch_names_both_sides_values() {
        let link = |network: &str, bandwidth| LinkProfile {
            network: network.into(),
            bandwidth,
            mtu: 1500,
        };
        let here = Profile {
            node: "left".into(),
            in_flight_max: 512,
            links: vec![link("A", 1_000_000_000), link("B", 100)],
            ..Profile::default()
        };
        let there = Profile {
            node: "right".into(),
            in_flight_max: 99,
            links: vec![link("A", 99_500_000), link("C", 1)],
            ..Profile::default()
        };
        assert_eq!(here.mismatches(&here), Vec::<String>::new());
        let told = here.mismatches(&there);
        let expected = [
            "the limit of packets in flight is 512 here and 99 at 'right'; the lower counts",
            "the bandwidth in Mbit/s of network 'A' is 1000 here and 99.5 at 'right'; the lower counts",
        ];
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (line, words) in told.iter().zip(expected) {
            assert!(line.starts_with(words), "{line}");
        }
    }
}
