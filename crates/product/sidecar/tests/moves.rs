//! A state that moves between processes: the outputs are those of a program that was never moved.
//!
//! 10,000 cycles with 100 moves at random cycles, for each language and for a PLC program.

mod common;

use bumpless_sidecar::{Command, Shape, Sidecar};
use common::{
    Sequence, example, first_difference, level_in_c, level_in_python, patient, project, started,
};

const CYCLES: (u64, u64) = (10_000, 100);

/// Level and set point of the examples' tank, a little disturbed.
fn tank() -> impl FnMut(u64, &mut [f64]) {
    let mut sequence = Sequence(7);
    let mut level = 1.0;
    move |cycle, inputs| {
        level += (sequence.below(1000) as f64 - 500.0) / 20_000.0;
        inputs[0] = level;
        inputs[1] = if cycle % 3000 < 1500 { 1.0 } else { 1.5 };
    }
}

const TANK: Shape = Shape {
    inputs: 2,
    outputs: 2,
    state_max: 64,
};

fn moved(command: &Command, shape: Shape, inputs: impl FnMut(u64, &mut [f64])) {
    let make = || -> Sidecar { started(command, shape, patient()) };
    assert_eq!(first_difference(make, CYCLES, inputs), None);
}

fn a_program_in_rust_goes_on_wherever_its_state_is_moved() {
    moved(&Command::new(example("level")), TANK, tank());
}

fn a_program_in_c_goes_on_wherever_its_state_is_moved() {
    let (_place, command) = level_in_c();
    moved(&command, TANK, tank());
}

fn a_program_in_python_goes_on_wherever_its_state_is_moved() {
    let (_place, command) = level_in_python();
    moved(&command, TANK, tank());
}

fn a_plc_program_goes_on_wherever_its_state_is_moved() {
    let built = project::example();
    let shape = project::shape(built);
    let (command, period) = (Command::new(&built.output), built.period);
    let mut sequence = Sequence(11);
    let (mut level, mut phases) = (0.0_f64, 0);
    let inputs = move |cycle: u64, inputs: &mut [f64]| {
        // It fills and empties by itself, so that each step of the sequence is come to.
        phases = (phases + 1) % 300;
        level = (level + if phases < 100 { 1.0 } else { -0.5 }).clamp(0.0, 100.0);
        inputs[0] = f64::from(u8::from(cycle % 50 == 3));
        inputs[1] = level;
        inputs[2] = 20.0 + sequence.below(50) as f64;
    };
    let make = || started(&command, shape, patient());
    let moved =
        common::first_difference_with(make, CYCLES, period, inputs, &mut |outputs, seen| {
            // Heater, batches and phase.
            seen.heated |= outputs[3] > 0.0 && outputs[3] < 100.0;
            seen.batches = outputs[4];
            seen.phases[outputs[5] as usize] = true;
        });
    let (difference, seen) = moved;
    assert_eq!(difference, None);
    // The program has really run, with timer, counter, controller and steps.
    assert!(
        seen.heated && seen.batches > 5.0 && seen.phases == [true; 4],
        "{seen:?}"
    );
}

tests_and_programs!(
    a_program_in_rust_goes_on_wherever_its_state_is_moved,
    a_program_in_c_goes_on_wherever_its_state_is_moved,
    a_program_in_python_goes_on_wherever_its_state_is_moved,
    a_plc_program_goes_on_wherever_its_state_is_moved,
);
