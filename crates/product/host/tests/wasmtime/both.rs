//! Both engines give the same (G-46).

use std::sync::Arc;

use bumpless_base::Duration;
use bumpless_controller::Application;
use bumpless_host::subject::Named;
use bumpless_host::wasm::{Cause, Engine, Module, Wasm};
use bumpless_host::{Limits, Subject};
use bumpless_net_linux::Clock;
use proptest::prelude::*;

use crate::cycles::level;
use crate::support::examined;
use crate::support::modules::{assembled, context, limits, saved, shape, step};
use crate::support::trial;
use crate::traps::{ADDRESSES, GROWING, HIDDEN};

fn module(engine: Engine, bytes: &[u8]) -> Arc<Module> {
    Arc::new(Module::read("both.wasm", bytes, engine).expect("a module"))
}

fn made(module: &Arc<Module>, (inputs, outputs): (usize, usize)) -> Wasm {
    let program = Wasm::new(Arc::clone(module), shape(inputs, outputs), limits());
    program.expect("a program").timed_by(None)
}

fn on(engine: Engine, bytes: &[u8], counts: (usize, usize)) -> Wasm {
    made(&module(engine, bytes), counts)
}

/// The kit makes instances of the two in turn: it compares one with the other, and moves the state from one to the other before
/// 100 of 10,000 cycles.
#[test]
fn a_state_moved_between_the_engines_gives_the_same_outputs_for_ten_thousand_cycles() {
    for (bytes, counts) in [
        (level(), (2, 1)),
        (assembled(HIDDEN), (1, 6)),
        (assembled(ADDRESSES), (1, 3)),
        (assembled(GROWING), (1, 2)),
    ] {
        let modules = Engine::ALL.map(|engine| module(engine, &bytes));
        let mut count = 0;
        let report = examined(&trial(), || {
            count += 1;
            Ok(Box::new(made(&modules[count % 2], counts)))
        });
        assert!(report.can_be_redundant(), "{report:#?}");
        assert!(report.notes.is_empty(), "states differ: {report:#?}");
        assert_eq!((report.cycles, report.moves), (10_000, 200));
        assert!(count > 100, "{count}");
    }
}

/// As `program test --engine` and `demo --engine` take it.
#[test]
fn what_runs_a_module_is_what_its_user_names() {
    let file = std::env::temp_dir().join(format!("bumpless-engine-{}.wasm", std::process::id()));
    std::fs::write(&file, level()).expect("a file");
    let open = |engine: Option<&str>| {
        let named = Named {
            engine: engine.map(str::to_owned),
            ..Named::new(&file)
        };
        Subject::open(named, &|| true)
    };
    let told = [None, Some("wasmi"), Some("wasmtime")].map(|word| {
        let mut subject = open(word).expect("a program");
        let report = examined(&trial(), || subject.make());
        assert!(report.can_be_redundant(), "{report:#?}");
        subject.engine()
    });
    let refused = open(Some("v8")).err().map(|unfit| unfit.to_string());
    std::fs::remove_file(&file).expect("it was there");
    assert_eq!(told, [None, None, Some("wasmtime")]);
    assert!(refused.is_some_and(|said| said.contains("wasmi or wasmtime")));
}

/// Each operation on floats, of whatever bits.
const FLOATS: &str = r#"(memory 1) (func (export "cycle") (local $a f64) (local $b f64) (local $c f32) (local $d f32)
  (local.set $a (call $input (i32.const 0))) (local.set $b (call $input (i32.const 1)))
  (local.set $c (f32.reinterpret_i32 (i32.wrap_i64 (i64.reinterpret_f64 (local.get $a)))))
  (local.set $d (f32.reinterpret_i32 (i32.wrap_i64 (i64.reinterpret_f64 (local.get $b)))))
  OPERATIONS)"#;

