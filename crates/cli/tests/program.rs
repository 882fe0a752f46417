//! Programs of users on the command line.

mod support;

use support::process::{json, said};

#[cfg(not(feature = "wasm"))]
#[test]
fn a_build_without_webassembly_says_how_to_build_one_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("level.wasm").display().to_string();
    std::fs::write(&module, b"\0asm\x01\0\0\0").unwrap();
    for action in ["test", "show"] {
        let (stdout, stderr, status) = said(&["program", action, &module, "--inputs", "2"]);
        assert_eq!(status, Some(1), "{stdout}{stderr}");
        assert!(
            stderr.contains("cargo build --release --features wasm"),
            "{stderr}"
        );
        let (error, status) = json(&["program", action, &module, "--json"], "bumpless.error/1");
        assert_eq!(status, Some(1), "{error}");
    }
}

#[cfg(feature = "wasm")]
mod with_webassembly {
    use std::path::PathBuf;

    use serde_json::Value;
    use tempfile::TempDir;

    use super::{json, said};

    const LEVEL: &str = include_str!("../../../examples/programs/level.wat");

    /// A folder with a file in it.
    fn file(name: &str, content: impl AsRef<[u8]>) -> (TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let path = path.to_str().unwrap().to_owned();
        (folder, path)
    }

    fn module(text: &str) -> (TempDir, String) {
        file("program.wasm", wat::parse_str(text).unwrap())
    }

    #[test]
    fn a_sound_program_is_let_through_for_people_and_for_programs() {
        let (_folder, path) = module(LEVEL);
        let (stdout, stderr, status) = said(&["program", "test", &path, "--cycles", "2000"]);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        assert!(
            stdout.starts_with(&format!("{path}: can be made redundant\n")),
            "{stdout}"
        );
        assert!(
            stdout.contains("2000 cycles with seed 1, the state moved 200 times"),
            "{stdout}"
        );
        let schema = "bumpless.program-test/1";
        let arguments = [
            "program", "test", &path, "--json", "--cycles", "500", "--seed", "4",
        ];
        let (report, status) = json(&arguments, schema);
        assert_eq!((status, &report["ok"]), (Some(0), &true.into()), "{report}");
        for (field, value) in [
            ("kind", Value::from("wasm")),
            ("inputs", 2.into()),
            ("outputs", 1.into()),
            ("cycles", 500.into()),
            ("seed", 4.into()),
        ] {
            assert_eq!(report[field], value, "{field} in {report}");
        }
        assert_eq!(report["state_bytes"]["max"], 24);
        assert!(
            report["execute_ns"]["p50"].as_u64().unwrap() > 0,
            "{report}"
        );
    }

    #[test]
    fn a_program_that_fails_is_not_let_through_and_the_cycle_is_said() {
        let text = r#"(module (import "bumpless" "cycle_number" (func $n (result i64)))
          (func (export "cycle") (if (i64.eq (call $n) (i64.const 77)) (then unreachable))))"#;
        let (_folder, path) = module(text);
        let arguments = ["program", "test", &path, "--inputs", "0", "--outputs", "0"];
        let (stdout, stderr, status) = said(&arguments);
        assert_eq!(status, Some(1), "{stdout}{stderr}");
        assert!(stdout.contains("cannot be made redundant"), "{stdout}");
        assert!(
            stdout.contains("hindered: it fails in cycle 77: trap: it gave up"),
            "{stdout}"
        );
        let (report, status) = json(
            &[&arguments[..], &["--json"]].concat(),
            "bumpless.program-test/1",
        );
        assert_eq!(status, Some(1));
        assert_eq!(report["hindrances"][0]["name"], "fails");
        assert_eq!(report["hindrances"][0]["cycle"], 77);
        // An endless loop ends, too, at its limit.
        let (_folder, path) = module(r#"(module (func (export "cycle") (loop $l (br $l))))"#);
        let limit = [
            "program",
            "test",
            &path,
            "--inputs",
            "0",
            "--outputs",
            "0",
            "--limit",
            "2",
        ];
        let (stdout, _, status) = said(&limit);
        assert_eq!(status, Some(1));
        // Which of both it is hangs on what else the computer does.
        let told = [
            "overrun: it had not answered after 2000 us",
            "starved: no answer after ",
        ];
        let fails = |how: &&str| stdout.contains(&format!("it fails in cycle 1: {how}"));
        assert!(told.iter().any(fails), "{stdout}");
    }

    #[test]
    fn inputs_come_from_a_file_and_a_bad_one_is_refused_with_its_line() {
        let (_folder, program) = module(LEVEL);
        let (_table, good) = file("rows.csv", "level,set point\n1,2\n1.5,2\n2.5,2\n");
        let arguments = ["program", "test", &program, "--cycles", "100", "--data"];
        let (stdout, stderr, status) = said(&[&arguments[..], &[&good]].concat());
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        for (content, words) in [
            ("1,2\n3", "line 2: 1 values instead of 2"),
            ("1,2,3\n", "3 columns, and the program has 2 inputs"),
            ("", "no row of numbers"),
        ] {
            let (_table, bad) = file("rows.csv", content);
            let (_, stderr, status) = said(&[&arguments[..], &[&bad]].concat());
            assert_eq!(status, Some(2), "{stderr}");
            assert!(stderr.contains(words), "{stderr}");
        }
    }

    #[test]
    fn what_is_no_program_is_refused_with_cause_and_remedy() {
        for (content, words) in [
            (LEVEL.as_bytes(), "wat2wasm"),
            (b"\0asm\x01\0\0", "is no valid WebAssembly module"),
            (b"PROGRAM tank", " WebAssembly module"),
        ] {
            let (_folder, path) = file("program", content);
            for action in ["test", "show"] {
                let (_, stderr, status) = said(&["program", action, &path]);
                assert_eq!(status, Some(1), "{stderr}");
                assert!(
                    stderr.starts_with("bumpless: ") && stderr.contains(words),
                    "{stderr}"
                );
                let (error, status) =
                    json(&["program", action, &path, "--json"], "bumpless.error/1");
                assert_eq!(status, Some(1));
                assert!(error["error"].as_str().unwrap().contains(words), "{error}");
            }
        }
        let (_folder, path) = module(r#"(module (func (export "cycle")))"#);
        let (_, stderr, status) = said(&["program", "test", &path]);
        assert_eq!(status, Some(2));
        assert!(
            stderr.contains("how many inputs it has; give --inputs"),
            "{stderr}"
        );
    }

    #[test]
    fn show_tells_what_a_module_needs_and_what_its_state_is() {
        let (_folder, path) = module(LEVEL);
        let (shown, status) = json(&["program", "show", &path, "--json"], "bumpless.program/1");
        assert_eq!(status, Some(0));
        assert_eq!(
            shown["imports"],
            serde_json::json!(["input", "output", "period_ns"])
        );
        assert_eq!(
            (&shown["inputs"], &shown["mutable_globals"]),
            (&2.into(), &1.into())
        );
        assert_eq!(shown["sha256"].as_str().unwrap().len(), 64);
        let (stdout, _, status) = said(&["program", "show", &path]);
        assert_eq!(status, Some(0));
        assert!(
            stdout.contains("calls    input, output, period_ns"),
            "{stdout}"
        );
    }
}
