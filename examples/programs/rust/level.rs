//! Keeps a tank's level: a PI controller with a filter on the sensor.
//! Inputs: level (m), set point (m). Outputs: pump (0 to 1), 1.0 while the level is too high.

use std::process::ExitCode;

use bumpless_program::{Cycle, Program, run, state};

state! {
    struct State { filtered: f64, integral: f64, too_high: u64 }
}

struct Level;

impl Program for Level {
    type State = State;
    const INPUTS: usize = 2;
    const OUTPUTS: usize = 2;
    const STATE_VERSION: u64 = 1;

    fn step(
        cycle: Cycle,
        inputs: &[f64],
        outputs: &mut [f64],
        state: &mut State,
    ) -> Result<(), String> {
        state.filtered += 0.1 * (inputs[0] - state.filtered);
        let error = inputs[1] - state.filtered;
        let pump = 2.0 * error + 0.5 * state.integral;
        // Otherwise the integral would wind up.
        if pump > 0.0 && pump < 1.0 {
            state.integral += error * cycle.period.as_secs_f64();
        }
        let high = state.filtered > 1.1 * inputs[1];
        state.too_high = if high { state.too_high + 1 } else { 0 };
        outputs[0] = pump.clamp(0.0, 1.0);
        outputs[1] = f64::from(u8::from(state.too_high > 10));
        Ok(())
    }
}

fn main() -> ExitCode {
    run::<Level>()
}
