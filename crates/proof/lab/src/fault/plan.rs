//! What is to go wrong, as it travels over the control socket (JSON).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Faults of all links of a process. A link that is not named works as it should.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    /// Faults by name of the network.
    pub links: BTreeMap<String, LinkFaults>,
}

/// Faults of one link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkFaults {
    /// What does not pass at all.
    pub cut: Cut,
    /// Faults of packets that leave.
    pub send: PacketFaults,
    /// Faults of packets that arrive.
    pub receive: PacketFaults,
}

/// What does not pass at all, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Everything passes.
    #[default]
    Nothing,
    /// Nothing passes to or from partner nodes; reference points remain in reach.
    Partners,
    /// Nothing passes.
    All,
}

/// What happens to single packets. Shares are probabilities from 0 to 1, independent of each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PacketFaults {
    /// Share of packets that are lost.
    pub loss: f64,
    /// Share of packets with which a burst of losses begins.
    pub burst: f64,
    /// Packets lost in a row in each burst.
    pub burst_length: u32,
    /// Share of packets that come twice.
    pub duplicate: f64,
    /// Share of packets that are overtaken by the next one (only in the receive direction).
    pub reorder: f64,
    /// Share of packets in which one bit is turned over.
    pub corrupt: f64,
}

impl FaultPlan {
    /// The same faults on each of `links`.
    pub fn on<'a>(links: impl IntoIterator<Item = &'a str>, faults: &LinkFaults) -> Self {
        Self {
            links: links
                .into_iter()
                .map(|link| (link.into(), faults.clone()))
                .collect(),
        }
    }
}

impl LinkFaults {
    /// Random loss of arriving packets.
    pub fn loss(share: f64) -> Self {
        let receive = PacketFaults {
            loss: share,
            ..PacketFaults::default()
        };
        Self {
            receive,
            ..Self::default()
        }
    }

    /// Bursts of `length` arriving packets lost in a row, one beginning with each `burst` of them.
    pub fn bursts(burst: f64, length: u32) -> Self {
        let receive = PacketFaults {
            burst,
            burst_length: length,
            ..PacketFaults::default()
        };
        Self {
            receive,
            ..Self::default()
        }
    }

    /// A cut.
    pub fn cut(cut: Cut) -> Self {
        Self {
            cut,
            ..Self::default()
        }
    }
}

impl PacketFaults {
    /// Whether every share is a probability.
    pub(super) fn is_sound(&self) -> bool {
        [
            self.loss,
            self.burst,
            self.duplicate,
            self.reorder,
            self.corrupt,
        ]
        .iter()
        .all(|share| (0.0..=1.0).contains(share))
    }
}
