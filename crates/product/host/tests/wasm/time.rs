//! How long a cycle may take, and who looks at the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cycles::level;
use crate::support::modules::{assembled, limits, program, shape, started, step};
use bumpless_base::{Duration, Instant};
use bumpless_controller::{ProgramFaultKind, TimeSource, Unanswered};
use bumpless_host::Limits;
use bumpless_host::wasm::Cause;

/// A clock on which each look takes a tenth of a millisecond.
pub fn ticking() -> (Arc<AtomicU64>, Arc<dyn bumpless_controller::TimeSource>) {
    let looks = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&looks);
    let time = move || Instant::from_nanos(100_000 * counted.fetch_add(1, Ordering::Relaxed));
    (looks, Arc::new(time))
}

#[test]
fn an_endless_loop_ends_at_the_first_look_at_the_clock_after_its_limit() {
    let bytes = assembled(r#"(func (export "cycle") (loop $ever (br $ever)))"#);
    let limits = Limits::within(Duration::from_millis(2));
    let (looks, time) = ticking();
    let program = started(&bytes, shape(0, 0), limits).unwrap();
    let mut program = program.timed_by(Some(time));
    let fault = step(&mut program, 1, &[], &[]).unwrap_err();
    let limit = Duration::from_millis(2);
    let unanswered = Unanswered {
        limit,
        elapsed: limit,
        computed: None,
    };
    assert_eq!(fault.cause, Cause::Time(unanswered));
    assert_eq!(fault.cause.kind(), ProgramFaultKind::Overrun);
    // It began at look 0, and at look 20 the limit was reached: no stretch was run after that.
    assert_eq!(looks.load(Ordering::Relaxed), 21);
    // A quick program is looked at once.
    let (looks, time) = ticking();
    let program = started(&level(), shape(2, 1), limits).unwrap();
    let mut program = program.timed_by(Some(time));
    step(&mut program, 1, &[0.0; 2], &[0.0]).unwrap();
    assert_eq!(looks.load(Ordering::Relaxed), 1);
}

/// A clock on which each look takes a tenth of a millisecond, in half of which the thread computes.
struct Halved(AtomicU64);

impl TimeSource for Halved {
    fn now(&self) -> Instant {
        Instant::from_nanos(100_000 * self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn computed(&self) -> Option<Duration> {
        Some(Duration::from_nanos(
            50_000 * self.0.load(Ordering::Relaxed),
        ))
    }
}

#[test]
fn a_loop_that_had_the_processor_half_of_the_time_was_starved() {
    let bytes = assembled(r#"(func (export "cycle") (loop $ever (br $ever)))"#);
    let limits = Limits::within(Duration::from_millis(2));
    let program = started(&bytes, shape(0, 0), limits).unwrap();
    let mut program = program.timed_by(Some(Arc::new(Halved(AtomicU64::new(0)))));
    let fault = step(&mut program, 1, &[], &[]).unwrap_err();
    assert_eq!(fault.cause.kind(), ProgramFaultKind::Starved);
    // Steps are the same on every computer, and blame the program alone.
    let limits = Limits {
        fuel: Some(1_000),
        ..limits
    };
    let mut program = started(&bytes, shape(0, 0), limits).unwrap();
    let fault = step(&mut program, 1, &[], &[]).unwrap_err();
    assert_eq!(fault.cause.kind(), ProgramFaultKind::Overrun);
}

#[test]
fn a_program_longer_than_a_stretch_goes_on_where_it_was() {
    let content = r#"(memory 2) (func (export "cycle") (local $n i32) (local $sum f64)
      (memory.fill (i32.const 0) (i32.const 1) (i32.const 131072))
      (loop $next
        (local.set $sum (f64.add (local.get $sum) (f64.mul (call $input (i32.const 0)) (f64.const 0.5))))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $n) (i32.const 100000))))
      (call $output (i32.const 0) (local.get $sum)))"#;
    let mut program = program(content, 1, 1);
    let outputs = step(&mut program, 1, &[3.0], &[0.0]).unwrap();
    assert_eq!(outputs, [150_000.0]);
    let steps = program.steps();
    assert!(steps > 500_000, "{steps}");
    // The same number of steps each time, and to the last one enough.
    step(&mut program, 2, &[4.0], &[0.0]).unwrap();
    assert_eq!(program.steps(), steps);
    for (fuel, enough) in [(steps, true), (steps - 1, false)] {
        let limits = Limits {
            fuel: Some(fuel),
            ..limits()
        };
        let mut program = started(&assembled(content), shape(1, 1), limits).unwrap();
        let ran = step(&mut program, 1, &[3.0], &[0.0]);
        match ran {
            Ok(_) => assert!(enough),
            Err(fault) => assert_eq!((fault.cause, enough), (Cause::Steps { limit: fuel }, false)),
        }
    }
}

#[test]
fn the_steps_of_an_instruction_that_moves_memory_are_counted_by_its_bytes() {
    let content = r#"(memory 200) (func (export "cycle") (loop $ever
      (memory.fill (i32.const 0) (i32.const 1) (i32.const 13107200)) (br $ever)))"#;
    let limits = Limits {
        fuel: Some(1_000_000),
        ..limits()
    };
    let mut program = started(&assembled(content), shape(0, 0), limits).unwrap();
    let fault = step(&mut program, 1, &[], &[]).unwrap_err();
    assert_eq!(fault.cause, Cause::Steps { limit: 1_000_000 });
}
