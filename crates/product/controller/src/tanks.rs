//! The nonlinear quadruple-tank process and its integration.
//!
//! Mass balances and Bernoulli's law (Johansson 2000, equation 1), with the published parameters
//! of the laboratory process in its minimum-phase setting P-. Levels in cm, voltages in V, time
//! in s of process time.

/// Levels of the four tanks in cm.
pub type Levels = [f64; 4];

/// Cross-sections of the tanks in cm².
pub const TANK_AREAS: [f64; 4] = [28.0, 32.0, 28.0, 32.0];
/// Cross-sections of the outlet holes in cm².
pub const OUTLET_AREAS: [f64; 4] = [0.071, 0.057, 0.071, 0.057];
/// Level sensors, in V per cm.
pub const SENSOR_GAIN: f64 = 0.50;
/// Acceleration of gravity in cm/s².
pub const GRAVITY: f64 = 981.0;
/// Flow per pump voltage in cm³/(V s).
pub const PUMP_GAINS: [f64; 2] = [3.33, 3.35];
/// Share of each pump's flow that goes to the lower tank.
pub const VALVES: [f64; 2] = [0.70, 0.60];
/// Pump voltages at the operating point in V.
pub const OPERATING_VOLTAGES: [f64; 2] = [3.00, 3.00];
/// Highest pump voltage in V; the lowest is 0.
pub const VOLTAGE_MAX: f64 = 10.0;

/// Flows from the pumps into the four tanks, in cm³/s.
fn inflows(voltages: [f64; 2]) -> [f64; 4] {
    let [pump_1, pump_2] = [PUMP_GAINS[0] * voltages[0], PUMP_GAINS[1] * voltages[1]];
    [
        VALVES[0] * pump_1,
        VALVES[1] * pump_2,
        (1.0 - VALVES[1]) * pump_2,
        (1.0 - VALVES[0]) * pump_1,
    ]
}

/// Flows through the outlet holes, in cm³/s. An empty tank gives none.
fn outflows(levels: &Levels) -> [f64; 4] {
    core::array::from_fn(|i| OUTLET_AREAS[i] * (2.0 * GRAVITY * levels[i].max(0.0)).sqrt())
}

/// Rates of change of the levels, in cm/s.
pub fn derivative(levels: &Levels, voltages: [f64; 2]) -> [f64; 4] {
    let (from_pumps, out) = (inflows(voltages), outflows(levels));
    // Tank 3 drains into tank 1, tank 4 into tank 2.
    let from_above = [out[2], out[3], 0.0, 0.0];
    core::array::from_fn(|i| (from_pumps[i] + from_above[i] - out[i]) / TANK_AREAS[i])
}

/// The levels `step` seconds later with constant voltages: one step of the classical
/// fourth-order Runge-Kutta method.
pub fn runge_kutta(levels: &Levels, voltages: [f64; 2], step: f64) -> Levels {
    let moved = |slope: &[f64; 4], by: f64| core::array::from_fn(|i| levels[i] + by * slope[i]);
    let k1 = derivative(levels, voltages);
    let k2 = derivative(&moved(&k1, step / 2.0), voltages);
    let k3 = derivative(&moved(&k2, step / 2.0), voltages);
    let k4 = derivative(&moved(&k3, step), voltages);
    core::array::from_fn(|i| {
        let slope = (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]) / 6.0;
        (levels[i] + step * slope).max(0.0)
    })
}

/// The levels at which constant voltages hold the process.
pub fn steady_state(voltages: [f64; 2]) -> Levels {
    let from_pumps = inflows(voltages);
    let level = |i: usize, flow: f64| (flow / OUTLET_AREAS[i]).powi(2) / (2.0 * GRAVITY);
    [
        level(0, from_pumps[0] + from_pumps[2]),
        level(1, from_pumps[1] + from_pumps[3]),
        level(2, from_pumps[2]),
        level(3, from_pumps[3]),
    ]
}

/// The process with its own time, moved on in fixed steps.
#[derive(Clone, Debug)]
pub struct Process {
    levels: Levels,
    voltages: [f64; 2],
    steps: u64,
}

impl Process {
    /// Steps per second of process time: one is 1 ms.
    pub const STEPS_PER_SECOND: f64 = 1_000.0;

    /// The process at rest at its operating point, at time zero.
    pub fn at_operating_point() -> Self {
        Self {
            levels: steady_state(OPERATING_VOLTAGES),
            voltages: OPERATING_VOLTAGES,
            steps: 0,
        }
    }

    /// Levels in cm.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Pump voltages in V.
    pub fn voltages(&self) -> [f64; 2] {
        self.voltages
    }

    /// Process time in s.
    pub fn time(&self) -> f64 {
        self.steps as f64 / Self::STEPS_PER_SECOND
    }

    /// Sets the pump voltages, limited to what the amplifiers give (0 to 10 V).
    pub fn set_voltages(&mut self, voltages: [f64; 2]) {
        self.voltages = voltages.map(|v| v.clamp(0.0, VOLTAGE_MAX));
    }

    /// Moves on to the last step not after `time` seconds of process time.
    pub fn advance_to(&mut self, time: f64) {
        let target = (time * Self::STEPS_PER_SECOND) as u64;
        while self.steps < target {
            self.levels = runge_kutta(&self.levels, self.voltages, 1.0 / Self::STEPS_PER_SECOND);
            self.steps += 1;
        }
    }
}

#[cfg(test)]
mod tests;
