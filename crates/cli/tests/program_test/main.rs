//! `bumpless program test` with programs in processes of their own: what it finds in each trap, by its name, and what it
//! refuses. The programs are one in C that is started with the trap's name.

#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use bumpless_testing::skip;
use serde_json::Value;
use support::process::{BUMPLESS, json, said};
use support::wait_until;
use tempfile::TempDir;

/// The program `flawed.c`, compiled once.
fn own() -> String {
    static BUILT: OnceLock<Option<(TempDir, String)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("flawed").display().to_string();
        let compiled = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", C])
            .args([concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/program_test/flawed.c"
            )])
            .args([&format!("{C}/bumpless.c"), "-o", &program])
            .status()
            .ok()?;
        assert!(compiled.success());
        Some((folder, program))
    });
    match built {
        Some((_, program)) => program.clone(),
        None => skip("needs a C compiler"),
    }
}

/// The library of programs in C.
const C: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../product/program/c");

/// The report of a short test of the program `name`, with its exit status.
fn tested(name: &str, more: &[&str]) -> (Value, Option<i32>) {
    let (own, schema) = (own(), "bumpless.program-test/1");
    let first = ["program", "test", &own, "--json", "--argument", name];
    let length = ["--cycles", "300", "--moves", "3"];
    json(&[&first[..], &length, more].concat(), schema)
}

/// Whether the test of the program `name` ends with a no for this one reason; gives its report.
fn hindered(name: &str, by: &str, more: &[&str]) -> Value {
    let (report, status) = tested(name, more);
    assert_eq!(
        (status, &report["ok"]),
        (Some(1), &false.into()),
        "{report}"
    );
    let names = report["hindrances"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, [by], "{report}");
    report
}

/// It names, besides, what has to do with clocks and the like.
fn noted(report: &Value, name: &str) {
    let notes = report["notes"].as_array().unwrap().iter();
    let names: Vec<_> = notes.map(|note| note["name"].as_str().unwrap()).collect();
    assert!(
        names.contains(&name) && names.contains(&"names"),
        "{report}"
    );
    let what = report["notes"].to_string();
    assert!(
        what.contains("time()") && what.contains("socket()"),
        "{what}"
    );
}

fn a_sound_program_is_let_through_with_what_the_plan_needs() {
    let (report, status) = tested("sound", &["--seed", "9"]);
    assert_eq!((status, &report["ok"]), (Some(0), &true.into()), "{report}");
    for (field, value) in [
        ("kind", Value::from("process")),
        ("inputs", 1.into()),
        ("outputs", 2.into()),
        ("cycles", 300.into()),
        ("moves", 6.into()),
        ("seed", 9.into()),
        ("period_ns", 10_000_000.into()),
    ] {
        assert_eq!(report[field], value, "{field} in {report}");
    }
    let fields = &report["configuration"];
    assert_eq!(
        (&fields["state_max"], &fields["arguments"]),
        (&24.into(), &serde_json::json!(["sound"])),
        "{fields}"
    );
    assert!(report["execute_ns"]["p99"].as_u64() > Some(0), "{report}");
    let changed = report["changed_share"]["max"].as_f64().unwrap();
    assert!(
        (0.3..0.4).contains(&changed),
        "one word of three: {changed}"
    );
}

fn trap_hidden_variables_of_a_process_are_found() {
    hindered("static", "hidden_state", &[]);
}

fn trap_heap_of_a_process_is_found() {
    hindered("heap", "hidden_state", &[]);
}

fn trap_clock_is_found_even_if_it_was_read_only_at_the_beginning_and_tells_seconds() {
    hindered("clock", "not_deterministic", &[]);
    hindered("began", "not_deterministic", &[]);
}

fn trap_random_numbers_of_a_process_are_found() {
    hindered("chance", "not_deterministic", &[]);
}

fn trap_sockets_of_a_process_are_found() {
    let report = hindered("socket", "sockets", &[]);
    let what = report["hindrances"][0]["what"].as_str().unwrap();
    assert!(what.contains("1 socket open"), "{what}");
}

fn trap_array_bounds_a_write_behind_the_state_is_found() {
    hindered("beyond", "hidden_state", &[]);
}

