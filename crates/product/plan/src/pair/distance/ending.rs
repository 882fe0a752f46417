//! How a site ends, and which gap is promised then (P-86).

use serde::{Deserialize, Serialize};

use super::{Duration, Gaps};

/// How a site ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All processes of the primary's site.
    PrimaryKilled,
    /// All links of the primary's site; what it has asked of field devices is done when they are back.
    PrimaryCut,
    /// All processes of the primary's site, after an ordered switchover.
    Ordered,
    /// All processes of the backup's site.
    BackupKilled,
    /// All links of the backup's site.
    BackupCut,
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::PrimaryKilled,
        Self::PrimaryCut,
        Self::Ordered,
        Self::BackupKilled,
        Self::BackupCut,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PrimaryKilled => "primary-killed",
            Self::PrimaryCut => "primary-cut",
            Self::Ordered => "ordered",
            Self::BackupKilled => "backup-killed",
            Self::BackupCut => "backup-cut",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Whether it is the site of the node that was primary.
    pub const fn is_of_primary(self) -> bool {
        matches!(self, Self::PrimaryKilled | Self::PrimaryCut | Self::Ordered)
    }

    /// Whether its links end and not its processes.
    pub const fn is_cut(self) -> bool {
        matches!(self, Self::PrimaryCut | Self::BackupCut)
    }

    /// The longest gap that is promised for it.
    pub fn promised(self, gaps: &Gaps) -> Duration {
        match self {
            Self::PrimaryKilled | Self::PrimaryCut => gaps.unordered,
            // What has given the role away ends as a backup.
            Self::Ordered => gaps.ordered.max(gaps.backup),
            Self::BackupKilled | Self::BackupCut => gaps.backup,
        }
    }
}
