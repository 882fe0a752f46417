//! The published state: the executor's envelope, then the application's own bytes.
//!
//! All big endian.
//!
//! | offset | length | field |
//! |---|---|---|
//! | 0 | 1 | layout version, 1 |
//! | 1 | 1 | zero |
//! | 2 | 2 | number of outputs, n |
//! | 4 | 4 | epoch in which the cycle ran |
//! | 8 | 8 | cycle number |
//! | 16 | 8 n | outputs of that cycle, IEEE 754 binary64 |
//! | 16 + 8 n | rest | the application's state |
//!
//! Epoch and cycle order states of one application over failovers: the higher epoch is later, and
//! within an epoch the higher cycle.

use crate::LoadError;
use bumpless_base::Epoch;

const VERSION: u8 = 1;
const FIXED: usize = 16;
/// Bytes at the front of a state that say how far it has come; a security handler leaves them readable.
pub const FRONT: usize = FIXED;

/// Bytes that the envelope adds to the state of an application with `outputs` outputs.
pub const fn envelope_len(outputs: usize) -> usize {
    FIXED + 8 * outputs
}

/// How far an application has come: states are ordered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress {
    /// Epoch in which the cycle ran.
    pub epoch: Epoch,
    /// The cycle's number.
    pub cycle: u64,
}

/// How far the state with this front has come. The front is [`FRONT`] bytes at least, or the whole state.
pub fn progress_of(front: &[u8]) -> Option<Progress> {
    let fixed = front.first_chunk::<FRONT>()?;
    (fixed[0] == VERSION && fixed[1] == 0).then(|| progress(fixed))
}

fn progress(fixed: &[u8; FIXED]) -> Progress {
    let [.., c0, c1, c2, c3, c4, c5, c6, c7] = *fixed;
    Progress {
        epoch: Epoch(u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]])),
        cycle: u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
    }
}

/// Writes the envelope to the front of `into` and returns its length; `None` if it does not fit.
pub fn encode_envelope(progress: Progress, outputs: &[f64], into: &mut [u8]) -> Option<usize> {
    let len = envelope_len(outputs.len());
    let count = u16::try_from(outputs.len()).ok()?;
    let into = into.get_mut(..len)?;
    into[0] = VERSION;
    into[1] = 0;
    into[2..4].copy_from_slice(&count.to_be_bytes());
    into[4..8].copy_from_slice(&progress.epoch.0.to_be_bytes());
    into[8..16].copy_from_slice(&progress.cycle.to_be_bytes());
    for (slot, value) in into[FIXED..].chunks_exact_mut(8).zip(outputs) {
        slot.copy_from_slice(&value.to_be_bytes());
    }
    Some(len)
}

/// A published state taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// How far the application had come.
    pub progress: Progress,
    outputs: &'a [u8],
    /// The application's own bytes.
    pub application: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Takes `state` apart; total over all inputs.
    pub fn parse(state: &'a [u8]) -> Result<Self, LoadError> {
        let too_short = |expected| LoadError::Length {
            expected,
            found: state.len(),
        };
        let fixed = state.first_chunk::<FIXED>().ok_or(too_short(FIXED))?;
        if fixed[0] != VERSION {
            return Err(LoadError::Version {
                expected: VERSION,
                found: fixed[0],
            });
        }
        if fixed[1] != 0 {
            return Err(LoadError::Value { field: "reserved" });
        }
        let len = envelope_len(u16::from_be_bytes([fixed[2], fixed[3]]).into());
        let (head, application) = state.split_at_checked(len).ok_or(too_short(len))?;
        Ok(Self {
            progress: progress(fixed),
            outputs: &head[FIXED..],
            application,
        })
    }

    /// How many outputs the state carries.
    pub fn output_count(&self) -> usize {
        self.outputs.len() / 8
    }

    /// The outputs of the state's cycle.
    pub fn outputs(&self) -> impl Iterator<Item = f64> + '_ {
        let (values, _) = self.outputs.as_chunks::<8>();
        values.iter().map(|bytes| f64::from_be_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            epoch: u32, cycle: u64,
            outputs in proptest::collection::vec(-1e9f64..1e9, 0..5),
            rest in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let progress = Progress { epoch: Epoch(epoch), cycle };
            let mut state = vec![0xa5; envelope_len(outputs.len())];
            prop_assert_eq!(encode_envelope(progress, &outputs, &mut state), Some(state.len()));
            state.extend(&rest);
            let envelope = Envelope::parse(&state).unwrap();
            prop_assert_eq!(envelope.progress, progress);
            prop_assert_eq!(progress_of(&state[..FRONT]), Some(progress));
            prop_assert_eq!(envelope.outputs().collect::<Vec<_>>(), outputs);
            prop_assert_eq!(envelope.application, &rest[..]);
        }

        #[test]
        fn any_bytes_are_parsed_without_panic(
            mut state in proptest::collection::vec(any::<u8>(), 0..80), fix: bool,
        ) {
            if fix && state.len() > 3 {
                state[..3].copy_from_slice(&[1, 0, 0]);
            }
            if let Ok(envelope) = Envelope::parse(&state) {
                prop_assert_eq!(envelope.outputs().count(), envelope.output_count());
            }
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let mut bytes = [0u8; 24];
        let progress = Progress {
            epoch: Epoch(0x0102_0304),
            cycle: 0x0506_0708_090a_0b0c,
        };
        encode_envelope(progress, &[1.0], &mut bytes).unwrap();
        let expected = [
            1, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(encode_envelope(progress, &[1.0], &mut bytes[..23]), None);
    }

    #[test]
    fn a_later_epoch_outranks_any_cycle() {
        let at = |epoch, cycle| Progress {
            epoch: Epoch(epoch),
            cycle,
        };
        assert!(at(2, 1) > at(1, 100) && at(2, 2) > at(2, 1));
    }
}
