use super::*;

fn run(levels: Levels, voltages: [f64; 2], step: f64, duration: f64) -> Levels {
    let steps = (duration / step).round() as usize;
    (0..steps).fold(levels, |levels, _| runge_kutta(&levels, voltages, step))
}

fn distance(a: &Levels, b: &Levels) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

#[test]
fn the_published_parameters_give_the_published_operating_point() {
    let rest = steady_state(OPERATING_VOLTAGES);
    // In cm. The paper rounds, and its level 3 was measured on the laboratory process.
    let published = [12.4, 12.7, 1.8, 1.4];
    assert!(distance(&rest, &published) < 0.2, "{rest:?}");
}

#[test]
fn the_operating_point_holds() {
    let rest = steady_state(OPERATING_VOLTAGES);
    let later = run(rest, OPERATING_VOLTAGES, 0.01, 1_000.0);
    assert!(distance(&rest, &later) < 1e-9);
}

#[test]
fn every_start_ends_in_the_equilibrium() {
    for start in [[0.0; 4], [20.0; 4], [0.0, 20.0, 5.0, 0.1]] {
        let end = run(start, [4.0, 2.5], 0.1, 5_000.0);
        assert!(
            distance(&end, &steady_state([4.0, 2.5])) < 1e-6,
            "from {start:?}"
        );
    }
}

#[test]
fn what_flows_in_and_not_out_is_in_the_tanks() {
    let (voltages, step) = ([4.0, 2.0], 0.001);
    let mut levels = steady_state(OPERATING_VOLTAGES);
    let volume =
        |levels: &Levels| -> f64 { levels.iter().zip(TANK_AREAS).map(|(h, a)| h * a).sum() };
    let before = volume(&levels);
    let pumped = PUMP_GAINS[0] * voltages[0] + PUMP_GAINS[1] * voltages[1];
    let drained = |levels: &Levels| {
        let hole = |i: usize| OUTLET_AREAS[i] * (2.0 * 981.0 * levels[i]).sqrt();
        hole(0) + hole(1)
    };
    let mut expected = before;
    for _ in 0..100_000 {
        let next = runge_kutta(&levels, voltages, step);
        expected += step * (pumped - (drained(&levels) + drained(&next)) / 2.0);
        levels = next;
    }
    let change = volume(&levels) - before;
    assert!(change.abs() > 1.0, "something happened");
    assert!((volume(&levels) - expected).abs() < 1e-6);
}

#[test]
fn halving_the_step_divides_the_error_by_sixteen() {
    let (start, voltages) = ([12.0, 10.0, 4.0, 3.0], [2.0, 4.0]);
    let exact = run(start, voltages, 0.01, 64.0);
    let errors = [8.0, 4.0].map(|step| distance(&run(start, voltages, step, 64.0), &exact));
    let ratio = errors[0] / errors[1];
    assert!((12.0..22.0).contains(&ratio), "{ratio}");
}

#[test]
fn an_empty_tank_stays_empty_and_finite() {
    let end = run([0.5, 0.5, 0.0, 0.0], [0.0, 0.0], 0.5, 500.0);
    assert!(
        end.iter().all(|level| (0.0..1e-3).contains(level)),
        "{end:?}"
    );
}

#[test]
fn moving_on_in_many_calls_is_the_same_as_in_one() {
    let (mut often, mut once) = (Process::at_operating_point(), Process::at_operating_point());
    for process in [&mut often, &mut once] {
        process.set_voltages([5.0, 1.0]);
    }
    (0..=700).for_each(|i| often.advance_to(f64::from(i) * 0.003_3));
    once.advance_to(700.0 * 0.003_3);
    assert_eq!(often.levels(), once.levels());
    assert_eq!(often.time(), once.time());
}

#[test]
fn voltages_are_limited_to_what_the_amplifiers_give() {
    let mut process = Process::at_operating_point();
    process.set_voltages([-3.0, 99.0]);
    assert_eq!(process.voltages(), [0.0, 10.0]);
}
