//! What can happen next.

use super::plan::Fault;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Whose turn it is gets what waits for it, and runs.
    Turn,
    /// A paused node lets its turn pass.
    StandStill,
    Pause,
    Crash,
    Start,
    /// Of the datagrams on their way, the one at this place.
    Lose(usize),
    HoldBack(usize),
    Copy(usize),
    /// Of the datagrams that are held back, the one at this place.
    Release(usize),
    RestartWitness(usize),
    Cut(u64),
    /// All of these paths at once.
    Outage(u64),
    Mend(u64),
    StopTransfers,
    ResumeTransfers,
    LateState,
    Expire,
    OrderSwitchover,
}

impl Action {
    /// The fault that it is, of which a world affords only so many.
    pub fn fault(self) -> Option<Fault> {
        Some(match self {
            Self::Pause => Fault::Pause,
            Self::Crash => Fault::Crash,
            Self::Lose(_) => Fault::Loss,
            Self::HoldBack(_) => Fault::Delay,
            Self::Copy(_) => Fault::Copy,
            Self::RestartWitness(_) => Fault::WitnessRestart,
            Self::Cut(_) => Fault::Cut,
            Self::Outage(_) => Fault::Outage,
            Self::StopTransfers => Fault::Transfer,
            Self::LateState => Fault::LateState,
            Self::Expire => Fault::Expiry,
            Self::OrderSwitchover => Fault::Order,
            Self::Turn
            | Self::StandStill
            | Self::Start
            | Self::Release(_)
            | Self::Mend(_)
            | Self::ResumeTransfers => return None,
        })
    }
}
