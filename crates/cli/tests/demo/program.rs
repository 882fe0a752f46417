//! `bumpless demo --program`: what it refuses before anything starts, what Ctrl-C leaves, and the whole course, which takes
//! as long as the one with the tanks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bumpless_testing::page::loads;
use serde_json::Value;
use tempfile::TempDir;

use super::{children, demo, interrupt, runs, wait_until};

/// The library of programs in C.
const C: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../product/program/c");

/// A program in C with this step, if there is a compiler.
fn program(step: &str) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("own.c"), folder.path().join("own"));
    let text = format!(
        "#include <bumpless.h>\n\
         struct state {{ double sum, cycles; }};\n\
         static int step(const struct bumpless_cycle *cycle, const double *in, double *out, void *memory)\n\
         {{\n struct state *s = memory; static double hidden;\n (void)cycle; (void)hidden;\n\
         s->sum = s->sum * 0.9 + in[0]; s->cycles += 1;\n out[0] = s->sum; out[1] = s->cycles;\n {step}\n return 0;\n}}\n\
         int main(void)\n{{\n const struct bumpless_program p = {{ .inputs = 2, .outputs = 2,\n\
         .state_size = sizeof(struct state), .step = step }};\n return bumpless_run(&p);\n}}\n"
    );
    fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .args(["-O1", "-Wall", "-I", C, "-o"])
        .args([&program, &source, &Path::new(C).join("bumpless.c")])
        .status()
        .ok()?;
    assert!(compiled.success());
    Some((folder, program))
}

/// What is said of a program that is not shown; nothing is left, and no report is written.
fn refused(program: &Path, more: &[&str]) -> (String, Option<i32>) {
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path())
        .arg("--program")
        .arg(program)
        .args(more)
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["schema"], "bumpless.error/1", "{said}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    (
        said["error"].as_str().unwrap().to_owned(),
        output.status.code(),
    )
}

#[test]
fn a_program_that_cannot_be_made_redundant_is_refused_before_anything_starts() {
    for (step, words) in [
        ("out[1] = hidden++;", "hidden state"),
        ("if (s->cycles == 40) return 1;", "it fails in cycle 40"),
        (
            "out[1] = (double)(unsigned long)__builtin_frame_address(0);",
            "not deterministic",
        ),
    ] {
        let Some((_folder, program)) = program(step) else {
            return;
        };
        let (said, status) = refused(&program, &[]);
        assert_eq!(status, Some(1), "{said}");
        for words in [words, "cannot be made redundant", "nothing was started"] {
            assert!(said.contains(words), "{words:?} in {said}");
        }
        assert!(said.contains(&*program.display().to_string()), "{said}");
    }
}

#[test]
fn what_is_no_program_or_one_that_cannot_be_shown_is_refused_with_the_remedy() {
    let (said, status) = refused(Path::new("/etc/passwd"), &[]);
    assert!(
        said.contains("it is no program") && status == Some(1),
        "{said}"
    );
    let (said, _) = refused(Path::new("/nowhere"), &[]);
    assert!(said.contains("cannot be read"), "{said}");
    let Some((folder, program)) = program("") else {
        return;
    };
    let (said, status) = refused(&program, &["--period", "2000"]);
    assert!(
        said.contains("its period is 2000 ms") && said.contains("--period"),
        "{said}"
    );
    assert_eq!(status, Some(1));
    let table = folder.path().join("rows.csv");
    fs::write(&table, "1,2,3\n").unwrap();
    let (said, _) = refused(&program, &["--data", table.to_str().unwrap()]);
    assert!(
        said.contains("2 inputs and the table of --data 3 columns"),
        "{said}"
    );
    fs::write(&table, "1,x\n").unwrap();
    let (said, status) = refused(&program, &["--data", table.to_str().unwrap()]);
    assert!(said.contains("line 1") && status == Some(2), "{said}");
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path()).args(["--period", "20"]).output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(said.contains("name it with --program"), "{said}");
}

/// All processes below `parent`.
fn below(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten();
    let children = tasks.flatten().flat_map(|task| {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let children: Vec<u32> = children
            .split_whitespace()
            .filter_map(|it| it.parse().ok())
            .collect();
        children
    });
    children
        .flat_map(|child| [vec![child], below(child)].concat())
        .collect()
}

#[test]
fn ctrl_c_ends_the_pair_of_a_program_and_the_program_on_both_nodes() {
    let Some((_folder, program)) = program("") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let mut demo = demo(directory.path())
        .arg("--program")
        .arg(&program)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(
        "device, two witnesses, two nodes and their programs run",
        || children(demo.id()).len() == 5 && below(demo.id()).len() == 7,
    );
    let started = below(demo.id());
    interrupt(&demo);
    let mut status = None;
    wait_until("the demonstration has ended", || {
        status = demo.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(1));
    wait_until("all of it has ended", || {
        let own =
            |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
        started.iter().all(|&pid| !runs(pid) && !own(pid))
    });
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn ctrl_c_does_not_wait_for_a_program_that_never_begins() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("asleep");
    fs::write(&program, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let demo = demo(directory.path())
        .arg("--program")
        .arg(&program)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the program is asked", || !below(demo.id()).is_empty());
    let asked = below(demo.id());
    interrupt(&demo);
    let output = demo.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("ended early; nothing was started"), "{said}");
    assert!(
        asked
            .iter()
            .all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap())
    );
}

#[test]
#[ignore = "takes a minute, as long as the one with the tanks"]
fn the_course_over_a_program_keeps_what_nothing_excuses_and_says_what_it_cannot_judge() {
    let Some((_folder, program)) = program("") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path())
        .arg("--program")
        .arg(&program)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["schema"], "bumpless.demo/1", "{result}");
    let promises = result["promises"].as_array().unwrap();
    let held = |promise: &&Value| promise["held"] == true;
    for id in super::SAFETY {
        let promise = promises.iter().find(|promise| promise["id"] == id).unwrap();
        assert!(held(&promise), "{promise}");
    }
    let is_about_outputs =
        |promise: &&Value| promise["id"].as_str().unwrap().starts_with("outputs/");
    let outputs: Vec<_> = promises.iter().filter(is_about_outputs).collect();
    assert_eq!(outputs.len(), 11);
    assert!(outputs.iter().all(held), "{outputs:?}");
    assert_eq!(result["not_judged"].as_array().unwrap().len(), 10);
    assert_eq!(result["program"]["cycles_differing"], 0);
    assert!(result["program"]["cycles_compared"].as_u64() > Some(3_000));
    let report = fs::read_to_string(directory.path().join("report.html")).unwrap();
    assert!(report.contains("What was not judged"));
    assert_eq!(loads(&report), [""; 0]);
}

#[test]
#[ignore = "takes most of a minute: until the phase in which an order is refused"]
fn a_program_that_fails_on_both_nodes_in_mid_course_is_named_with_cycle_and_cause() {
    let step = "if (s->cycles > 1500) { bumpless_say(\"the valve is stuck\"); return 1; }";
    let Some((_folder, program)) = program(step) else {
        return;
    };
    let (said, status) = refused(&program, &[]);
    assert_eq!(status, Some(1));
    for words in [
        "the program failed on the pair",
        "cycle 1501: trap",
        "the valve is stuck",
    ] {
        assert!(said.contains(words), "{words:?} in {said}");
    }
}
