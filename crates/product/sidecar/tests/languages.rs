//! Programs in C, Python and Rust behave alike, and their errors help.

mod common;

use std::process::Command as Tool;

use bumpless_controller::Application;
use bumpless_sidecar::{Cause, Command, Shape, Sidecar, StartCause};
use common::languages::{ONE, compiled, ran, scripted};
use common::{context, fault, patient, python, run_when_ready, saved, started, workspace};

const FAILING_C: &str = r#"
#include <bumpless.h>
static int step(const struct bumpless_cycle *cycle, const double *inputs, double *outputs, void *state)
{
    *(double *)state += inputs[0];
    outputs[0] = *(double *)state + (double)cycle->time_ns;
    if (inputs[0] < 0) {
        bumpless_say("the pump does not answer");
        return 1;
    }
    return 0;
}
static void start(void *state) { *(double *)state = 5.0; }
int main(void)
{
    struct bumpless_program program = {0};
    program.inputs = program.outputs = 1;
    program.state_size = sizeof(double);
    program.start = start;
    program.step = step;
    return bumpless_run(&program);
}
"#;

const FAILING_PYTHON: &str = r#"
import bumpless

def step(cycle, inputs, outputs, state):
    if inputs[0] == 2.0:
        return [1.0, 2.0]
    if inputs[0] < 0:
        raise RuntimeError("the pump does not answer")
    state.cast("d")[0] += inputs[0]
    return [state.cast("d")[0] + cycle.number * cycle.period_ns]

def start(state):
    state.cast("d")[0] = 5.0

bumpless.run(step, inputs=1, outputs=1, state=8, start=start)
"#;

/// `numpy` itself is not needed where nothing but what is asked of it is looked at.
const LOOKING_PYTHON: &str = r#"
import array
import ctypes
import sys
import types

numpy = types.ModuleType("numpy")
numpy.uint8 = "B"
numpy.frombuffer = lambda values, dtype: memoryview(values).cast("B").cast(dtype)
numpy.zeros = lambda count, dtype="d": array.array(dtype, [0] * count)
sys.modules["numpy"] = numpy

import bumpless

class State(ctypes.Structure):
    _fields_ = [("cycles", ctypes.c_uint8)]

def step(cycle, inputs, outputs, state):
    given = [bumpless.numpy_view(it) for it in (inputs, outputs, state)]
    given[2][0] += 1
    if outputs:
        given[1][0] = 10 * len(given[0]) + given[2][0]

bumpless.run(step, inputs=INPUTS, outputs=OUTPUTS, state=State)
"#;

fn values_and_state_in_python_can_be_looked_at_also_where_there_are_none() {
    for (inputs, outputs) in [(0, 1), (2, 1), (1, 0), (0, 0)] {
        let place = tempfile::tempdir().expect("a folder");
        let text = LOOKING_PYTHON
            .replace("INPUTS", &inputs.to_string())
            .replace("OUTPUTS", &outputs.to_string());
        let shape = Shape {
            inputs,
            outputs,
            ..ONE
        };
        let mut sidecar = started(&scripted(place.path(), &text), shape, patient());
        let mut given = vec![0.0; outputs];
        for cycle in 1..=3 {
            let ran = sidecar.run_cycle(&context(cycle), &vec![0.5; inputs], &mut given);
            assert_eq!(ran, Ok(()), "{inputs} inputs, {outputs} outputs");
        }
        assert_eq!(given, vec![10.0 * inputs as f64 + 3.0; outputs]);
        assert_eq!(saved(&sidecar)[8..], [3]);
    }
}

fn python_knows_the_call_of_each_processor_and_width() {
    let code = format!(
        "import sys; sys.path.insert(0, {:?}); import bumpless\n\
         print(*(bumpless._futex_call(*it) for it in [('x86_64', 8), ('aarch64', 8), ('riscv64', 8), ('armv7l', 4), \
         ('aarch64', 4), ('x86_64', 4), ('i686', 4), ('riscv32', 4), ('armv7l', 8)]))",
        workspace("crates/product/program/python")
            .display()
            .to_string()
    );
    let output = ran(Tool::new(python()).args(["-ISBc", &code]));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "202 98 98 240 240 240 240 None None");
}

/// Runs well, is told to fail, and goes on from the state before.
fn fails_in_its_words(command: &Command, order: f64, words: &str) {
    let (mut sidecar, mut outputs) = (started(command, ONE, patient()), [0.0]);
    run_when_ready(&mut sidecar, 1, &[1.5], &mut outputs);
    let time = common::PERIOD.as_nanos() as f64;
    assert_eq!(outputs, [6.5 + time]);
    let before = saved(&sidecar);
    let cause = fault(&mut sidecar, 2, &[order]).cause;
    let Cause::Failed(said) = &cause else {
        panic!("{cause:?}");
    };
    assert!(said.contains(words), "{said}");
    assert_eq!(saved(&sidecar), before);
    run_when_ready(&mut sidecar, 2, &[1.0], &mut outputs);
    assert_eq!(outputs, [7.5 + 2.0 * time]);
}

