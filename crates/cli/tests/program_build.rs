//! `bumpless program build`, the real command over the example and over what is no project.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bumpless_testing::skip;
use serde_json::Value;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/programs/plc")
}

fn build(folder: &Path, project: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bumpless"))
        .args(["program", "build"])
        .arg(project)
        .args(arguments)
        .env_remove("CC")
        .current_dir(folder)
        .output()
        .expect("the command runs")
}

fn need_compiler() {
    if !Command::new("cc")
        .arg("--version")
        .output()
        .is_ok_and(|it| it.status.success())
    {
        skip("needs a C compiler");
    }
}

fn the_example_is_built_and_told_with_its_hash() {
    need_compiler();
    let folder = tempfile::tempdir().expect("a folder");
    let output = build(folder.path(), &project(), &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["schema"], "bumpless.program-build/1");
    assert_eq!(told["file"], "plc");
    assert_eq!(told["period_ns"], 20_000_000);
    let slow = &told["tasks"][1];
    assert_eq!(
        (&slow["name"], &slow["interval_ns"]),
        (&"SLOW".into(), &500_000_000.into())
    );
    assert_eq!(told["inputs"][2]["address"], "%ID0");
    assert_eq!(told["inputs"][2]["type"], "REAL");
    let sum = Command::new("sha256sum")
        .arg(folder.path().join("plc"))
        .output();
    let sum = String::from_utf8(sum.expect("sha256sum runs").stdout).expect("text");
    let sha256 = told["sha256"].as_str().expect("a hash");
    assert!(sum.starts_with(sha256), "{sum} {sha256}");
    let text = build(folder.path(), &project(), &["--output", "tank"]);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(
        text.contains(sha256),
        "the same sources give the same file: {text}"
    );
}

fn a_built_program_that_has_changed_since_is_told_as_that_by_compare() {
    need_compiler();
    let folder = tempfile::tempdir().expect("a folder");
    assert!(build(folder.path(), &project(), &[]).status.success());
    let mut bent = std::fs::read(folder.path().join("plc")).expect("the program");
    *bent.last_mut().expect("bytes") ^= 1;
    std::fs::write(folder.path().join("bent"), bent).expect("room");
    for (files, which) in [
        (["plc", "bent"], "the file of the next version"),
        (["bent", "plc"], "the file of the version that runs"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_bumpless"))
            .args(["program", "compare"])
            .args(files)
            .current_dir(folder.path())
            .output()
            .expect("the command runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let parts = [which, "has changed since bumpless program build made it"];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

fn what_cannot_be_built_is_told_with_status_1_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for json in [&[][..], &["--json"]] {
        let missing = ["--cc", "no-such-compiler"];
        let output = build(folder.path(), &project(), &[&missing, json].concat());
        assert_eq!(output.status.code(), Some(1));
        let said = if json.is_empty() {
            &output.stderr
        } else {
            &output.stdout
        };
        let said = String::from_utf8_lossy(said);
        assert!(
            said.contains("`no-such-compiler` is not installed"),
            "{said}"
        );
        assert_eq!(
            said.contains("bumpless.error/1"),
            !json.is_empty(),
            "{said}"
        );
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("it").count(), 0);
}

bumpless_testing::tests!(
    the_example_is_built_and_told_with_its_hash,
    a_built_program_that_has_changed_since_is_told_as_that_by_compare,
    what_cannot_be_built_is_told_with_status_1_and_leaves_nothing,
);