fn trap_nan_bits_of_a_process_are_found() {
    let (report, _) = tested("nan", &[]);
    let names = report["hindrances"].to_string();
    assert!(
        names.contains("not_finite") && names.contains("not_deterministic"),
        "{names}"
    );
    assert_eq!(report["hindrances"][0]["cycle"], 50);
}

fn trap_meaningless_bytes_of_a_process_are_noted_and_hinder_nothing() {
    let (report, status) = tested("garbage", &[]);
    assert_eq!((status, &report["ok"]), (Some(0), &true.into()), "{report}");
    noted(&report, "meaningless_bytes");
}

fn trap_endless_loop_of_a_process_is_stopped_and_its_cycle_said() {
    let report = hindered("loop", "fails", &["--limit", "300"]);
    assert_eq!(report["hindrances"][0]["cycle"], 30);
}

fn a_failure_that_the_program_tells_is_said_in_its_words() {
    let report = hindered("fails", "fails", &[]);
    let first = &report["hindrances"][0];
    assert_eq!(first["cycle"], 40);
    assert!(
        first["what"]
            .as_str()
            .unwrap()
            .contains("the valve is stuck"),
        "{first}"
    );
}

fn threads_are_noted() {
    let (report, status) = tested("thread", &[]);
    assert_eq!(status, Some(0), "{report}");
    noted(&report, "threads");
}

/// What is said of a file with this content, which is no program.
fn refused(name: &str, content: &[u8], mode: u32, more: &[&str]) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, content).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    let file = file.to_str().unwrap();
    let arguments = [&["program", "test", file][..], more].concat();
    let (stdout, stderr, status) = said(&arguments);
    assert_eq!(stdout, "");
    (stderr, status)
}

fn what_is_no_program_is_refused_at_once_with_the_remedy() {
    let own_header = {
        let mut header = vec![0; 64];
        let mut file = fs::File::open("/proc/self/exe").unwrap();
        file.read_exact(&mut header).unwrap();
        header
    };
    let foreign = {
        let mut header = own_header.clone();
        header[18] ^= 0xff;
        header
    };
    let cases: [(&str, &[u8], u32, &[&str]); 6] = [
        (
            "notes.txt",
            b"hello",
            0o755,
            &["it is no program", "WebAssembly"],
        ),
        ("other", &foreign, 0o755, &["another processor or ABI"]),
        ("cut", &own_header, 0o755, &["it is cut short"]),
        (
            "locked",
            b"#!/bin/true\n",
            0o644,
            &["make the file executable"],
        ),
        ("lost", b"#!/nowhere/at/all\n", 0o755, &["interpreter"]),
        (
            "ends",
            b"#!/bin/true\n",
            0o755,
            &["before it was ready", "bumpless_run()"],
        ),
    ];
    for (name, content, mode, words) in cases {
        let (stderr, status) = refused(name, content, mode, &[]);
        assert_eq!(status, Some(1), "{stderr}");
        for word in words.iter().copied().chain([name]) {
            assert!(stderr.contains(word), "{word:?} in {stderr}");
        }
    }
    let (_, stderr, status) = said(&["program", "test", "/tmp"]);
    assert!(
        stderr.contains("it is a folder") && status == Some(1),
        "{stderr}"
    );
}

fn what_is_said_of_a_program_and_is_not_so_is_wrong_usage() {
    let own = own();
    for (option, value, words) in [
        ("--inputs", "3", "it has 1 inputs, and --inputs says 3"),
        ("--outputs", "1", "it has 2 outputs, and --outputs says 1"),
    ] {
        let (_, stderr, status) = said(&["program", "test", &own, option, value]);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
    let small = ["program", "test", &own, "--state-max", "8"];
    let (_, stderr, status) = said(&small);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("its state has 16 bytes"), "{stderr}");
}

fn a_script_in_python_needs_no_more_than_its_ending() {
    if Command::new("python3").arg("--version").output().is_err() {
        skip("needs python3");
    }
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let output = Command::new(BUMPLESS)
        .args(["program", "test", "examples/programs/python/level.py"])
        .args(["--cycles", "300", "--moves", "2", "--json"])
        .env("PYTHONPATH", "crates/product/program/python")
        .current_dir(root)
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["configuration"]["command"][0], "python3", "{report}");
    assert_eq!(report["notes"], serde_json::json!([]), "{report}");
}