fn floats() -> Vec<u8> {
    let two = ["add", "sub", "mul", "div", "min", "max", "copysign"];
    let one = ["abs", "neg", "ceil", "floor", "trunc", "nearest", "sqrt"];
    let mut operations = String::new();
    let mut at = 0;
    let mut store = |kind: &str, value: String| {
        operations += &format!("({kind}.store (i32.const {at}) {value})\n");
        at += 8;
    };
    for operation in two {
        store(
            "f64",
            format!("(f64.{operation} (local.get $a) (local.get $b))"),
        );
        store(
            "f32",
            format!("(f32.{operation} (local.get $c) (local.get $d))"),
        );
    }
    for operation in one {
        store("f64", format!("(f64.{operation} (local.get $a))"));
        store("f32", format!("(f32.{operation} (local.get $c))"));
    }
    store("f32", "(f32.demote_f64 (local.get $a))".into());
    store("f64", "(f64.promote_f32 (local.get $c))".into());
    for kind in ["i32", "i64"] {
        for of in [
            "f64_s (local.get $a)",
            "f64_u (local.get $a)",
            "f32_s (local.get $c)",
            "f32_u (local.get $c)",
        ] {
            store(kind, format!("({kind}.trunc_sat_{of})"));
        }
    }
    for of in [
        "i32_s (i32.wrap_i64 (i64.reinterpret_f64 (local.get $a)))",
        "i64_s (i64.reinterpret_f64 (local.get $a))",
        "i64_u (i64.reinterpret_f64 (local.get $a))",
    ] {
        store("f64", format!("(f64.convert_{of})"));
        store("f32", format!("(f32.convert_{of})"));
    }
    assembled(&FLOATS.replace("OPERATIONS", &operations))
}

#[test]
fn arithmetic_on_floats_gives_the_same_bits() {
    let bytes = floats();
    let mut programs = Engine::ALL.map(|engine| on(engine, &bytes, (2, 0)));
    let special = [
        0,
        1 << 63,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0xfff8_0000_dead_beef,
        0x7ff8_0000_7f80_0001,
        0x4059_0000_ffc0_1234,
        0x3fe0_0000_7fa0_0000,
    ];
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut draw = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        match random % 4 {
            0 => special[(random >> 8) as usize % special.len()],
            1 => (f64::from((random >> 20) as i32) / 256.0).to_bits(),
            _ => random,
        }
    };
    for cycle in 1..=20_000 {
        let inputs = [draw(), draw()].map(f64::from_bits);
        let states = programs.each_mut().map(|program| {
            step(program, cycle, &inputs, &[]).expect("it does not fail");
            saved(program)
        });
        let bits = inputs.map(f64::to_bits);
        assert!(states[0] == states[1], "{bits:x?}");
    }
}

/// By what the thread has computed: what else runs on the computer makes it wait, and then it is stopped earlier by that.
#[test]
fn a_module_that_loops_for_ever_is_stopped_within_a_millisecond_of_its_limit() {
    let limit = Duration::from_millis(2);
    let limits = Limits::within(limit);
    for content in [
        r#"(func (export "cycle") (loop $ever (br $ever)))"#,
        r#"(memory 16) (func (export "cycle") (loop $ever
          (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $ever)))"#,
        r#"(func $f (return_call $f)) (func (export "cycle") (call $f))"#,
        r#"(func $fib (param i32) (result i32) (if (result i32) (i32.lt_u (local.get 0) (i32.const 2))
            (then (i32.const 1)) (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
            (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
          (func (export "cycle") (drop (call $fib (i32.const 90))))"#,
        r#"(func $short (local i32) (loop $next (local.set 0 (i32.add (local.get 0) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get 0) (i32.const 40)))))
          (func (export "cycle") (loop $ever (call $short) (br $ever)))"#,
    ] {
        let module = Module::read("loop.wasm", &assembled(content), Engine::Wasmtime).unwrap();
        let mut program = Wasm::new(Arc::new(module), shape(0, 0), limits).unwrap();
        for cycle in 1..=20 {
            program.reset();
            let before = Clock.computed();
            let fault = step(&mut program, cycle, &[], &[]).expect_err("it loops");
            assert!(matches!(fault.cause, Cause::Time(_)), "{fault}: {content}");
            let computed = Clock.computed().saturating_sub(before);
            let bound = limit + Duration::from_millis(1);
            assert!(computed < bound, "{computed:?}: {content}");
        }
    }
}

