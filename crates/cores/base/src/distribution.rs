//! How the packets of a channel use its links.

/// How the packets of a channel use its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Every packet on every link; the first copy counts.
    Replicate,
    /// Every packet on one link, whichever is ready first; sent again on another when one fails.
    Spread,
}

impl Distribution {
    /// The word in configurations and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replicate => "replicate",
            Self::Spread => "spread",
        }
    }
}
