//! README's "Two computers" and "Your own program", followed word for word with the configurations that they name, on
//! loopback addresses.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use support::addresses::Addresses;
use support::process::{BUMPLESS, Process, outcome};
use support::wait_until;
use support::writes::Writes;

const README: &str = include_str!("../../../README.md");
const EXAMPLE: &str = include_str!("../../../examples/two-computers.toml");

const TWO_COMPUTERS: &str = "\n## Two computers\n";

/// The commands of the section below `heading`, in order, without their comments.
fn commands(heading: &str) -> Vec<String> {
    let (_, section) = README.split_once(heading).unwrap();
    let end = ["\n## ", "\n### "].map(|next| section.find(next).unwrap_or(section.len()));
    let section = &section[..end[0].min(end[1])];
    let lines = section.lines().filter(|line| line.starts_with("       "));
    lines
        .map(|line| line.split(" # ").next().unwrap().trim().to_owned())
        .collect()
}

/// What the section says, on a machine that has none of the addresses.
struct Bench {
    directory: tempfile::TempDir,
    addresses: Vec<(&'static str, String)>,
}

impl Bench {
    fn new() -> Self {
        let free = Addresses::find();
        let addresses = [
            ("192.0.2.11:4700", free.node(0, 0)),
            ("192.0.2.12:4700", free.node(0, 1)),
            ("[2001:db8:b::11]:4700", free.node(1, 0)),
            ("[2001:db8:b::12]:4700", free.node(1, 1)),
            ("192.0.2.13:4710", free.witness(0)),
            ("[2001:db8:b::13]:4710", free.witness(1)),
            ("198.51.100.20:5502", free.plant()),
            // Of the example with a program.
            ("127.0.0.21:4700", free.node(0, 0)),
            ("127.0.0.22:4700", free.node(0, 1)),
            ("127.0.1.21:4700", free.node(1, 0)),
            ("127.0.1.22:4700", free.node(1, 1)),
            ("127.0.0.23:4710", free.witness(0)),
            ("127.0.1.23:4710", free.witness(1)),
            ("127.0.0.30:5502", free.plant()),
        ];
        Self {
            directory: tempfile::tempdir().unwrap(),
            addresses: addresses
                .map(|(named, here)| (named, here.to_string()))
                .into(),
        }
    }