fn a_plc_program_is_known_as_one_and_runs_with_its_own_period() {
    if Command::new("cc").arg("--version").output().is_err() {
        skip("needs a C compiler");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tank").display().to_string();
    let project = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/programs/plc");
    let (_, stderr, status) = said(&["program", "build", project, "--output", &program]);
    assert_eq!(status, Some(0), "{stderr}");
    let short = [
        "program", "test", &program, "--json", "--cycles", "2000", "--moves", "5",
    ];
    let (report, status) = json(&short, "bumpless.program-test/1");
    assert_eq!((status, &report["ok"]), (Some(0), &true.into()), "{report}");
    assert_eq!(
        (&report["kind"], &report["period_ns"]),
        (&"plc".into(), &20_000_000.into())
    );
    for (more, words) in [
        (["--period", "10"], "it runs with a period of 20 ms only"),
        (
            ["--argument", "x"],
            "--command and --argument are for processes",
        ),
        (
            ["--engine", "wasmtime"],
            "--engine is for WebAssembly modules",
        ),
        (
            ["--memory-max", "70000"],
            "--memory-max is for WebAssembly modules",
        ),
    ] {
        let (_, stderr, status) = said(&[&["program", "test", &program][..], &more].concat());
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}

/// Whether a process handles SIGINT.
fn is_handled(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 2 != 0)
}

/// A program that a process has started.
fn program_of(process: u32) -> Option<u32> {
    // The instance that is measured belongs to a thread that looks after it.
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    tasks.flatten().find_map(|task| {
        let children = fs::read_to_string(task.path().join("children")).ok()?;
        children.split_whitespace().next()?.parse::<u32>().ok()
    })
}

fn interrupt(child: &std::process::Child) {
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: it takes two integers, and the process is this test's own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
}

fn ctrl_c_while_a_program_begins_ends_both() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("never");
    fs::write(&script, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let child = Command::new(BUMPLESS)
        .args(["program", "test", "--json"])
        .arg(&script)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the program", || {
        is_handled(child.id()) && program_of(child.id()).is_some()
    });
    let program = program_of(child.id()).unwrap();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["schema"], "bumpless.error/1");
    let words = told["error"].as_str().unwrap();
    assert!(words.contains("nothing was tested"), "{words}");
    assert!(!fs::exists(format!("/proc/{program}")).unwrap());
}

fn ctrl_c_ends_the_test_and_the_programs_that_it_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let progress = folder.path().join("progress");
    let mut child = Command::new(BUMPLESS)
        .args([
            "program",
            "test",
            &own(),
            "--argument",
            "sound",
            "--cycles",
            "10000000",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&progress).unwrap())
        .spawn()
        .unwrap();
    // The one that was asked before has gone by then.
    wait_until("an instance of the program that runs", || {
        let said = fs::read_to_string(&progress).unwrap();
        said.contains("cycle ") && program_of(child.id()).is_some()
    });
    let program = program_of(child.id());
    interrupt(&child);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{status}");
    let mut told = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert!(
        told.contains("nothing found until it was interrupted"),
        "{told}"
    );
    let gone = program.is_none_or(|id| !fs::exists(format!("/proc/{id}")).unwrap());
    assert!(gone, "{program:?}");
}

bumpless_testing::tests![
    a_sound_program_is_let_through_with_what_the_plan_needs,
    trap_hidden_variables_of_a_process_are_found,
    trap_heap_of_a_process_is_found,
    trap_clock_is_found_even_if_it_was_read_only_at_the_beginning_and_tells_seconds,
    trap_random_numbers_of_a_process_are_found,
    trap_sockets_of_a_process_are_found,
    trap_array_bounds_a_write_behind_the_state_is_found,
    trap_nan_bits_of_a_process_are_found,
    trap_meaningless_bytes_of_a_process_are_noted_and_hinder_nothing,
    trap_endless_loop_of_a_process_is_stopped_and_its_cycle_said,
    a_failure_that_the_program_tells_is_said_in_its_words,
    threads_are_noted,
    what_is_no_program_is_refused_at_once_with_the_remedy,
    what_is_said_of_a_program_and_is_not_so_is_wrong_usage,
    a_script_in_python_needs_no_more_than_its_ending,
    a_plc_program_is_known_as_one_and_runs_with_its_own_period,
    ctrl_c_while_a_program_begins_ends_both,
    ctrl_c_ends_the_test_and_the_programs_that_it_has_started,
];