/// What does not grow moves nothing, and counts nothing, however much it was to be.
#[test]
fn growth_that_fails_costs_nothing_and_is_told_alike() {
    for grow in [
        "(memory.grow (i32.const -1))",
        "(memory.grow (i32.const 65535))",
        "(table.grow $t (ref.null func) (i32.const -1))",
        "(table.grow $b (ref.null func) (i32.const 1000000000))",
    ] {
        // A table that the module changes is a part of its state.
        let content = format!(
            r#"(memory 1 60000) (table $t 1 funcref) (table $b 1 9 funcref) (func (export "cycle") {}
               (call $output (i32.const 0) (f64.convert_i32_s {grow})))"#,
            format!("(drop {grow})").repeat(40)
        );
        let bytes = assembled(&content);
        let ran = Engine::ALL.map(|engine| {
            let mut outputs = [0.0];
            let ran = on(engine, &bytes, (0, 1)).run(&context(1), &[], &mut outputs);
            (ran.map_err(|fault| fault.cause), outputs)
        });
        assert_eq!(ran[0], (Ok(()), [-1.0]), "{grow}");
        assert_eq!(ran[0], ran[1], "{grow}");
    }
}

/// Straight code of a function without loops is long, and code after it counts all the same.
#[test]
fn long_code_without_loops_is_looked_at_in_between() {
    let (looks, time) = crate::time::ticking();
    let work = "(global.set $g (f64.add (f64.mul (global.get $g) (f64.const 0.5)) (call $input (i32.const 0))))";
    let content = format!(
        r#"(global $g (mut f64) (f64.const 0)) (func (export "cycle") {} (call $output (i32.const 0) (global.get $g)))"#,
        work.repeat(4_000)
    );
    let bytes = assembled(&content);
    let mut compiled = on(Engine::Wasmtime, &bytes, (1, 1)).timed_by(Some(time));
    let mut interpreted = on(Engine::Wasmi, &bytes, (1, 1));
    let outputs = [&mut compiled, &mut interpreted].map(|it| step(it, 1, &[1.5], &[0.0]).unwrap());
    assert_eq!(outputs[0], outputs[1]);
    let looks = looks.load(std::sync::atomic::Ordering::Relaxed);
    assert!((2..10).contains(&looks), "{looks}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Modules that have anything at all in them are run alike, or refused alike.
    #[test]
    fn any_bytes_as_a_module_do_the_same(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let limits = Limits { fuel: Some(10_000_000), memory: 1 << 20, ..limits() };
        let mut bytes = assembled(HIDDEN);
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let [one, other] = Engine::ALL.map(|engine| {
            let module = Module::read("any", &bytes, engine).map_err(|fault| fault.to_string())?;
            let program = Wasm::new(Arc::new(module), shape(1, 6), limits);
            program.map(|it| it.timed_by(None)).map_err(|_| String::new())
        });
        let (mut one, mut other) = match (one, other) {
            (Ok(one), Ok(other)) => (one, other),
            (Err(one), Err(other)) => { prop_assert_eq!(one, other); return Ok(()) }
            (one, other) => panic!("{:?} {:?}", one.err(), other.err()),
        };
        for cycle in 1..=20 {
            let ran = [&mut one, &mut other].map(|program| {
                let mut outputs = [0.0; 6];
                let ran = program.run(&context(cycle), &[0.25], &mut outputs);
                (ran.map_err(|fault| fault.cause), outputs.map(f64::to_bits))
            });
            // Each counts steps in its own way.
            if ran.iter().any(|(ran, _)| matches!(ran, Err(Cause::Steps { .. }))) { break }
            prop_assert_eq!(&ran[0], &ran[1]);
            if ran[0].0.is_err() { break }
            prop_assert!(saved(&one) == saved(&other));
        }
    }
}
