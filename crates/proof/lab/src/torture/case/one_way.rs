//! Ways on which nothing passes, while others are open.

use super::Done;
use crate::torture::judge::{Fault, Limits, TWO_PERIODS_NS};
use crate::torture::result::Want;
use crate::torture::stage::{MS, Stage};
use crate::torture::switch::faults::{Cut, Faults, WITNESS};

/// How long the ways are cut.
pub const LENGTH_MS: u64 = 1_500;
/// Longest gap of a failover (spec/demo.md, D-14).
pub const FAILOVER_NS: u64 = 40 * MS;

/// Which ways are cut, on both networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Everything to the primary.
    Deaf,
    /// Everything from the primary.
    Mute,
    /// From primary to backup.
    Forward,
    /// From backup to primary.
    Backward,
    /// Both ways between the nodes.
    Pair,
    /// Both ways between both nodes and the witnesses.
    Witnesses,
}

impl Way {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Deaf,
        Self::Mute,
        Self::Forward,
        Self::Backward,
        Self::Pair,
        Self::Witnesses,
    ];

    /// The case's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deaf => "primary-deaf",
            Self::Mute => "primary-mute",
            Self::Forward => "forward-cut",
            Self::Backward => "backward-cut",
            Self::Pair => "pair-cut",
            Self::Witnesses => "witnesses-cut",
        }
    }

    /// What people read.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Deaf => "the primary sends but does not receive, on all networks",
            Self::Mute => "the primary receives but does not send, on all networks",
            Self::Forward => "nothing passes from primary to backup",
            Self::Backward => "nothing passes from backup to primary",
            Self::Pair => "nothing passes between the nodes",
            Self::Witnesses => "nothing passes between nodes and witnesses",
        }
    }

    /// What is promised.
    pub const fn promised(self) -> &'static str {
        match self {
            Self::Deaf | Self::Mute => "failover as for a dead primary, with its state",
            Self::Forward | Self::Backward | Self::Pair => {
                "outputs go on, on either node, as after a failover"
            }
            Self::Witnesses => "the primary notices nothing",
        }
    }

    fn cut(self, primary: usize) -> Vec<Cut> {
        let backup = 1 - primary;
        match self {
            Self::Deaf => vec![Cut::to(primary)],
            Self::Mute => vec![Cut::from(primary)],
            Self::Forward => vec![Cut::one_way(primary, backup)],
            Self::Backward => vec![Cut::one_way(backup, primary)],
            Self::Pair => vec![Cut::between(primary, backup)],
            Self::Witnesses => vec![Cut::between(0, WITNESS), Cut::between(1, WITNESS)],
        }
    }

    const fn gap_ns(self) -> u64 {
        match self {
            Self::Witnesses => TWO_PERIODS_NS,
            _ => FAILOVER_NS,
        }
    }
}

/// Does it.
pub fn run(stage: &mut Stage<'_>, way: Way) -> Done {
    let scene = stage.open()?;
    let primary = scene.primary;
    let mut fault = Fault {
        from_ns: scene.from_ns,
        to_ns: scene.from_ns,
    };
    for cut in way.cut(primary) {
        let faults = Faults {
            cut,
            ..Faults::default()
        };
        let episode = stage.fault([true; 2], LENGTH_MS * MS, None, faults);
        fault = Fault {
            from_ns: episode.from_ns,
            to_ns: episode.to_ns,
        };
    }
    let mut finding = stage.close(scene, fault, &Limits::gap(way.gap_ns()))?;
    if matches!(way, Way::Deaf | Way::Mute) {
        let took_over = finding.evidence.events.iter().any(|event| {
            event.node != primary && event.text("event") == "role" && event.text("to") == "primary"
        });
        finding.trial.wants.push(Want::strict(
            "takes-over",
            "the backup becomes primary",
            took_over,
            if took_over { "it did" } else { "it did not" },
        ));
    }
    Ok((finding, fault))
}
