//! The same closed loop without networks, faults or noise: what a run is compared with.

use crate::tanks::{Levels, Process};
use crate::{Application, CycleContext, QuadrupleTank, QuadrupleTankParameters};
use bumpless_base::Duration;

/// The process at one moment of a baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaselineSample {
    /// Process time in s.
    pub process_s: f64,
    /// Levels in cm.
    pub levels: Levels,
    /// Pump voltages in V.
    pub voltages: [f64; 2],
}

/// One sample per period over `duration` (both on the controller's clock), from the operating
/// point on: the controller reads and writes without delay at every grid point.
pub fn baseline(
    parameters: &QuadrupleTankParameters,
    duration: Duration,
    period: Duration,
) -> Vec<BaselineSample> {
    let mut controller = QuadrupleTank::new(parameters.clone());
    let mut process = Process::at_operating_point();
    let mut outputs = process.voltages();
    let cycles = duration.as_nanos() / period.as_nanos().max(1);
    let sample = |cycle: u64| {
        process.advance_to((period * cycle).as_secs_f64() * parameters.time_scale);
        let &[h1, h2, ..] = process.levels();
        let context = CycleContext { cycle, period };
        // This one never fails.
        let _ = controller.execute(&context, &[h1, h2, process.time()], &mut outputs);
        process.set_voltages(outputs);
        BaselineSample {
            process_s: process.time(),
            levels: *process.levels(),
            voltages: process.voltages(),
        }
    };
    (0..=cycles).map(sample).collect()
}
