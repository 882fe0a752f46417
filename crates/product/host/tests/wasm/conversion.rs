//! The next version of a module, which makes its state of the one before.

use std::sync::atomic::Ordering;

use crate::support::modules::{IMPORTS, context, limits, program, saved, shape, started, step};
use crate::time::ticking;
use bumpless_controller::Application;
use bumpless_controller::successor::Successor;
use bumpless_host::wasm::{ByModule, Cause, Misuse, Wasm};

/// A version whose sum is a global and whose count lies in memory, and shows both by name.
const OLD: &str = r#"
  (memory 1)
  (global $sum (export "sum") (mut f64) (f64.const 0))
  (global (export "count") i32 (i32.const 4096))
  (func (export "cycle")
    (global.set $sum (f64.add (global.get $sum) (call $input (i32.const 0))))
    (i64.store (i32.const 4096) (i64.add (i64.load (i32.const 4096)) (i64.const 1)))
    (call $output (i32.const 0) (f64.add (global.get $sum) (f64.convert_i64_u (i64.load (i32.const 4096))))))
"#;

/// The next version, which has both elsewhere; `convert` is its function.
fn next_version(convert: &str) -> Vec<u8> {
    let text = format!(
        r#"(module {IMPORTS}
          (import "bumpless" "old_has" (func $old_has (param i32 i32) (result i32)))
          (import "bumpless" "old_global" (func $old_global (param i32 i32) (result i64)))
          (import "bumpless" "old_memory" (func $old_memory (param i32 i32 i32)))
          (memory 1) (data (i32.const 16) "sumcountnone")
          (global $count (mut i64) (i64.const 0))
          (func (export "cycle")
            (f64.store (i32.const 64) (f64.add (f64.load (i32.const 64)) (call $input (i32.const 0))))
            (global.set $count (i64.add (global.get $count) (i64.const 1)))
            (call $output (i32.const 0) (f64.add (f64.load (i32.const 64)) (f64.convert_i64_u (global.get $count)))))
          (func (export "bumpless_convert") (result i32) {convert}))"#
    );
    wat::parse_str(text).unwrap()
}

const CONVERTS: &str = r#"
  (if (i32.eqz (call $old_has (i32.const 16) (i32.const 3))) (then (return (i32.const 1))))
  (if (call $old_has (i32.const 24) (i32.const 4)) (then (return (i32.const 2))))
  (i64.store (i32.const 64) (call $old_global (i32.const 16) (i32.const 3)))
  (call $old_memory (i32.wrap_i64 (call $old_global (i32.const 19) (i32.const 5))) (i32.const 128) (i32.const 8))
  (global.set $count (i64.load (i32.const 128)))
  (i64.store (i32.const 128) (i64.const 0))
  (i32.const 0)
"#;

/// A state of the old version after some cycles, its outputs, and who takes over from it.
fn before(convert: &str) -> (Wasm, Vec<f64>, Successor<Wasm, ByModule>) {
    let mut old = program(OLD, 1, 1);
    let mut last = vec![0.0];
    for cycle in 1..=20 {
        last = step(&mut old, cycle, &[cycle as f64], &last).unwrap();
    }
    let next = started(&next_version(convert), shape(1, 1), limits()).unwrap();
    assert!(next.converts());
    let next = Successor::new(next, ByModule::new(program(OLD, 1, 1)));
    (old, last, next)
}

fn executed(next: &mut Successor<Wasm, ByModule>, cycle: u64) -> f64 {
    let mut outputs = [0.0];
    next.execute(&context(cycle), &[cycle as f64], &mut outputs)
        .unwrap_or_else(|fault| panic!("{fault}"));
    outputs[0]
}

#[test]
fn the_next_version_of_a_module_makes_its_state_of_what_the_one_before_shows() {
    let (mut old, mut last, mut next) = before(CONVERTS);
    assert!(next.state_owner().is_some() && next.state_owner() != old.state_owner());
    next.load(&saved(&old))
        .expect("a state of the version before");
    for cycle in 21..=40 {
        last = step(&mut old, cycle, &[cycle as f64], &last).unwrap();
        assert_eq!(executed(&mut next, cycle), last[0], "cycle {cycle}");
    }
    // Its own state is taken by another instance, as ever.
    let mut state = vec![0; next.state_size_max()];
    let len = next.save(&mut state);
    let mut other = started(&next_version(CONVERTS), shape(1, 1), limits()).unwrap();
    other.load(&state[..len]).expect("a state of this version");
    assert_eq!(
        step(&mut other, 41, &[41.0], &last).unwrap()[0],
        executed(&mut next, 41)
    );
}

