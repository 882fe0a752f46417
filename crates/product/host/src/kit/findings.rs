//! What the kit finds in a program: what hinders, and what is worth knowing.

use std::fmt;

use super::difference::Difference;

/// What keeps a program from being made redundant, and the cycle in which that was first seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// No instance could be made.
    NotMade {
        /// Before this cycle.
        cycle: u64,
        /// Why not.
        cause: String,
    },
    /// A cycle failed.
    Fails {
        /// The cycle.
        cycle: u64,
        /// Why.
        cause: String,
    },
    /// An output is a NaN or infinite, which no field device is given.
    NotFinite {
        /// The cycle in which that was first seen.
        cycle: u64,
        /// The output, from 0.
        output: usize,
    },
    /// A second instance with the same inputs gave other outputs.
    NotDeterministic {
        /// The cycle.
        cycle: u64,
        /// How, if not by failing.
        difference: Option<Difference>,
    },
    /// After the state was moved to a new instance, outputs were others.
    HiddenState {
        /// The cycle.
        cycle: u64,
        /// Before this one it was moved last.
        moved: u64,
        /// How, if not by failing.
        difference: Option<Difference>,
    },
    /// After the state was moved to an instance that had run, outputs were others.
    LeftBehind {
        /// The cycle.
        cycle: u64,
        /// Before this one it was moved last.
        moved: u64,
        /// How, if not by failing.
        difference: Option<Difference>,
    },
    /// After a reset, outputs were others than from the beginning.
    ResetIncomplete {
        /// The cycle after the reset.
        cycle: u64,
        /// How, if not by failing.
        difference: Option<Difference>,
    },
    /// An instance did not take over a state that another one had saved.
    StateRefused {
        /// Before this cycle.
        cycle: u64,
        /// Why.
        cause: String,
    },
    /// It had sockets open.
    Sockets {
        /// After this cycle.
        cycle: u64,
        /// How many.
        count: usize,
    },
}

/// What the system shows of an instance besides its inputs, outputs and state, or its file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Sockets that are open.
    Sockets(usize),
    /// Files that are open for writing.
    Files(Vec<String>),
    /// Threads, the one that computes included.
    Threads(usize),
    /// Processes that it has started.
    Processes(usize),
    /// What its file names that has to do with clocks, random numbers or connections.
    Names(Vec<&'static str>),
}

impl Hindrance {
    /// A name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotMade { .. } => "not_made",
            Self::Fails { .. } => "fails",
            Self::NotFinite { .. } => "not_finite",
            Self::NotDeterministic { .. } => "not_deterministic",
            Self::HiddenState { .. } => "hidden_state",
            Self::LeftBehind { .. } => "left_behind",
            Self::ResetIncomplete { .. } => "reset_incomplete",
            Self::StateRefused { .. } => "state_refused",
            Self::Sockets { .. } => "sockets",
        }
    }

    /// The cycle in which it was first seen.
    pub fn cycle(&self) -> u64 {
        match self {
            Self::NotMade { cycle, .. }
            | Self::Fails { cycle, .. }
            | Self::NotFinite { cycle, .. }
            | Self::NotDeterministic { cycle, .. }
            | Self::HiddenState { cycle, .. }
            | Self::LeftBehind { cycle, .. }
            | Self::ResetIncomplete { cycle, .. }
            | Self::StateRefused { cycle, .. }
            | Self::Sockets { cycle, .. } => *cycle,
        }
    }

    /// The output that differed, if one did.
    pub fn difference(&self) -> Option<Difference> {
        match self {
            Self::NotDeterministic { difference, .. }
            | Self::HiddenState { difference, .. }
            | Self::LeftBehind { difference, .. }
            | Self::ResetIncomplete { difference, .. } => *difference,
            _ => None,
        }
    }
}

