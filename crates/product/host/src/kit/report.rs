//! What the kit found out about a program.

use std::fmt;

/// What the kit found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Input values of a cycle.
    pub inputs: usize,
    /// Output values of a cycle.
    pub outputs: usize,
    /// Cycles of the first run that were executed.
    pub cycles: u64,
    /// How often the state was moved, to new instances and to used ones.
    pub moves: u64,
    /// What keeps the program from being made redundant.
    pub hindrances: Vec<Hindrance>,
    /// What else is worth knowing.
    pub notes: Vec<Note>,
    /// Time to execute a cycle, nanoseconds.
    pub executing: Percentiles,
    /// Time to save the state, nanoseconds.
    pub saving: Percentiles,
    /// Bytes of the state after each cycle.
    pub state_bytes: Percentiles,
    /// Most bytes that a state can have.
    pub state_max: usize,
    /// Share of the state that a cycle changes, by words of 8 bytes.
    pub changed: Share,
    /// It was stopped before the end.
    pub interrupted: bool,
}

impl Report {
    /// Whether nothing speaks against running the program redundantly.
    pub fn can_be_redundant(&self) -> bool {
        self.hindrances.is_empty() && !self.interrupted
    }
}

/// What share of something, over many cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// The mean, 0 to 1.
    pub mean: f64,
    /// The largest, 0 to 1.
    pub max: f64,
}

/// How values are spread, by nearest rank; zeros if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// The median.
    pub p50: u64,
    /// 99 of 100 are not above it.
    pub p99: u64,
    /// 999 of 1,000 are not above it.
    pub p999: u64,
    /// The largest.
    pub max: u64,
}

impl Percentiles {
    /// Of `values`, in any order.
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let rank = |per_mille: usize| {
            let rank = (values.len() * per_mille).div_ceil(1_000).max(1);
            values.get(rank - 1).copied().unwrap_or_default()
        };
        Self {
            p50: rank(500),
            p99: rank(990),
            p999: rank(999),
            max: rank(1_000),
        }
    }
}

/// Two outputs that should be equal to the bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which output, from 0.
    pub output: usize,
    /// Its bits in the run that was never disturbed.
    pub expected: u64,
    /// Its bits in the other.
    pub found: u64,
}

impl Difference {
    /// The first difference of two sets of outputs.
    pub fn between(expected: &[u64], found: &[f64]) -> Option<Self> {
        let pairs = expected.iter().zip(found).enumerate();
        let mut pairs = pairs.map(|(output, (&expected, found))| Self {
            output,
            expected,
            found: found.to_bits(),
        });
        pairs.find(|pair| pair.expected != pair.found)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expected, found) = (f64::from_bits(self.expected), f64::from_bits(self.found));
        if expected.is_nan() && found.is_nan() {
            return write!(
                f,
                "output {} is a NaN with bits {:#018x} instead of {:#018x}",
                self.output, self.found, self.expected
            );
        }
        write!(f, "output {} is {found} instead of {expected}", self.output)?;
        if expected == found {
            f.write_str(" (the sign of zero counts)")?;
        }
        Ok(())
    }
}

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
            | Self::StateRefused { cycle, .. } => *cycle,
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
}

impl Note {
    /// A name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoOutputs => "no_outputs",
            Self::OutputsNeverChange => "outputs_never_change",
            Self::MeaninglessBytes { .. } => "meaningless_bytes",
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let spread = Percentiles::of((1..=1_000).rev().collect());
        assert_eq!(
            (spread.p50, spread.p99, spread.p999, spread.max),
            (500, 990, 999, 1_000)
        );
        assert_eq!(
            Percentiles::of(vec![7]),
            Percentiles {
                p50: 7,
                p99: 7,
                p999: 7,
                max: 7
            }
        );
        assert_eq!(Percentiles::of(Vec::new()), Percentiles::default());
    }

    #[test]
    fn nans_and_zeros_are_compared_by_their_bits() {
        let nan = f64::from_bits(0x7ff8_0000_0000_0001);
        let difference = Difference::between(&[1.0f64.to_bits(), f64::NAN.to_bits()], &[1.0, nan]);
        let said = difference.unwrap().to_string();
        assert!(
            said.contains("output 1 is a NaN with bits 0x7ff8000000000001"),
            "{said}"
        );
        let difference = Difference::between(&[0.0f64.to_bits()], &[-0.0]);
        assert!(difference.unwrap().to_string().contains("sign of zero"));
        assert_eq!(Difference::between(&[nan.to_bits()], &[nan]), None);
    }
}
