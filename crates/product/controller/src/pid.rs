//! One discrete PID loop with limits and anti-windup.
//!
//! Standard form `u = u0 + K (e + 1/Ti ∫e dt - Td dy/dt)`: the derivative acts on the filtered
//! measurement, so that a set-point step gives no kick, and the integral is corrected by back
//! calculation while the output is at a limit (Åström and Hägglund, *Advanced PID Control*, 2006,
//! chapter 3).

/// Parameters of one loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PidParameters {
    /// Gain K, output units per measurement unit.
    pub gain: f64,
    /// Integral time Ti in seconds; infinite for no integral action.
    pub integral_time: f64,
    /// Derivative time Td in seconds; zero for none.
    pub derivative_time: f64,
    /// Filter factor N: the derivative's time constant is Td / N.
    pub derivative_filter: f64,
    /// Output at the operating point, u0.
    pub bias: f64,
    /// Lowest and highest output.
    pub limits: (f64, f64),
}

/// What a loop remembers between cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PidState {
    /// The integral part of the output, without the bias.
    pub integral: f64,
    /// The derivative part of the output.
    pub derivative: f64,
    /// The measurement of the cycle before; `None` before the first.
    pub measured: Option<f64>,
}

impl PidState {
    /// The output for this cycle, `step` seconds after the one before.
    pub fn update(&mut self, p: &PidParameters, set_point: f64, measured: f64, step: f64) -> f64 {
        let error = set_point - measured;
        let change = measured - self.measured.unwrap_or(measured);
        let filter = p.derivative_time / p.derivative_filter.max(f64::MIN_POSITIVE);
        self.derivative = if p.derivative_time > 0.0 {
            (filter * self.derivative - p.gain * p.derivative_time * change) / (filter + step)
        } else {
            0.0
        };
        let wanted = p.bias + p.gain * error + self.integral + self.derivative;
        let output = wanted.clamp(p.limits.0, p.limits.1);
        // Tracking with the integral time itself: quick enough to leave a limit without delay,
        // slow enough that noise at the limit does not reset the integral.
        self.integral += step / p.integral_time * (p.gain * error + output - wanted);
        self.measured = Some(measured);
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PI: PidParameters = PidParameters {
        gain: 2.0,
        integral_time: 10.0,
        derivative_time: 0.0,
        derivative_filter: 10.0,
        bias: 1.0,
        limits: (0.0, 10.0),
    };

    #[test]
    fn a_constant_error_adds_its_proportional_part_once_per_integral_time() {
        let mut state = PidState::default();
        let first = state.update(&PI, 1.0, 0.0, 0.1);
        let later = (0..100).map(|_| state.update(&PI, 1.0, 0.0, 0.1)).last();
        assert!((first - 3.0).abs() < 1e-12);
        assert!((later.unwrap() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn after_a_long_stay_at_the_limit_a_reversed_error_leaves_it_at_once() {
        let mut state = PidState::default();
        (0..100_000).for_each(|_| assert!(state.update(&PI, 100.0, 0.0, 0.1) <= 10.0));
        assert!(
            state.update(&PI, 0.0, 1.0, 0.1) < 10.0,
            "it leaves the limit at once"
        );
    }

    #[test]
    fn the_derivative_opposes_the_measurement_and_ignores_the_set_point() {
        let pd = PidParameters {
            derivative_time: 1.0,
            integral_time: f64::INFINITY,
            ..PI
        };
        let mut state = PidState::default();
        state.update(&pd, 0.0, 0.0, 0.1);
        let kick = state.update(&pd, 1.0, 0.0, 0.1);
        assert!((kick - 3.0).abs() < 1e-12, "{kick}");
        state.update(&pd, 1.0, 0.1, 0.1);
        assert!(state.derivative < 0.0);
    }
}
