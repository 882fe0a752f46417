//! Programs of users on a pair: the real program as separate processes on loopback addresses. The one in a process of its
//! own is this file's binary, started again by the nodes.

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "wasm")]
mod modules;
mod stopped;
mod together;
mod versions;

use std::env;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use bumpless_program::{Cycle, Program, layout, run, state};
#[cfg(feature = "wasm")]
use modules::{
    a_modules_next_version_goes_on_with_what_it_makes_of_the_state_through_kills, module,
};
use serde_json::Value;
#[cfg(feature = "wasm")]
use stopped::a_module_that_fails_on_both_is_handed_over_once_and_its_safe_values_are_written;
use stopped::{
    LAST, MENDED, STAYS, WAIT, a_process_that_ends_after_each_answer_is_told_of_and_stopped,
    a_process_that_fails_on_both_is_handed_over_once_and_its_safe_values_are_written,
    a_process_that_had_no_processor_on_both_nodes_goes_on_by_itself_when_it_has,
    a_program_that_is_stopped_on_both_goes_on_from_its_state_when_that_is_ordered,
};
use support::plan::Plan;
use support::process::said;
use support::site::Site;
use support::{json_lines, wait_until};
use together::{
    a_primary_killed_in_mid_change_leaves_both_before_or_both_next,
    of_two_versions_one_that_cannot_convert_keeps_both_from_it,
    two_versions_change_together_and_none_before_writes_after,
    who_takes_over_right_after_the_moment_runs_both_next_versions,
};
use versions::{
    MORE, a_program_that_is_stopped_on_both_goes_on_when_a_mended_version_is_applied,
    a_program_whose_file_says_fresh_begins_anew,
    a_version_that_converts_goes_on_with_what_it_makes_of_the_state_through_a_kill,
    a_version_with_states_of_its_own_is_refused_before_anything_changes,
    another_version_of_a_program_goes_on_with_the_state_of_the_one_that_runs,
};

const PERIOD_MS: u64 = 50;
/// What a late program takes to begin: most of what it may.
const LATE: Duration = Duration::from_secs(3);

state! {
    /// What the program remembers.
    pub struct Memory { sum: f64, count: u64 }
}

/// Outputs that depend on every cycle before, and on nothing else.
fn step(memory: &mut Memory) -> [f64; 2] {
    memory.count += 1;
    let sum = memory.sum * 1.25 + memory.count as f64;
    memory.sum = sum - 10.0 * (sum / 10.0).floor();
    [memory.sum, (memory.count % 10) as f64]
}

/// Whether there is a file of this name beside the program.
fn is_beside(name: &str) -> Result<bool, String> {
    let here = env::current_exe().map_err(|error| error.to_string())?;
    Ok(here.with_file_name(name).exists())
}

/// Which of all conversions since the pair has begun this is, on either node, from 1.
fn number_of_conversion() -> Result<u64, String> {
    let count = || {
        let path = env::current_exe()?.with_file_name("conversions");
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        file.write_all(&[0])?;
        file.metadata()
    };
    count()
        .map(|it| it.len())
        .map_err(|error| error.to_string())
}

/// The same as a process, whose author gives its state's layout this version.
struct Build<const STATE_VERSION: u64>;

impl<const VERSION: u64> Program for Build<VERSION> {
    type State = Memory;
    const INPUTS: usize = 3;
    const OUTPUTS: usize = 2;
    const STATE_VERSION: u64 = VERSION;

    fn step(_: Cycle, _: &[f64], outputs: &mut [f64], memory: &mut Memory) -> Result<(), String> {
        outputs.copy_from_slice(&step(memory));
        if env::args().any(|word| word == "waits") {
            while is_beside(WAIT)? {
                thread::sleep(Duration::from_millis(1));
            }
        }
        if env::args().any(|word| word == "leaves") && memory.count > STAYS {
            thread::spawn(|| {
                // As a rule it has answered by then, and the next cycle has not begun; it is a failure in either case.
                thread::sleep(Duration::from_millis(5));
                std::process::exit(4);
            });
        }
        if env::args().any(|word| word == "more") {
            outputs[1] += MORE;
        }
        let fails = env::args().any(|word| word == "fails");
        match fails && memory.count > LAST && !is_beside(MENDED)? {
            true => Err("the valve is stuck".into()),
            false => Ok(()),
        }
    }
}

state! {
    /// What a program remembers that has more to remember.
    pub struct More { memory: Memory, trips: u64 }
}

/// One whose author has forgotten to say so.
struct Longer;