#[test]
fn whatever_a_modules_conversion_does_it_ends_and_leaves_the_state_as_it_was() {
    let spoilt = "(i64.store (i32.const 64) (i64.const 5))";
    for (convert, why) in [
        ("(i32.const 7)", "by a number other than 0"),
        ("unreachable", "stopped by itself"),
        (
            "(loop (br 0)) (i32.const 0)",
            "was not ready within execute_limit_ms",
        ),
        (
            "(drop (call $old_global (i32.const 24) (i32.const 4))) (i32.const 0)",
            "a name that is not there",
        ),
        (
            "(call $old_memory (i32.const 65536) (i32.const 0) (i32.const 1)) (i32.const 0)",
            "a name that is not there",
        ),
    ] {
        let (old, _, mut next) = before(&format!("{spoilt} {convert}"));
        assert_eq!(executed(&mut next, 1), 2.0);
        let error = next.load(&saved(&old)).expect_err("it fails").to_string();
        assert!(error.contains(why), "{convert}: {error}");
        assert_eq!(
            executed(&mut next, 2),
            5.0,
            "{convert}: it goes on from its own state"
        );
    }
}

/// What the host does for it counts, too, with and without a loop around it.
#[test]
fn a_conversion_that_has_much_copied_or_looked_for_is_stopped_in_time() {
    let copy = "(call $old_memory (i32.const 0) (i32.const 0) (i32.const 65536))";
    // Beyond the names that are there.
    let look = "(drop (call $old_has (i32.const 0) (i32.const 65536)))";
    for work in [copy, look] {
        let loops = format!("(loop {work} (br 0)) (i32.const 0)");
        let straight = format!("{} (i32.const 0)", work.repeat(1000));
        for convert in [loops, straight] {
            let (looks, time) = ticking();
            let next = started(&next_version(&convert), shape(1, 1), limits()).unwrap();
            let next = next.timed_by(Some(time));
            let mut next = Successor::new(next, ByModule::new(program(OLD, 1, 1)));
            let (old, ..) = before(CONVERTS);
            let refused = next.load(&saved(&old)).expect_err("it is stopped");
            let why = "was not ready within execute_limit_ms";
            assert!(refused.to_string().contains(why), "{refused}");
            // As an endless loop: none was left out.
            assert_eq!(looks.load(Ordering::Relaxed), 101, "{work}");
        }
    }
}

/// Having much copied is no fault: it goes on where it was, with what the host gave.
#[test]
fn a_conversion_goes_on_after_a_look_at_the_clock_as_if_nothing_had_been() {
    let work = "(call $old_memory (i32.const 0) (i32.const 4096) (i32.const 61440))
        (if (call $old_has (i32.const 4096) (i32.const 61440)) (then (return (i32.const 3))))";
    let (mut old, mut last, _) = before(CONVERTS);
    let next = started(
        &next_version(&(work.repeat(5) + CONVERTS)),
        shape(1, 1),
        limits(),
    )
    .unwrap();
    let (looks, time) = ticking();
    let next = next.timed_by(Some(time));
    let mut next = Successor::new(next, ByModule::new(program(OLD, 1, 1)));
    next.load(&saved(&old)).expect("it is converted");
    assert!(looks.load(Ordering::Relaxed) > 3);
    last = step(&mut old, 21, &[21.0], &last).unwrap();
    assert_eq!(executed(&mut next, 21), last[0]);
}

#[test]
fn the_state_of_the_version_before_is_there_in_the_conversion_only() {
    let text = r#"(module (import "bumpless" "old_has" (func $old_has (param i32 i32) (result i32)))
      (memory 1) (func (export "cycle") (drop (call $old_has (i32.const 0) (i32.const 0)))))"#;
    let mut program = started(&wat::parse_str(text).unwrap(), shape(0, 0), limits()).unwrap();
    let fault = program.run(&context(1), &[], &mut []).unwrap_err();
    let misuse = Misuse::NoOld { import: "old_has" };
    assert_eq!(fault.cause, Cause::Misuse(misuse));
}
