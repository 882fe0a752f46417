//! What ends a cycle, and what is said of it.

use crate::support::modules::{program, step};
use bumpless_controller::Application;
use bumpless_host::wasm::{Cause, Misuse, TrapKind};

#[test]
fn a_wrong_use_of_the_interface_is_a_fault_with_what_it_was() {
    let index = |import, index, there_are| {
        Cause::Misuse(Misuse::Index {
            import,
            index,
            there_are,
        })
    };
    let address = |import, address, length| {
        Cause::Misuse(Misuse::Address {
            import,
            address,
            length,
        })
    };
    for (content, cause) in [
        (
            r#"(drop (call $input (i32.const 2)))"#,
            index("input", 2, 2),
        ),
        (
            r#"(drop (call $input (i32.const -1)))"#,
            index("input", u32::MAX, 2),
        ),
        (
            r#"(call $output (i32.const 1) (f64.const 0))"#,
            index("output", 1, 1),
        ),
        (
            r#"(drop (call $last_output (i32.const 7)))"#,
            index("last_output", 7, 1),
        ),
        (
            r#"(call $inputs (i32.const 0) (i32.const 3))"#,
            index("inputs", 3, 2),
        ),
        (
            r#"(call $outputs (i32.const 0) (i32.const -1))"#,
            index("outputs", u32::MAX, 1),
        ),
        (
            r#"(call $inputs (i32.const 65521) (i32.const 2))"#,
            address("inputs", 65_521, 16),
        ),
        (
            r#"(call $outputs (i32.const -8) (i32.const 1))"#,
            address("outputs", u32::MAX - 7, 8),
        ),
        (
            r#"(call $log (i32.const 65535) (i32.const -1))"#,
            address("log", 65_535, u64::from(u32::MAX)),
        ),
    ] {
        let mut program = program(
            &format!("(memory 1) (func (export \"cycle\") {content})"),
            2,
            1,
        );
        let fault = step(&mut program, 1, &[0.0; 2], &[0.0]).unwrap_err();
        assert_eq!(fault.cause, cause, "{content}");
    }
    let mut without = program(
        r#"(func (export "cycle") (call $log (i32.const 0) (i32.const 1)))"#,
        0,
        0,
    );
    let fault = step(&mut without, 1, &[], &[]).unwrap_err();
    assert_eq!(fault.cause, address("log", 0, 1));
}

#[test]
fn a_fault_says_program_cycle_cause_and_last_message() {
    let content = r#"(memory 1) (data (i32.const 4) "tank \1b[2J dry")
      (func (export "cycle") (call $log (i32.const 4) (i32.const 13)) unreachable)"#;
    let mut program = program(content, 0, 0);
    let fault = step(&mut program, 17, &[], &[]).unwrap_err();
    assert_eq!(fault.cause, Cause::Trap(TrapKind::Unreachable));
    let said = fault.to_string();
    assert!(
        said.starts_with("test.wasm failed in cycle 17: it gave up (unreachable)"),
        "{said}"
    );
    // What a program says cannot command a terminal.
    assert!(
        said.ends_with(r#"(its last message: "tank \u{1b}[2J dry")"#),
        "{said}"
    );
}

#[test]
fn every_trap_has_a_cause_of_its_own() {
    for (content, trap) in [
        ("unreachable", TrapKind::Unreachable),
        (
            "(drop (i64.rem_s (i64.const 1) (i64.const 0)))",
            TrapKind::DivisionByZero,
        ),
        (
            "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))",
            TrapKind::IntegerOverflow,
        ),
        (
            "(drop (i32.trunc_f64_s (f64.const 1e10)))",
            TrapKind::IntegerOverflow,
        ),
        (
            "(drop (i32.trunc_f64_s (f64.const nan)))",
            TrapKind::FloatToInteger,
        ),
        ("(call_indirect (i32.const 0))", TrapKind::NullCall),
        (
            "(call_indirect (param i32) (i32.const 0) (i32.const 1))",
            TrapKind::CallType,
        ),
        ("(call_indirect (i32.const 9))", TrapKind::TableBounds),
        ("(call $deep)", TrapKind::StackOverflow),
    ] {
        let text = format!(
            "(table 3 funcref) (elem (i32.const 1) func $deep) (func $deep (call $deep))
             (func (export \"cycle\") {content})"
        );
        let mut program = program(&text, 0, 0);
        let fault = step(&mut program, 1, &[], &[]).unwrap_err();
        assert_eq!(fault.cause, Cause::Trap(trap), "{content}");
        program.reset();
        let fault = step(&mut program, 1, &[], &[]).unwrap_err();
        assert_eq!(fault.cause, Cause::Trap(trap), "{content}, again");
    }
}
