//! Decentralized PID control of the quadruple-tank process (K. H. Johansson, "The Quadruple-Tank
//! Process: A Multivariable Laboratory Process with an Adjustable Zero", IEEE Transactions on
//! Control Systems Technology 8(3), 2000): pump 1 keeps the level of tank 1, pump 2 that of tank 2.
//!
//! Inputs: level 1 in cm, level 2 in cm, process time in s (the set-point schedule follows the
//! process, not the controller, so that a failover does not shift it). Outputs: pump voltages in V.
//!
//! State layout, big endian, for each loop in turn after the first byte:
//!
//! | offset | length | field |
//! |---|---|---|
//! | 0 | 1 | layout version, 1 |
//! | 1 + 25 i | 8 | integral part in V, IEEE 754 binary64 |
//! | 9 + 25 i | 8 | derivative part in V |
//! | 17 + 25 i | 8 | last measurement in V |
//! | 25 + 25 i | 1 | 1 if there is a last measurement, else 0 |

use crate::pid::{PidParameters, PidState};
use crate::tanks;
use crate::{Application, CycleContext, LoadError, ProgramFault};

/// What its inputs are called: levels in cm, process time in s.
pub const INPUTS: [&str; 3] = ["level_1", "level_2", "process_time"];
/// What its outputs are called: pump voltages in V.
pub const OUTPUTS: [&str; LOOPS] = ["pump_1", "pump_2"];

const VERSION: u8 = 1;
const LOOPS: usize = 2;
const LOOP_LEN: usize = 25;
const STATE_LEN: usize = 1 + LOOPS * LOOP_LEN;

pub use crate::tanks::VOLTAGE_MAX;

/// From a point in process time on, these are the set points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetPointStep {
    /// Process time in s.
    pub at: f64,
    /// Set points of levels 1 and 2 in cm.
    pub levels: [f64; 2],
}

/// Parameters of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct QuadrupleTankParameters {
    /// The two loops. Measurements are sensor voltages: level times [`tanks::SENSOR_GAIN`].
    pub loops: [PidParameters; 2],
    /// Set points before the first step, in cm.
    pub initial: [f64; 2],
    /// Steps in ascending order of time.
    pub steps: Vec<SetPointStep>,
    /// Seconds of process time per second of the controller's clock.
    pub time_scale: f64,
}

impl Default for QuadrupleTankParameters {
    /// Johansson's PI controllers for the minimum-phase setting, holding its operating point.
    fn default() -> Self {
        let pi = |gain, integral_time| PidParameters {
            gain,
            integral_time,
            derivative_time: 0.0,
            derivative_filter: 10.0,
            bias: tanks::OPERATING_VOLTAGES[0],
            limits: (0.0, VOLTAGE_MAX),
        };
        let [h1, h2, ..] = tanks::steady_state(tanks::OPERATING_VOLTAGES);
        Self {
            loops: [pi(3.0, 30.0), pi(2.7, 40.0)],
            initial: [h1, h2],
            steps: Vec::new(),
            time_scale: 1.0,
        }
    }
}

impl QuadrupleTankParameters {
    /// The set points at `process_time` seconds, in cm.
    pub fn set_points(&self, process_time: f64) -> [f64; 2] {
        let due = self.steps.iter().take_while(|step| step.at <= process_time);
        due.last().map_or(self.initial, |step| step.levels)
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct QuadrupleTank {
    parameters: QuadrupleTankParameters,
    loops: [PidState; LOOPS],
}

impl QuadrupleTank {
    /// The controller in its initial state.
    pub fn new(parameters: QuadrupleTankParameters) -> Self {
        Self {
            parameters,
            loops: [PidState::default(); LOOPS],
        }
    }
}

impl Application for QuadrupleTank {
    fn inputs(&self) -> usize {
        INPUTS.len()
    }

    fn outputs(&self) -> usize {
        OUTPUTS.len()
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn execute(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault> {
        let &[level_1, level_2, process_time] = inputs else {
            return Ok(());
        };
        let step = context.period.as_secs_f64() * self.parameters.time_scale;
        let set_points = self.parameters.set_points(process_time);
        let loops = self.loops.iter_mut().zip(&self.parameters.loops);
        let signals = set_points.into_iter().zip([level_1, level_2]);
        for (((state, parameters), (set_point, level)), output) in loops.zip(signals).zip(outputs) {
            let (reference, measured) =
                (set_point * tanks::SENSOR_GAIN, level * tanks::SENSOR_GAIN);
            // A broken sensor must not poison the integral: the output stays as it is.
            if measured.is_finite() {
                *output = state.update(parameters, reference, measured, step);
            }
        }
        Ok(())
    }

    fn state_size_max(&self) -> usize {
        STATE_LEN
    }

    fn save(&self, into: &mut [u8]) -> usize {
        into[0] = VERSION;
        for (state, slot) in self.loops.iter().zip(into[1..].chunks_exact_mut(LOOP_LEN)) {
            slot[..8].copy_from_slice(&state.integral.to_be_bytes());
            slot[8..16].copy_from_slice(&state.derivative.to_be_bytes());
            slot[16..24].copy_from_slice(&state.measured.unwrap_or(0.0).to_be_bytes());
            slot[24] = state.measured.is_some().into();
        }
        STATE_LEN
    }

    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        if state.len() != STATE_LEN {
            return Err(LoadError::Length {
                expected: STATE_LEN,
                found: state.len(),
            });
        }
        if state[0] != VERSION {
            return Err(LoadError::Version {
                expected: VERSION,
                found: state[0],
            });
        }
        let (slots, _) = state[1..].as_chunks::<LOOP_LEN>();
        let mut loops = self.loops;
        for (state, slot) in loops.iter_mut().zip(slots) {
            *state = load_loop(slot)?;
        }
        self.loops = loops;
        Ok(())
    }

    fn reset(&mut self) {
        self.loops = [PidState::default(); LOOPS];
    }
}

fn load_loop(slot: &[u8; LOOP_LEN]) -> Result<PidState, LoadError> {
    let finite = |at: usize, field| {
        let mut raw = [0; 8];
        raw.copy_from_slice(&slot[at..at + 8]);
        let value = f64::from_be_bytes(raw);
        value
            .is_finite()
            .then_some(value)
            .ok_or(LoadError::Value { field })
    };
    let measured = finite(16, "last measurement")?;
    Ok(PidState {
        integral: finite(0, "integral part")?,
        derivative: finite(8, "derivative part")?,
        measured: match slot[24] {
            0 => None,
            1 => Some(measured),
            _ => {
                return Err(LoadError::Value {
                    field: "last measurement present",
                });
            }
        },
    })
}

#[cfg(test)]
mod tests;
