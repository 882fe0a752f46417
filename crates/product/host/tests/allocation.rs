//! A cycle takes no memory, not one that runs in several stretches either (G-29).

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use bumpless_controller::Application;
use bumpless_host::wasm::{Engine, Module, Wasm};
use support::modules::{assembled, context, limits, shape};

/// What the others run their modules with.
pub const ENGINE: Engine = Engine::Wasmi;

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness allocates beside it.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator; counting has no effect on it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has nowhere to count, and runs no cycle.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's, too.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_cycle_takes_no_memory() {
    for engine in Engine::ALL {
        if engine.is_built_in() {
            a_cycle_takes_none_with(engine);
        }
    }
}

fn a_cycle_takes_none_with(engine: Engine) {
    let content = r#"
      (memory 2) (global $g (mut f64) (f64.const 0)) (global $r (mut funcref) (ref.null func))
      (table $t 4 funcref) (elem declare func $f) (func $f)
      (func (export "cycle") (local $n i32)
        (call $inputs (i32.const 0) (i32.const 2))
        (global.set $g (f64.add (global.get $g) (call $input (i32.const 1))))
        (table.set $t (i32.const 1) (ref.func $f)) (global.set $r (ref.func $f))
        (f64.store (i32.and (i32.wrap_i64 (i64.mul (call $cycle_number) (i64.const 264))) (i32.const 0x1fff8)) (global.get $g))
        (loop $next (local.set $n (i32.add (local.get $n) (i32.const 1)))
          (br_if $next (i32.lt_u (local.get $n) (i32.const 30000))))
        (call $log (i32.const 0) (i32.const 16))
        (call $output (i32.const 0) (global.get $g)))
    "#;
    let module = Module::read("test.wasm", &assembled(content), engine).unwrap();
    let program = Wasm::new(Arc::new(module), shape(2, 1), limits()).unwrap();
    let mut program = program.timed_by(Some(Arc::new(|| bumpless_base::Instant::ZERO)));
    let mut state = vec![0; program.state_size_max()];
    let mut outputs = [0.0];
    let mut cycle = |cycle| {
        program
            .run(&context(cycle), &[1.0, 2.0], &mut outputs)
            .unwrap();
        program.save(&mut state)
    };
    cycle(1);
    let before = ALLOCATIONS.get();
    for number in 2..=30 {
        assert!(cycle(number) > 256);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0, "{engine}");
}