fn a_failure_in_c_is_told_in_its_words() {
    let place = tempfile::tempdir().expect("a folder");
    fails_in_its_words(
        &compiled(place.path(), FAILING_C),
        -1.0,
        "the pump does not answer",
    );
}

fn an_exception_in_python_is_told_with_its_line() {
    let place = tempfile::tempdir().expect("a folder");
    let command = scripted(place.path(), FAILING_PYTHON);
    fails_in_its_words(
        &command,
        -1.0,
        "RuntimeError: the pump does not answer (program.py, line 9)",
    );
}

fn trap_wrong_answer_of_another_size_in_python_is_told() {
    let place = tempfile::tempdir().expect("a folder");
    let command = scripted(place.path(), FAILING_PYTHON);
    fails_in_its_words(&command, 2.0, "returned 2 outputs instead of 1");
}

fn what_does_not_fit_is_refused_in_each_language() {
    let place = tempfile::tempdir().expect("a folder");
    for command in [
        compiled(place.path(), FAILING_C),
        scripted(place.path(), FAILING_PYTHON),
    ] {
        let small = Shape {
            state_max: 4,
            ..ONE
        };
        let refused = Sidecar::start(&command, small, patient())
            .err()
            .expect("a fault");
        let said = matches!(&refused.cause, StartCause::Refused(why) if why.contains("8 bytes"));
        assert!(said, "{refused}");
        let more = Shape { inputs: 2, ..ONE };
        let refused = Sidecar::start(&command, more, patient())
            .err()
            .expect("a fault");
        assert!(
            matches!(refused.cause, StartCause::Count { what: "inputs", .. }),
            "{refused}"
        );
    }
}

fn two_scripts_do_not_take_each_others_states() {
    let (one, other) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let first = started(&scripted(one.path(), FAILING_PYTHON), ONE, patient());
    let changed = FAILING_PYTHON.replace("5.0", "6.0");
    let mut second = started(&scripted(other.path(), &changed), ONE, patient());
    assert!(second.load(&saved(&first)).is_err());
    let mut same = started(&scripted(one.path(), FAILING_PYTHON), ONE, patient());
    assert_eq!(same.load(&saved(&first)), Ok(()));
}

fn without_a_host_a_program_says_what_it_is() {
    let place = tempfile::tempdir().expect("a folder");
    let (c, python) = (
        compiled(place.path(), FAILING_C),
        scripted(place.path(), FAILING_PYTHON),
    );
    let rust = common::example("level");
    for command in [c, python, Command::new(rust)] {
        let output = Tool::new(&command.program)
            .args(&command.arguments)
            .output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains("bumpless program test"), "{said}");
    }
}

fn programs_see_the_same_time_and_outputs_in_each_language() {
    let mut outputs = [0.0, 0.0];
    let shape = Shape {
        inputs: 2,
        outputs: 2,
        state_max: 64,
    };
    let place = tempfile::tempdir().expect("a folder");
    let mut all = Vec::new();
    for command in [
        common::level_in_c(),
        common::level_in_python(),
        (place, Command::new(common::example("level"))),
    ] {
        let mut sidecar = started(&command.1, shape, patient());
        let mut given = Vec::new();
        for cycle in 1..=200 {
            let inputs = [1.0 + cycle as f64 / 100.0, 1.5];
            sidecar
                .run_cycle(&context(cycle), &inputs, &mut outputs)
                .expect("a cycle");
            given.push(outputs.map(f64::to_bits));
        }
        all.push(given);
    }
    assert!(all[0] == all[1] && all[1] == all[2]);
}

fn each_example_killed_in_mid_cycle_goes_on_as_if_nothing_had_been() {
    let shape = Shape {
        inputs: 2,
        outputs: 2,
        state_max: 64,
    };
    let place = tempfile::tempdir().expect("a folder");
    for command in [
        common::level_in_c(),
        common::level_in_python(),
        (place, Command::new(common::example("level"))),
    ] {
        let make = || started(&command.1, shape, patient());
        common::survives_kills(make, (200, 10), common::PERIOD, |cycle, inputs| {
            inputs.copy_from_slice(&[1.0 + (cycle % 50) as f64 / 100.0, 1.2]);
        });
    }
}

tests_and_programs!(
    a_failure_in_c_is_told_in_its_words,
    an_exception_in_python_is_told_with_its_line,
    trap_wrong_answer_of_another_size_in_python_is_told,
    what_does_not_fit_is_refused_in_each_language,
    two_scripts_do_not_take_each_others_states,
    without_a_host_a_program_says_what_it_is,
    programs_see_the_same_time_and_outputs_in_each_language,
    values_and_state_in_python_can_be_looked_at_also_where_there_are_none,
    python_knows_the_call_of_each_processor_and_width,
    each_example_killed_in_mid_cycle_goes_on_as_if_nothing_had_been,
);
