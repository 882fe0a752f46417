//! What is refused, and how it is said.

use std::path::Path;

use crate::support::modules::{assembled, limits, module, shape};
use bumpless_host::Kind;
use bumpless_host::wasm::{Feature, Problem, Wasm};

fn refusals(bytes: &[u8]) -> (Vec<Problem>, String) {
    let fault = module(bytes).err().expect("it is refused");
    let said = fault.to_string();
    assert!(said.starts_with("test.wasm: "), "{said}");
    (fault.problems, said)
}

#[test]
fn what_is_no_module_is_refused_by_what_it_is() {
    for (bytes, kind, word) in [
        (&b"(module)"[..], Kind::WasmText, "wat2wasm"),
        (b"\0asm\x0d\0\x01\0", Kind::WasmComponent, "core module"),
        (b"\x7fELF\x02\x01\x01", Kind::Elf, "no WebAssembly module"),
        (b"#!/bin/sh", Kind::Script, "no WebAssembly module"),
        (b"", Kind::Unknown, "no WebAssembly module"),
        (b"\0as", Kind::Unknown, "no WebAssembly module"),
    ] {
        let (problems, said) = refusals(bytes);
        assert_eq!(problems, [Problem::Kind(kind)]);
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn a_module_cut_anywhere_is_refused_with_its_place() {
    // Without names, which stand at the end and may be missing.
    let text = r#"(module (import "bumpless" "input" (func (param i32) (result f64))) (memory 1) (global (mut i32) (i32.const 1))
      (table 1 funcref) (elem (i32.const 0) 1) (func (export "cycle") (drop (call 0 (global.get 0)))))"#;
    let whole = wat::parse_str(text).unwrap();
    assert!(module(&whole).is_ok());
    for length in 0..whole.len() {
        let (problems, said) = refusals(&whole[..length]);
        let cut = &problems[..];
        match (length, cut) {
            (..4, [Problem::Kind(Kind::Unknown)]) => {}
            (_, [Problem::Invalid { offset, .. }]) => {
                assert!(
                    *offset <= length && said.contains("cut"),
                    "{length}: {said}"
                );
            }
            // What is left at the end of a section may be a module without the rest.
            (_, [Problem::MissingExport { name: "cycle", .. }]) => {}
            _ => panic!("{length}: {said}"),
        }
    }
}

#[test]
fn everything_wrong_with_an_interface_is_said_at_once() {
    let text = r#"(module
      (import "bumpless" "input" (func (param i64) (result f64)))
      (import "bumpless" "inpt" (func (param i32) (result f64)))
      (import "env" "abort" (func (param i32 i32 i32 i32)))
      (import "bumpless2" "input" (func (param i32) (result f64)))
      (func (export "_start"))
      (func (export "_initialize") (param i32))
      (global (export "bumpless_inputs") i32 (i32.const 3)))"#;
    let (problems, said) = refusals(&wat::parse_str(text).unwrap());
    assert_eq!(said.lines().count(), 7, "{said}");
    for words in [
        "imports bumpless.input as (i64) -> (f64), and it is (i32) -> (f64)",
        "the function bumpless.inpt, which Bumpless does not give",
        "AssemblyScript, compile with --use abort=",
        "the function bumpless2.input",
        "exports no function cycle",
        "exports _start, as a program that runs once does",
        "exports _initialize with another type than () -> ()",
        "exports bumpless_inputs with another type than () -> (i32)",
    ] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    let missing = Problem::MissingExport {
        name: "cycle",
        command: true,
    };
    assert!(problems.contains(&missing));
    let (_, said) = refusals(
        &wat::parse_str("(module (func (export \"cycle\") (result i32) i32.const 1))").unwrap(),
    );
    assert!(
        said.contains("exports cycle with another type than () -> ()"),
        "{said}"
    );
    let (_, said) = refusals(&wat::parse_str("(module (memory (export \"cycle\") 1))").unwrap());
    assert!(said.contains("exports cycle with another type"), "{said}");
}

#[test]
fn vector_instructions_and_large_memories_are_refused_by_name() {
    let simd = r#"(func (export "cycle") (drop (v128.const i64x2 0 0)))"#;
    let (problems, said) = refusals(&assembled(simd));
    let needs = matches!(
        problems[..],
        [Problem::Needs {
            feature: Feature::Simd,
            ..
        }]
    );
    assert!(needs && said.contains("-msimd128"), "{said}");
    let (problems, said) = refusals(&assembled(
        r#"(global v128 (v128.const i64x2 0 0)) (func (export "cycle"))"#,
    ));
    assert!(matches!(problems[..], [Problem::Needs { .. }]), "{said}");
    let (_, said) = refusals(&assembled(r#"(memory i64 1) (func (export "cycle"))"#));
    assert!(said.contains("memory64"), "{said}");
}

#[cfg(not(feature = "wasmtime"))]
#[test]
fn an_engine_that_is_not_in_this_build_is_named_with_what_brings_it() {
    use bumpless_host::wasm::{Engine, Module};
    let bytes = assembled(r#"(func (export "cycle"))"#);
    let fault = Module::read("test.wasm", &bytes, Engine::Wasmtime).err();
    let fault = fault.expect("it is refused");
    assert_eq!(fault.problems, [Problem::EngineAbsent("wasmtime")]);
    let said = fault.to_string();
    assert!(
        said.contains("--features wasmtime") && said.contains("engine = \"wasmi\""),
        "{said}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_refused_with_its_cause() {
    for (path, words) in [
        ("/nonexistent/program.wasm", "No such file"),
        ("/", "no regular file"),
        ("/dev/zero", "no regular file"),
    ] {
        let fault = Wasm::load(Path::new(path), crate::ENGINE, shape(0, 0), limits())
            .err()
            .unwrap();
        let said = fault.to_string();
        assert!(said.starts_with(path) && said.contains(words), "{said}");
    }
}
