//! One bit of one message is inverted, with a right checksum.

use std::ops::Range;

use super::Done;
use crate::torture::judge::{Fault, Limits, TWO_PERIODS_NS};
use crate::torture::now_ns;
use crate::torture::result::Want;
use crate::torture::stage::{MS, Stage};
use crate::torture::switch::faults::WITNESS;
use crate::torture::switch::{Flip, Flipped};

/// Types of messages (spec/wire.md, W-2).
const HEARTBEAT: u16 = 0x2001;
const REQUEST: u16 = 0x2002;
const REPLY: u16 = 0x2003;
const ENVELOPE: u16 = 0x3001;
/// Where fields of a heartbeat lie (W-21, W-25).
const SENT_AT: Range<usize> = 52..60;
const EPOCH: Range<usize> = 106..110;
/// How long is waited for a message that fits.
const TIMEOUT_MS: u64 = 300;
/// A strange value is outlived in a second; then the pair must be whole.
const OUTLIVED_NS: u64 = 1_000 * MS;
/// No chain of ordinary events raises the epoch by so much in a trial.
const EPOCHS_MAX: u64 = 1_000;

/// In what the bit is inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// When the heartbeat was sent.
    SentAt,
    /// The epoch in the heartbeat.
    Epoch,
    /// Anything in a heartbeat.
    Heartbeat,
    /// Anything in a request to a witness or its reply.
    Witness,
    /// Anything in what a protected pair sends, in its envelope or around it.
    Sealed,
}

impl Target {
    /// Every one.
    pub const ALL: [Self; 5] = [
        Self::SentAt,
        Self::Epoch,
        Self::Heartbeat,
        Self::Witness,
        Self::Sealed,
    ];

    /// Its name in cases.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SentAt => "sent-at",
            Self::Epoch => "epoch",
            Self::Heartbeat => "heartbeat",
            Self::Witness => "witness",
            Self::Sealed => "sealed",
        }
    }

    /// What people read.
    pub const fn title(self) -> &'static str {
        match self {
            Self::SentAt => "one bit of an open heartbeat's SentAt inverted",
            Self::Epoch => "one bit of an open heartbeat's epoch inverted",
            Self::Heartbeat => "any one bit of an open heartbeat inverted",
            Self::Witness => "any one bit of an open witness request or reply inverted",
            Self::Sealed => "any one bit of a protected message inverted",
        }
    }

    /// Whether the pair's messages must be open: in an envelope neither kinds nor fields can be told apart.
    pub fn is_open(self) -> bool {
        self != Self::Sealed
    }

    /// The order, for one side and network after the other.
    fn flip(self, number: u32, primary: usize) -> Flip {
        let number = number as usize;
        let (network, node) = (number / 2 % 2, (primary + number + 1) % 2);
        let (from, to, message) = match (self, number / 4 % 2) {
            (Self::Witness, 0) => (node, WITNESS, REQUEST),
            (Self::Witness, _) => (WITNESS, node, REPLY),
            (Self::Sealed, 0) => (node, 1 - node, ENVELOPE),
            (Self::Sealed, _) => (WITNESS, node, ENVELOPE),
            _ => (node, 1 - node, HEARTBEAT),
        };
        let bytes = match self {
            Self::SentAt => SENT_AT,
            Self::Epoch => EPOCH,
            Self::Heartbeat | Self::Witness | Self::Sealed => 0..usize::MAX,
        };
        Flip {
            network,
            from,
            to,
            message,
            bytes,
        }
    }
}

/// Does it.
pub fn run(stage: &mut Stage<'_>, target: Target, number: u32) -> Done {
    let scene = stage.open()?;
    let epoch = scene.epoch;
    let flip = target.flip(number, scene.primary);
    let from_ns = now_ns();
    stage.pair.hosts.switch.flip(flip.clone());
    let mut flipped = None;
    while flipped.is_none() && now_ns() < from_ns + TIMEOUT_MS * MS {
        stage.waiter.ms(5)?;
        let report = stage.pair.hosts.switch.report();
        flipped = report
            .and_then(|report| report.flipped.last().cloned())
            .filter(|last| last.at_ns >= from_ns);
    }
    stage.pair.hosts.switch.clear();
    let at_ns = flipped.as_ref().map_or(from_ns, |flipped| flipped.at_ns);
    let fault = Fault {
        from_ns: at_ns,
        to_ns: at_ns,
    };
    let limits = Limits {
        settle_ns: OUTLIVED_NS,
        heal_ns: OUTLIVED_NS + 100 * MS,
        ..Limits::gap(TWO_PERIODS_NS)
    };
    let mut finding = stage.close(scene, fault, &limits)?;
    finding.trial.what = describe(&flip, flipped.as_ref());
    let risen = stage.pair.epoch().saturating_sub(epoch);
    finding.trial.wants.extend([
        Want::strict(
            "flipped",
            "a bit was inverted",
            flipped.is_some(),
            finding.trial.what.clone(),
        ),
        Want::strict(
            "epoch",
            "the epoch does not jump",
            risen < EPOCHS_MAX,
            format!("rose by {risen}"),
        ),
    ]);
    Ok((finding, fault))
}

fn describe(flip: &Flip, flipped: Option<&Flipped>) -> String {
    let ports = ["left", "right", "witness"];
    let way = format!(
        "{} to {} on {}",
        ports[flip.from],
        ports[flip.to],
        crate::demo::configuration::NETWORKS[flip.network]
    );
    match flipped {
        Some(Flipped { byte, mask, .. }) => {
            format!("byte {byte}, bit {} from {way}", mask.trailing_zeros())
        }
        None => format!("no message passed from {way}"),
    }
}

#[cfg(test)]
mod tests;