    /// `text` with addresses that are here.
    fn here(&self, text: &str) -> String {
        let replace = |text: String, (named, here): &(&str, String)| text.replace(named, here);
        self.addresses.iter().fold(text.to_owned(), replace)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, line: &str, more: &[&str]) -> Command {
        let line = self.here(line);
        let mut words = line.split_whitespace().map(|word| word.trim_matches('\''));
        assert_eq!(words.next(), Some("bumpless"), "{line}");
        let mut command = Command::new(BUMPLESS);
        command
            .args(words)
            .args(more)
            .current_dir(self.path())
            .env("XDG_RUNTIME_DIR", self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn start(&self, line: &str, more: &[&str]) -> Process {
        Process::spawn(self.command(line, more), &self.path().join("said"))
    }

    fn output(&self, line: &str) -> Output {
        let mut command = self.command(line, &[]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        support::addresses::spawn(command)
            .unwrap()
            .wait_with_output()
            .unwrap()
    }
}

fn the_readme_word_for_word_gives_a_pair_that_switches_over_and_changes() {
    let bench = Bench::new();
    // What it asks of the system is for computers that do nothing else.
    let (before, realtime) = EXAMPLE.split_once("[realtime]").unwrap();
    let (_, after) = realtime.split_once("[plan]").unwrap();
    let text = bench.here(&format!("{before}[plan]{after}"));
    let mut commands = commands(TWO_COMPUTERS).into_iter();
    let copied = commands.next();
    assert_eq!(
        copied.as_deref(),
        Some("cp examples/two-computers.toml pair.toml")
    );
    std::fs::write(bench.path().join("pair.toml"), &text).unwrap();
    std::fs::write(bench.path().join("next.toml"), text.replace("13.4", "13.6")).unwrap();
    let (mut services, mut changes, mut done) = (Vec::new(), Vec::new(), Vec::new());
    let writes = || Writes::read(&bench.path().join("plant.jsonl"));
    for line in commands {
        let command = line.split_whitespace().nth(1).unwrap().to_owned();
        match &*command {
            "plant" => services.push(bench.start(&line, &["--log", "plant.jsonl"])),
            "witness" | "run" => services.push(bench.start(&line, &[])),
            "apply" => changes.push(bench.start(&line, &[])),
            // Answers come when the pair has found its roles.
            _ => wait_until(&line, || {
                let (_, _, status) = outcome(&bench.output(&line));
                status == Some(0)
            }),
        }
        if command == "status" {
            wait_until("outputs reach the plant", || {
                writes().accepted().count() > 10
            });
        }
        done.push(command);
    }
    for change in changes {
        assert!(change.wait().success(), "the pair did not change");
    }
    let all = "check plan pki pki witness plant run run status switchover apply";
    assert_eq!(done.join(" "), all);
    let now = std::fs::read_to_string(bench.path().join("pair.toml")).unwrap();
    assert!(now.contains("13.6"), "{now}");
    writes().judge();
    services.into_iter().rev().for_each(Process::interrupt);
}

fn the_readme_word_for_word_gives_a_pair_with_a_key_file() {
    let bench = Bench::new();
    let (before, realtime) = EXAMPLE.split_once("[realtime]").unwrap();
    let (_, after) = realtime.split_once("[plan]").unwrap();
    let line = README.split_once("section `[security]` with the line `");
    let line = line.unwrap().1.split('`').next().unwrap();
    let text = format!("{before}[security]\n{line}\n\n[plan]{after}");
    std::fs::write(bench.path().join("pair.toml"), bench.here(&text)).unwrap();
    let (mut services, mut done) = (Vec::new(), Vec::new());
    for line in commands("## Two computers, with a key file\n") {
        match line.contains(" witness --") {
            true => services.push(bench.start(&line, &[])),
            false => {
                let (_, errors, status) = outcome(&bench.output(&line));
                assert_eq!(status, Some(0), "{line}: {errors}");
            }
        }
        done.push(line.split_whitespace().nth(1).unwrap().to_owned());
    }
    assert_eq!(done.join(" "), "key witness");
    let wanted = ["plant", "run", "status", "switchover"];
    for line in commands(TWO_COMPUTERS) {
        match line.split_whitespace().nth(1).unwrap() {
            "plant" | "run" => services.push(bench.start(&line, &[])),
            word if wanted.contains(&word) => wait_until(&line, || {
                let (_, _, status) = outcome(&bench.output(&line));
                status == Some(0)
            }),
            _ => {}
        }
    }
    drop(services);
}

fn the_readmes_program_goes_on_when_the_primary_is_killed() {
    if Command::new("python3").arg("--version").output().is_err() {
        bumpless_testing::skip("needs python3");
    }
    let bench = Bench::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let examples = bench.path().join("examples");
    std::fs::create_dir(&examples).unwrap();
    let root = root.canonicalize().unwrap();
    std::os::unix::fs::symlink(root.join("examples/programs"), examples.join("programs")).unwrap();
    std::os::unix::fs::symlink(root.join("crates"), bench.path().join("crates")).unwrap();
    let text = include_str!("../../../examples/own-program.toml");
    std::fs::write(examples.join("own-program.toml"), bench.here(text)).unwrap();
    let writes = || Writes::read(&bench.path().join("plant.jsonl"));
    let accepted = || {
        writes()
            .accepted()
            .map(|write| write.epoch)
            .collect::<Vec<_>>()
    };
    let (mut services, mut nodes) = (Vec::new(), Vec::new());
    for line in commands("## Your own program\n") {
        match line.split_whitespace().nth(1).unwrap() {
            "plant" => services.push(bench.start(&line, &["--log", "plant.jsonl"])),
            "witness" => services.push(bench.start(&line, &[])),
            "run" => nodes.push(bench.start(&line, &[])),
            _ => wait_until(&line, || outcome(&bench.output(&line)).2 == Some(0)),
        }
    }
    wait_until("outputs reach the plant, and states the backup", || {
        let line = "bumpless status examples/own-program.toml --json --node";
        let synced = ["left", "right"].map(|node| {
            let (said, ..) = outcome(&bench.output(&format!("{line} {node}")));
            said.contains("\"redundancy\": \"ok\"") || said.contains("\"redundancy\":\"ok\"")
        });
        accepted().len() > 10 && synced == [true, true]
    });
    let line = "bumpless status examples/own-program.toml --node left";
    let (said, ..) = outcome(&bench.output(line));
    let primary = usize::from(!said.contains(": primary in epoch"));
    let before = accepted().last().copied();
    nodes.remove(primary).kill();
    wait_until("the other one goes on", || {
        accepted().last().copied() > before
    });
    writes().judge();
    drop(nodes);
    drop(services);
}

/// Runs the lines of the section below `heading` in a shell, in a folder that has what the repository has; the
/// demonstration at their end until its pair is started, which it is only for a program that can be made redundant.
fn followed(heading: &str, instead: impl Fn(&Path, &str) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["examples", "crates"] {
        let there = root.join(name).canonicalize().unwrap();
        std::os::unix::fs::symlink(there, folder.path().join(name)).unwrap();
    }
    let bin = Path::new(BUMPLESS).parent().unwrap().display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(folder.path());
        command.env("PATH", &path).env("TMPDIR", folder.path());
        command.stdin(Stdio::null());
        command
    };
    let (mut exports, mut done) = (String::new(), Vec::new());
    for line in commands(heading) {
        let script = format!("{exports}exec {line}");
        if line.starts_with("export ") {
            exports += &format!("{line}\n");
        } else if line.starts_with("bumpless demo ") {
            starts(shell(&script));
            done.push("demo");
        } else if !instead(folder.path(), &line) {
            let output = shell(&script).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{line}: {said}");
            let told = String::from_utf8_lossy(&output.stdout);
            if line.starts_with("bumpless program test ") {
                assert!(told.contains(": can be made redundant"), "{told}");
                done.push("test");
            }
        }
    }
    assert_eq!(done, ["test", "demo"], "{heading}");
}

/// The demonstration tells that it starts its pair, and ends when it is asked to.
fn starts(mut demo: Command) {
    let mut demo = demo
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(demo.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    for line in lines.map_while(Result::ok) {
        if line.contains("starting plant, witnesses and controllers") {
            let pid = i32::try_from(demo.id()).unwrap();
            // SAFETY: it takes two integers; the child has not been waited for.
            assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
        }
        said.push(line);
    }
    demo.wait().unwrap();
    let said = said.join("\n");
    assert!(
        said.contains("starting plant") && said.contains("ended early"),
        "{said}"
    );
}

/// Skips the test unless this program answers.
fn need(program: &str) {
    if Command::new(program).arg("--version").output().is_err() {
        bumpless_testing::skip(&format!("needs {program}"));
    }
}

fn the_readmes_plc_program_is_built_tried_and_shown() {
    need("cc");
    followed("### A PLC program\n", |_, _| false);
}

fn the_readmes_program_in_python_is_tried_and_shown() {
    need("python3");
    followed("### A program in Python\n", |_, _| false);
}

fn the_readmes_program_in_c_is_built_tried_and_shown() {
    need("cc");
    followed("### A program in C\n", |_, _| false);
}

/// Where the compiler lacks the target, the same program from its text.
#[cfg(feature = "wasm")]
fn the_readmes_webassembly_module_is_built_tried_and_shown() {
    let text = include_str!("../../../examples/programs/level.wat");
    followed("### A WebAssembly module\n", |folder, line| {
        let words: Vec<_> = line.split_whitespace().collect();
        if words[0] != "rustc" {
            return false;
        }
        let compiled = Command::new("rustc")
            .args(&words[1..])
            .current_dir(folder)
            .output();
        if !compiled.is_ok_and(|output| output.status.success()) {
            std::fs::write(folder.join("level.wasm"), wat::parse_str(text).unwrap()).unwrap();
        }
        true
    });
}

#[cfg(not(feature = "wasm"))]
fn the_readmes_webassembly_module_is_built_tried_and_shown() {
    bumpless_testing::skip("needs a build with --features wasm");
}

bumpless_testing::tests![
    the_readme_word_for_word_gives_a_pair_that_switches_over_and_changes,
    the_readme_word_for_word_gives_a_pair_with_a_key_file,
    the_readmes_program_goes_on_when_the_primary_is_killed,
    the_readmes_plc_program_is_built_tried_and_shown,
    the_readmes_program_in_python_is_tried_and_shown,
    the_readmes_program_in_c_is_built_tried_and_shown,
    the_readmes_webassembly_module_is_built_tried_and_shown,
];
