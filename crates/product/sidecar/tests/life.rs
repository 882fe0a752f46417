//! Programs are started, live with their host, and leave nothing behind (H-13 to H-16, H-20).

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command as Tool, Stdio};
use std::thread;

use bumpless_base::Duration;
use bumpless_sidecar::{Command, Hash, HowItEnded, Limits, Shape, Sidecar, StartCause, StartFault};
use common::programs::{HOST, order};
use common::{own, patient, run_when_ready, started, until};

const SUM: Shape = Shape {
    inputs: 2,
    outputs: 2,
    state_max: 64,
};

/// Whether the process is there, as one that is not a zombie.
fn lives(id: u32) -> bool {
    state(id).is_some_and(|state| state != 'Z')
}

/// The letter by which the kernel tells the state of a process.
fn state(id: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The number of the process's group.
fn group(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

/// Processes whose parent this one is.
fn children() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").expect("the threads of this process");
    let lists =
        tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let all: Vec<String> = lists.collect();
    let words = all.iter().flat_map(|list| list.split_whitespace());
    words.filter_map(|word| word.parse().ok()).collect()
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn fault(command: &Command, shape: Shape, limits: Limits) -> StartFault {
    let started = Sidecar::start(command, shape, limits);
    started.err().expect("it must not start")
}

fn a_program_ends_with_its_handle_and_leaves_nothing() {
    // Another test's programs would be counted, too, so this one has a process of its own.
    let host = Tool::new(std::env::current_exe().expect("this program"))
        .env(HOST, "count")
        .status();
    assert!(host.is_ok_and(|status| status.success()));
}

/// What [`a_program_ends_with_its_handle_and_leaves_nothing`] runs.
fn count() {
    let before = (children(), open_files());
    assert!(before.0.is_empty(), "{:?}", before.0);
    for round in 0..20 {
        let mut sidecar = started(&own("sum"), SUM, patient());
        let mut outputs = [0.0; 2];
        if round % 2 == 0 {
            run_when_ready(&mut sidecar, 1, &[1.0, 0.0], &mut outputs);
        } else {
            let _ = sidecar.run_cycle(&common::context(1), &[1.0, order::ABORT], &mut outputs);
        }
        drop(sidecar);
        assert_eq!((children(), open_files()), before, "round {round}");
    }
    for _ in 0..5 {
        fault(&own("silent"), SUM, patient());
        assert_eq!((children(), open_files()), before);
    }
    let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    assert_eq!(threads, 1);
}

/// The lines that a process of this file in the role of a host prints, and the process.
fn host(role: &str) -> (std::process::Child, u32) {
    let mut host = Tool::new(std::env::current_exe().expect("this program"))
        .env(HOST, role)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let output = host.stdout.as_mut().expect("piped");
    BufReader::new(output).read_line(&mut line).expect("a line");
    (host, line.trim().parse().expect("the program's number"))
}

fn a_program_dies_with_its_host_even_if_that_is_killed_in_a_cycle() {
    for role in ["idle", "looping", "starting"] {
        let (mut host, program) = host(role);
        assert!(lives(program), "{role}");
        host.kill().expect("it was there");
        host.wait().expect("its end");
        until("the program ends", || !lives(program));
    }
}

/// A host that prints the number of its program and stays until it is killed.
fn play_host(role: &str) {
    match role {
        "count" => return count(),
        "starting" => {
            thread::spawn(|| Sidecar::start(&own("asleep"), SUM, patient()).map(drop));
            until("a process is there", || !children().is_empty());
            println!("{}", children()[0]);
        }
        role => {
            // The thread that asks for a program may end long before the program.
            let asked = thread::spawn(|| started(&own("sum"), SUM, patient()));
            let mut sidecar = asked.join().expect("it starts");
            println!("{}", sidecar.process_id().expect("a process"));
            let ordered = if role == "looping" { order::LOOP } else { 0.0 };
            let _ = sidecar.run_cycle(&common::context(1), &[1.0, ordered], &mut [0.0; 2]);
            thread::sleep(std::time::Duration::from_secs(1000));
        }
    }
    thread::sleep(std::time::Duration::from_secs(1000));
}

fn a_program_outlives_the_thread_that_asked_for_it() {
    let asked = thread::spawn(|| started(&own("sum"), SUM, patient()));
    let mut sidecar = asked.join().expect("it starts");
    let first = sidecar.process_id();
    for cycle in 1..=50 {
        let ran = sidecar.run_cycle(&common::context(cycle), &[1.0, 0.0], &mut [0.0; 2]);
        assert_eq!(ran, Ok(()));
    }
    assert_eq!(sidecar.process_id(), first);
}

fn what_a_program_starts_ends_with_it() {
    let (mut sidecar, mut outputs) = (started(&own("sum"), SUM, patient()), [0.0; 2]);
    run_when_ready(&mut sidecar, 1, &[1.0, order::SPAWN], &mut outputs);
    let helper = outputs[1] as u32;
    assert!(lives(helper));
    drop(sidecar);
    until("the helper ends", || !lives(helper));
}

fn ctrl_c_reaches_the_host_first() {
    let sidecar = started(&own("sum"), SUM, patient());
    let program = sidecar.process_id().expect("a process");
    assert_eq!(group(program), Some(program));
    assert_ne!(group(std::process::id()), Some(program));
}

fn a_program_gets_the_priority_that_it_is_given() {
    bumpless_testing::need_root();
    let command = Command {
        realtime: Some(3),
        ..own("sum")
    };
    let sidecar = started(&command, SUM, patient());
    let id = sidecar.process_id().expect("a process");
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it lives");
    let fields: Vec<_> = stat
        .rsplit_once(") ")
        .expect("a name")
        .1
        .split(' ')
        .collect();
    // proc(5): fields 40 and 41, real-time priority and policy (1: SCHED_FIFO); the third field is the first here.
    assert_eq!((fields[37], fields[38]), ("3", "1"));
}

fn a_program_is_what_the_kernel_ends_first_where_memory_runs_out() {
    let score = |id: u32| fs::read_to_string(format!("/proc/{id}/oom_score_adj"));
    let host = score(std::process::id()).expect("it lives");
    let (mut sidecar, mut outputs) = (started(&own("sum"), SUM, patient()), [0.0; 2]);
    let id = sidecar.process_id().expect("a process");
    assert_eq!(score(id).expect("it lives").trim(), "1000");
    run_when_ready(&mut sidecar, 1, &[1.0, order::SPAWN], &mut outputs);
    let helper = score(outputs[1] as u32).expect("it lives");
    assert_eq!(helper.trim(), "1000", "so is what it starts");
    let after = score(std::process::id()).expect("it lives");
    assert_eq!(after, host, "the host is spared as before");
}

fn each_way_not_to_start_is_told_with_cause_and_remedy() {
    let place = tempfile::tempdir().expect("a folder");
    let text = place.path().join("program.txt");
    fs::write(&text, "no program").expect("a file");
    let quick = Limits {
        start: Duration::from_millis(50),
        ..patient()
    };
    let huge = Shape {
        state_max: 1 << 50,
        ..SUM
    };
    let cases: [(Command, Shape, Limits, &[&str]); 9] = [
        (
            Command::new("/nowhere/level"),
            SUM,
            patient(),
            &["/nowhere/level", "No such file", "path"],
        ),
        (
            Command::new("no-such-program"),
            SUM,
            patient(),
            &["No such file"],
        ),
        (
            Command::new(&text),
            SUM,
            patient(),
            &["Permission denied", "executable"],
        ),
        (
            own("silent"),
            SUM,
            patient(),
            &["exit status 9", "before it was ready"],
        ),
        (own("asleep"), SUM, quick, &["50 ms", "raise the limit"]),
        (
            own("sum"),
            Shape { inputs: 3, ..SUM },
            patient(),
            &["2 inputs", "configuration 3"],
        ),
        (
            own("sum"),
            Shape { outputs: 1, ..SUM },
            patient(),
            &["2 outputs", "configuration 1"],
        ),
        (
            own("sum"),
            Shape {
                state_max: 8,
                ..SUM
            },
            patient(),
            &["16 bytes", "allows 8"],
        ),
        (own("sum"), huge, patient(), &["memory to share", "lower"]),
    ];
    for (command, shape, limits, parts) in cases {
        let told = fault(&command, shape, limits).to_string();
        for part in parts {
            assert!(told.contains(part), "{part:?} in {told:?}");
        }
    }
}

fn a_file_among_its_arguments_is_neither_blamed_nor_taken_for_the_program() {
    let place = tempfile::tempdir().expect("a folder");
    let data = place.path().join("plant.toml");
    fs::write(&data, "level = 1").expect("a file");
    let absent = Command::new("/nowhere/level").argument(&data);
    let told = fault(&absent, SUM, patient()).to_string();
    assert!(
        told.starts_with("program /nowhere/level: the system does not start it"),
        "{told}"
    );
    let sidecar = started(&own("sum").argument(&data), SUM, patient());
    let file = std::env::current_exe().expect("this program");
    let own_file = Hash::of_file(&file).expect("it can be read");
    assert_eq!(sidecar.owner(), own_file.short());
    // What starts it is blamed where it is that which is not there.
    let started_by = Command::new("/nowhere/interpreter").script(&data);
    let told = fault(&started_by, SUM, patient()).to_string();
    for part in [
        "program",
        "plant.toml",
        "\"/nowhere/interpreter\", which is to start it",
    ] {
        assert!(told.contains(part), "{part:?} in {told:?}");
    }
}

fn a_program_that_is_killed_before_it_is_ready_is_told_so() {
    let fault = fault(&own("silent"), SUM, patient());
    assert!(matches!(
        fault.cause,
        StartCause::Ended(HowItEnded::Status(9))
    ));
}

fn another_file_than_the_one_agreed_on_is_not_started() {
    let file = std::env::current_exe().expect("this program");
    let right = Hash::of_file(&file).expect("it can be read");
    let command = |hash| Command {
        hash: Some((file.clone(), hash)),
        ..own("sum")
    };
    drop(started(&command(right), SUM, patient()));
    let told = fault(&command(Hash([7; 32])), SUM, patient());
    assert!(
        matches!(told.cause, StartCause::Hash { found, .. } if found == right),
        "{told}"
    );
    let missing = Command {
        hash: Some((Path::new("/nowhere").into(), right)),
        ..own("sum")
    };
    let told = fault(&missing, SUM, patient()).to_string();
    assert!(told.contains("/nowhere cannot be read"), "{told}");
}

fn main() -> std::process::ExitCode {
    let is_program = std::env::var_os(bumpless_program::layout::VARIABLE).is_some();
    if let (false, Ok(role)) = (is_program, std::env::var(HOST)) {
        play_host(&role);
        return std::process::ExitCode::SUCCESS;
    }
    test_or_program()
}

tests_and_programs!(
    test_or_program:
    a_program_ends_with_its_handle_and_leaves_nothing,
    a_program_dies_with_its_host_even_if_that_is_killed_in_a_cycle,
    a_program_outlives_the_thread_that_asked_for_it,
    what_a_program_starts_ends_with_it,
    ctrl_c_reaches_the_host_first,
    a_program_gets_the_priority_that_it_is_given,
    a_program_is_what_the_kernel_ends_first_where_memory_runs_out,
    each_way_not_to_start_is_told_with_cause_and_remedy,
    a_file_among_its_arguments_is_neither_blamed_nor_taken_for_the_program,
    a_program_that_is_killed_before_it_is_ready_is_told_so,
    another_file_than_the_one_agreed_on_is_not_started,
);