impl Program for Longer {
    type State = More;
    const INPUTS: usize = 3;
    const OUTPUTS: usize = 2;
    const STATE_VERSION: u64 = 1;

    fn step(
        cycle: Cycle,
        inputs: &[f64],
        outputs: &mut [f64],
        more: &mut More,
    ) -> Result<(), String> {
        Build::<1>::step(cycle, inputs, outputs, &mut more.memory)
    }
}

/// The next version, which remembers more, and converts; in the word's way.
struct Wider;

impl Program for Wider {
    type State = More;
    const INPUTS: usize = 3;
    const OUTPUTS: usize = 2;
    const STATE_VERSION: u64 = 3;
    const CONVERTS: bool = true;

    fn step(
        cycle: Cycle,
        inputs: &[f64],
        outputs: &mut [f64],
        more: &mut More,
    ) -> Result<(), String> {
        more.trips += 1;
        Build::<1>::step(cycle, inputs, outputs, &mut more.memory)
    }

    fn convert(version: u64, old: &[u8], more: &mut More) -> Result<(), String> {
        let word = |wanted: &str| env::args().any(|word| word == wanted);
        let Some((sum, count)) = old.split_first_chunk::<8>().filter(|_| version == 1) else {
            return Err(format!("version {version} is none that it knows"));
        };
        more.memory.sum = f64::from_ne_bytes(*sum);
        if word("refuses") || (word("falters") && matches!(number_of_conversion()?, 5..=7)) {
            return Err("the count is odd".into());
        }
        while word("loops") {
            std::hint::black_box(&more);
        }
        if word("dies") {
            std::process::abort();
        }
        let count = count.first_chunk::<8>().ok_or("too short")?;
        more.memory.count = u64::from_ne_bytes(*count);
        Ok(())
    }
}

/// What the plant was told in each cycle, in a run without faults: the registers have 32 bits.
fn expected(cycle: u64) -> [f32; 2] {
    let mut memory = Memory { sum: 0.0, count: 0 };
    let outputs = (0..cycle).map(|_| step(&mut memory)).last();
    outputs.unwrap().map(|value| value as f32)
}

/// A pair that runs `kind` with these further lines on the plant, and the program's file, which nobody has put there yet.
fn plan(kind: &str, more: &str, safe: [&str; 2]) -> Plan {
    let mut plan = Plan::pair(2);
    let mut text = format!(
        "[[application]]\nname = \"ramp\"\ngroup = \"tank\"\nkind = \"{kind}\"\nchannel = 1\n\
         period_ms = {PERIOD_MS}\nfile = \"ramp\"\nstate_max = 4096\nexecute_limit_ms = 20\n{more}\n\
         [application.field]\ntimeout_ms = 20\n\n\
         [[application.field.device]]\nname = \"plant\"\naddress = \"{}\"\n\
         epoch_register = 10\ncycle_register = 12\n\n",
        plan.plant
    );
    for (name, register) in [("one", 0), ("two", 2), ("time", 8)] {
        text += &format!(
            "[[application.input]]\nname = \"{name}\"\ndevice = \"plant\"\nregister = {register}\n\n"
        );
    }
    for (name, safe) in ["left", "right"].into_iter().zip(safe) {
        text += &format!(
            "[[application.output]]\nname = \"{name}\"\ndevice = \"plant\"\narea = \"block\"\n{safe}\n\n"
        );
    }
    plan.applications.push(text);
    plan
}