/// What differed, in words.
fn how(difference: Option<Difference>) -> String {
    match difference {
        Some(difference) => difference.to_string(),
        None => "one of them failed and the other did not".into(),
    }
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMade { cycle, cause } => {
                write!(f, "no instance could be made before cycle {cycle}: {cause}")
            }
            Self::Fails { cycle, cause } => write!(f, "it fails in cycle {cycle}: {cause}"),
            Self::NotFinite { cycle, output } => write!(
                f,
                "output {output} is no finite number in cycle {cycle}, and such a cycle counts as failed; limit it before \
                 it is set"
            ),
            Self::NotDeterministic { cycle, difference } => write!(
                f,
                "it is not deterministic: with the same inputs a second instance differs in cycle {cycle}: {}; \
                 look for a clock, random numbers, memory that is used before it is set, or something outside",
                how(*difference)
            ),
            Self::HiddenState {
                cycle,
                moved,
                difference,
            } => write!(
                f,
                "it has hidden state: moved to a new instance before cycle {moved}, it differs in cycle {cycle}: {}; \
                 look for variables that the saved state lacks",
                how(*difference)
            ),
            Self::LeftBehind {
                cycle,
                moved,
                difference,
            } => write!(
                f,
                "taking over a state leaves something behind: moved to an instance that had run before cycle {moved}, it \
                 differs in cycle {cycle}: {}; look for variables that are kept when a state is loaded",
                how(*difference)
            ),
            Self::ResetIncomplete { cycle, difference } => write!(
                f,
                "a reset does not lead to the beginning: {cycle} cycles later it differs: {}; look for variables that \
                 a reset does not set",
                how(*difference)
            ),
            Self::StateRefused { cycle, cause } => {
                write!(f, "its own state is refused before cycle {cycle}: {cause}")
            }
            Self::Sockets { cycle, count } => write!(
                f,
                "it has {count} socket{} open after cycle {cycle}, and no connection moves with its state; let the host read \
                 and write the devices",
                if *count == 1 { "" } else { "s" }
            ),
        }
    }
}

/// What hinders nothing and is worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// There are no outputs to compare.
    NoOutputs,
    /// No output ever changed, so the comparison says little.
    OutputsNeverChange,
    /// States of two instances differ in bytes that their outputs do not depend on.
    MeaninglessBytes {
        /// The cycle after which that was first seen.
        cycle: u64,
    },
    /// Something that no state holds, or may not hold.
    Outside(Seen),
}

impl Note {
    /// A name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoOutputs => "no_outputs",
            Self::OutputsNeverChange => "outputs_never_change",
            Self::MeaninglessBytes { .. } => "meaningless_bytes",
            Self::Outside(Seen::Sockets(_)) => "sockets",
            Self::Outside(Seen::Files(_)) => "files",
            Self::Outside(Seen::Threads(_)) => "threads",
            Self::Outside(Seen::Processes(_)) => "processes",
            Self::Outside(Seen::Names(_)) => "names",
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOutputs => f.write_str("it has no outputs, so nothing could be compared"),
            Self::OutputsNeverChange => f.write_str(
                "no output ever changed, so the comparison says little; give it inputs on which it works (--data)",
            ),
            Self::MeaninglessBytes { cycle } => write!(
                f,
                "states differ although outputs do not, after cycle {cycle}: bytes without meaning, or something that shows \
                 later"
            ),
            Self::Outside(seen) => seen.fmt(f),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sockets(count) => write!(f, "it has {count} sockets open"),
            Self::Files(files) => write!(
                f,
                "it has files open for writing, which do not move with its state: {}",
                files.join(", ")
            ),
            Self::Threads(count) => write!(
                f,
                "it has {count} threads; what the others remember does not move with its state"
            ),
            Self::Processes(count) => write!(
                f,
                "it has started {count} processes; what they remember does not move with its state"
            ),
            Self::Names(names) => write!(
                f,
                "its file names {}; if an output hangs on that after longer than this test took, no test shows it",
                names.join(", ")
            ),
        }
    }
}
