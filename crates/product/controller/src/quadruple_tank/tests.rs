use super::*;
use crate::plant::baseline::{BaselineSample, baseline};
use bumpless_base::Duration;
use proptest::prelude::*;

const PERIOD: Duration = Duration::from_millis(10);

fn stepping() -> QuadrupleTankParameters {
    QuadrupleTankParameters {
        steps: vec![
            SetPointStep {
                at: 50.0,
                levels: [13.5, 12.8],
            },
            SetPointStep {
                at: 600.0,
                levels: [13.5, 11.5],
            },
        ],
        time_scale: 20.0,
        ..QuadrupleTankParameters::default()
    }
}

fn at(samples: &[BaselineSample], process_s: f64) -> &BaselineSample {
    samples
        .iter()
        .find(|sample| sample.process_s >= process_s)
        .unwrap()
}

#[test]
fn the_loop_holds_the_operating_point() {
    let parameters = QuadrupleTankParameters {
        time_scale: 20.0,
        ..QuadrupleTankParameters::default()
    };
    let rest = tanks::steady_state(tanks::OPERATING_VOLTAGES);
    for sample in baseline(&parameters, Duration::from_secs(30), PERIOD) {
        let off = sample
            .levels
            .iter()
            .zip(rest)
            .map(|(level, rest)| (level - rest).abs());
        assert!(off.fold(0.0, f64::max) < 1e-9, "{sample:?}");
    }
}

#[test]
fn the_levels_follow_the_set_points_and_settle_without_error() {
    let samples = baseline(&stepping(), Duration::from_secs(60), PERIOD);
    let before = at(&samples, 49.0).levels[0];
    assert!((before - stepping().initial[0]).abs() < 1e-6);
    for (time, levels) in [(599.0, [13.5, 12.8]), (1_199.0, [13.5, 11.5])] {
        let sample = at(&samples, time);
        let off = (0..2)
            .map(|i| (sample.levels[i] - levels[i]).abs())
            .fold(0.0, f64::max);
        assert!(off < 0.02, "{sample:?}");
    }
    let highest = samples
        .iter()
        .map(|sample| sample.levels[0])
        .fold(0.0, f64::max);
    assert!(highest < 13.5 + 0.6, "overshoot to {highest}");
}

#[test]
fn a_set_point_beyond_reach_leaves_no_windup() {
    let parameters = QuadrupleTankParameters {
        steps: vec![
            SetPointStep {
                at: 10.0,
                levels: [500.0, 12.8],
            },
            SetPointStep {
                at: 400.0,
                levels: [12.3, 12.8],
            },
        ],
        time_scale: 20.0,
        ..QuadrupleTankParameters::default()
    };
    let samples = baseline(&parameters, Duration::from_secs(40), PERIOD);
    assert_eq!(at(&samples, 399.0).voltages[0], VOLTAGE_MAX);
    assert!(
        at(&samples, 401.0).voltages[0] < 0.1,
        "the pump stops at once"
    );
    let inside = samples
        .iter()
        .all(|s| s.voltages.iter().all(|v| (0.0..=10.0).contains(v)));
    assert!(inside);
}

#[test]
fn a_broken_sensor_leaves_its_output_and_its_loop_alone() {
    let mut controller = QuadrupleTank::new(QuadrupleTankParameters::default());
    let context = CycleContext {
        cycle: 1,
        period: PERIOD,
    };
    let mut outputs = [1.25, 1.25];
    controller
        .execute(&context, &[f64::NAN, 12.0, 0.0], &mut outputs)
        .unwrap();
    assert_eq!(outputs[0], 1.25);
    assert!(outputs[1] > 3.0 && controller.loops[0] == PidState::default());
}

fn with_derivative() -> QuadrupleTankParameters {
    let mut parameters = stepping();
    parameters.loops[0].derivative_time = 4.0;
    parameters
}

proptest! {
    #[test]
    fn a_successor_goes_on_with_the_same_outputs_as_the_original(
        before in proptest::collection::vec((0.0f64..20.0, 0.0f64..20.0), 0..60),
        then in proptest::collection::vec((0.0f64..20.0, 0.0f64..20.0), 1..60),
    ) {
        let mut original = QuadrupleTank::new(with_derivative());
        let mut outputs = [0.0; 2];
        let context = CycleContext { cycle: 0, period: PERIOD };
        for (i, (a, b)) in before.iter().enumerate() {
            original.execute(&context, &[*a, *b, i as f64], &mut outputs).unwrap();
        }
        let mut state = vec![0; original.state_size_max()];
        let len = original.save(&mut state);
        let mut successor = QuadrupleTank::new(with_derivative());
        successor.load(&state[..len]).unwrap();
        let mut theirs = outputs;
        for (i, (a, b)) in then.iter().enumerate() {
            original.execute(&context, &[*a, *b, i as f64], &mut outputs).unwrap();
            successor.execute(&context, &[*a, *b, i as f64], &mut theirs).unwrap();
            prop_assert_eq!(outputs, theirs);
        }
    }

    #[test]
    fn any_bytes_are_loaded_or_refused_without_effect(
        mut state in proptest::collection::vec(any::<u8>(), STATE_LEN - 1..STATE_LEN + 2),
        plausible: bool,
    ) {
        if plausible {
            state[0] = VERSION;
            for i in 1..=LOOPS {
                let at = (LOOP_LEN * i).min(state.len() - 1);
                state[at] &= 1;
            }
        }
        let mut controller = QuadrupleTank::new(stepping());
        let before = controller.clone();
        if controller.load(&state).is_err() {
            prop_assert_eq!(controller.loops, before.loops);
        }
        let mut outputs = [0.0; 2];
        let context = CycleContext { cycle: 0, period: PERIOD };
        controller.execute(&context, &[12.0, 12.0, 0.0], &mut outputs).unwrap();
        prop_assert!(outputs.iter().all(|output| (0.0..=VOLTAGE_MAX).contains(output)));
    }
}

#[test]
fn the_state_layout_is_the_documented_one() {
    let mut controller = QuadrupleTank::new(QuadrupleTankParameters::default());
    controller.loops[1] = PidState {
        integral: 1.0,
        derivative: -2.0,
        measured: Some(0.5),
    };
    let mut state = [0xaa; STATE_LEN];
    assert_eq!(controller.save(&mut state), 51);
    let mut expected = [0; 51];
    expected[0] = 1;
    expected[26..28].copy_from_slice(&[0x3f, 0xf0]);
    expected[34..36].copy_from_slice(&[0xc0, 0]);
    expected[42..44].copy_from_slice(&[0x3f, 0xe0]);
    expected[50] = 1;
    assert_eq!(state, expected);
}