/// Puts this file's binary where the configuration says.
fn put_process(site: &Site, name: &str) {
    let file = site.path(name);
    fs::copy(env::current_exe().unwrap(), &file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Cycle and outputs of each write that the plant has accepted.
fn written(site: &Site) -> Vec<(u64, [f32; 2])> {
    let lines = json_lines(&site.path("plant.jsonl"));
    let writes = lines
        .iter()
        .filter(|line| line["type"] == "write" && line["accepted"] == true);
    let write = |line: &Value| {
        let output = |at: usize| line["outputs"][at].as_f64().unwrap() as f32;
        (line["cycle"].as_u64().unwrap(), [output(0), output(1)])
    };
    writes.map(write).collect()
}

/// Kills the primary again and again; every output is that of its cycle in a run without faults.
fn goes_on_from_its_last_state(mut site: Site) {
    site.start_witnesses();
    site.start_plant(&["--check-epoch"]);
    site.start("left");
    site.start("right");
    let (mut primary, mut backup, mut epoch) = site.await_redundant("tank");
    for _ in 0..3 {
        site.await_writes(5);
        site.kill(&primary);
        let higher = site.await_primary(&backup, "tank");
        assert!(higher > epoch);
        site.await_write_in(higher);
        site.start(&primary);
        (primary, backup, epoch) = site.await_redundant("tank");
    }
    site.await_writes(5);
    site.writes().judge();
    let written = written(&site);
    for (cycle, outputs) in &written {
        assert_eq!(*outputs, expected(*cycle), "cycle {cycle}");
    }
    let begun_anew = written.windows(2).any(|pair| pair[1].0 < pair[0].0);
    assert!(!begun_anew && written.last().is_some_and(|(cycle, _)| *cycle > 20));
}

#[cfg(feature = "wasm")]
fn a_webassembly_program_goes_on_from_its_last_state_when_its_computer_is_killed() {
    let site = Site::new(plan("wasm", "", ["", ""]));
    fs::write(site.path("ramp"), module(u64::MAX >> 1)).unwrap();
    goes_on_from_its_last_state(site);
}

fn a_process_of_its_own_goes_on_from_its_last_state_when_its_computer_is_killed() {
    let site = Site::new(plan("process", "arguments = [\"play\"]", ["", ""]));
    put_process(&site, "ramp");
    goes_on_from_its_last_state(site);
}

fn a_node_with_another_program_is_refused_like_one_with_another_configuration() {
    let mut site = Site::new(plan("process", "", ["", ""]));
    put_process(&site, "ramp");
    site.start_surroundings();
    site.start("left");
    site.await_primary("left", "tank");
    // The running one keeps its file; a version to come is put in its place.
    fs::remove_file(site.path("ramp")).unwrap();
    put_process(&site, "ramp");
    let mut bytes = fs::read(site.path("ramp")).unwrap();
    bytes.push(0);
    fs::write(site.path("ramp"), bytes).unwrap();
    site.start("right");
    site.await_event("left", "configuration_differs", |_| true);
    let role = site.group("right", "tank").unwrap();
    assert_ne!(role["role"], "primary");
}

/// What the system says in `what` of the process that runs this file (proc(5)).
fn of_process(file: &Path, what: &str) -> Option<String> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut own =
        processes.filter(|it| fs::read_link(it.path().join("exe")).is_ok_and(|exe| exe == file));
    fs::read_to_string(own.next()?.path().join(what)).ok()
}

/// Its real-time priority and scheduling policy (fields 40 and 41).
fn scheduled(file: &Path) -> Option<(String, String)> {
    let stat = of_process(file, "stat")?;
    let fields: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some((fields[37].to_owned(), fields[38].to_owned()))
}

fn a_process_of_its_own_has_a_priority_below_that_of_who_stops_it() {
    bumpless_testing::need_root();
    let mut plan = plan("process", "", ["", ""]);
    plan.applications.push("[realtime]\npriority = 5\n".into());
    let mut site = Site::new(plan);
    put_process(&site, "ramp");
    site.start_surroundings();
    site.start("left");
    let file = site.path("ramp").canonicalize().unwrap();
    // It has it when it has begun.
    wait_until("a priority of 3 among real-time processes", || {
        scheduled(&file) == Some(("3".into(), "1".into()))
    });
}

/// G-10, H-47: what its file allows it, and who ends first where the computer has none left.
fn a_process_of_its_own_has_no_more_memory_than_its_file_allows() {
    let mut site = Site::new(plan("process", "memory_max = \"1 GiB\"", ["", ""]));
    put_process(&site, "ramp");
    site.start_surroundings();
    site.start("left");
    site.await_primary("left", "tank");
    let file = site.path("ramp").canonicalize().unwrap();
    let limits = of_process(&file, "limits").unwrap();
    let of_addresses = limits
        .lines()
        .find(|it| it.starts_with("Max address space"));
    let of_addresses: Vec<_> = of_addresses.unwrap().split_whitespace().collect();
    assert_eq!(of_addresses[3..5], ["1073741824"; 2], "{limits}");
    let score = of_process(&file, "oom_score_adj").unwrap();
    assert_eq!(score.trim(), "1000");
}

/// Nobody waits for the data plane until it has begun.
fn what_a_program_takes_to_begin_is_no_stall_of_its_node() {
    let mut site = Site::new(plan("process", "arguments = [\"late\"]", ["", ""]));
    put_process(&site, "ramp");
    site.start_surroundings();
    site.start("left");
    site.await_primary("left", "tank");
    let stalls = site.events_of("left", "stall").into_iter();
    let lengths = stalls.map(|stall| stall["length_us"].as_f64().unwrap());
    let longest = lengths.fold(0.0, f64::max);
    assert!(longest < LATE.as_micros() as f64, "{longest} us");
}

#[cfg(feature = "wasm")]
fn a_webassembly_program_runs_in_the_simulator_under_faults_and_the_same_to_the_byte() {
    let site = Site::new(plan("wasm", "", ["", ""]));
    fs::write(site.path("ramp"), module(u64::MAX >> 1)).unwrap();
    let config = site.config().display().to_string();
    let simulated = || {
        let (stdout, stderr, status) =
            said(&["sim", "--config", &config, "--time", "30", "--json"]);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        serde_json::from_str::<Value>(&stdout).unwrap()
    };
    let [once, again] = [simulated(), simulated()];
    assert_eq!(once["trace_hash"], again["trace_hash"]);
    assert_eq!(
        (&once["ok"], &once["violations"]),
        (&true.into(), &Value::Array(Vec::new()))
    );
    assert!(once["faults"].as_u64() > Some(0), "{once}");
    let gap = once["longest_gap_ms"]["ramp"].as_f64();
    assert!(gap > Some(0.0), "{once}");
}

fn what_cannot_be_simulated_says_so() {
    let site = Site::new(plan("process", "arguments = [\"play\"]", ["", ""]));
    put_process(&site, "ramp");
    let config = site.config().display().to_string();
    let (stdout, stderr, status) = said(&["sim", "--config", &config]);
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    assert!(
        stderr.contains("'ramp' is a process of its own") && stderr.contains("WebAssembly"),
        "{stderr}"
    );
}

/// What this process was started as, if it was as a program.
fn played() -> Option<ExitCode> {
    env::var_os(layout::VARIABLE)?;
    let is = |word: &str| env::args().any(|other| other == word);
    if is("ends at once") {
        return Some(ExitCode::FAILURE);
    }
    if is("late") {
        thread::sleep(LATE);
    }
    if is("wider") {
        return Some(run::<Wider>());
    }
    Some(match (is("other layout"), is("longer")) {
        (true, _) => run::<Build<2>>(),
        (_, true) => run::<Longer>(),
        _ => run::<Build<1>>(),
    })
}

/// A test with its name.
macro_rules! named {
    ($($test:ident),+ $(,)?) => {
        [$((stringify!($test), $test as fn())),+]
    };
}

fn main() -> ExitCode {
    if let Some(code) = played() {
        return code;
    }
    let tests = named![
        a_process_that_ends_after_each_answer_is_told_of_and_stopped,
        a_program_whose_file_says_fresh_begins_anew,
        a_version_that_converts_goes_on_with_what_it_makes_of_the_state_through_a_kill,
        a_process_of_its_own_goes_on_from_its_last_state_when_its_computer_is_killed,
        a_process_that_had_no_processor_on_both_nodes_goes_on_by_itself_when_it_has,
        a_process_that_fails_on_both_is_handed_over_once_and_its_safe_values_are_written,
        a_program_that_is_stopped_on_both_goes_on_from_its_state_when_that_is_ordered,
        another_version_of_a_program_goes_on_with_the_state_of_the_one_that_runs,
        a_version_with_states_of_its_own_is_refused_before_anything_changes,
        a_program_that_is_stopped_on_both_goes_on_when_a_mended_version_is_applied,
        a_node_with_another_program_is_refused_like_one_with_another_configuration,
        a_process_of_its_own_has_a_priority_below_that_of_who_stops_it,
        a_process_of_its_own_has_no_more_memory_than_its_file_allows,
        what_a_program_takes_to_begin_is_no_stall_of_its_node,
        two_versions_change_together_and_none_before_writes_after,
        who_takes_over_right_after_the_moment_runs_both_next_versions,
        a_primary_killed_in_mid_change_leaves_both_before_or_both_next,
        of_two_versions_one_that_cannot_convert_keeps_both_from_it,
        what_cannot_be_simulated_says_so,
    ];
    #[cfg(feature = "wasm")]
    let tests = [
        &tests[..],
        &named![
            a_webassembly_program_goes_on_from_its_last_state_when_its_computer_is_killed,
            a_module_that_fails_on_both_is_handed_over_once_and_its_safe_values_are_written,
            a_modules_next_version_goes_on_with_what_it_makes_of_the_state_through_kills,
            a_webassembly_program_runs_in_the_simulator_under_faults_and_the_same_to_the_byte,
        ],
    ]
    .concat();
    bumpless_testing::run(&tests)
}
