//! A PLC program on a pair, with timers, a counter, a controller and a sequence that run: the primary is killed again and
//! again, and every output that the device took is the one of its cycle in a run without faults.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use bumpless_host::Subject;
use bumpless_host::kit::{Inputs, Table};
use bumpless_host::subject::Named;
use bumpless_lab::demo::compare_log;
use support::plan::Plan;
use support::process::{Process, said};
use support::site::Site;
use support::{json_lines, wait_until};

/// Inputs and outputs in the order of the example's `io.toml`.
const INPUTS: usize = 3;
const OUTPUTS: usize = 6;
/// Of the outputs: batches counted, and the phase of the sequence.
const BATCHES: usize = 4;
const PHASE: usize = 5;

/// How often the primary is killed; `BUMPLESS_KILLS` says otherwise.
fn kills() -> u64 {
    let told = std::env::var("BUMPLESS_KILLS").ok();
    told.and_then(|told| told.parse().ok()).unwrap_or(3)
}

/// A tank that fills and empties by itself, so that each phase is come to; a row for each cycle, over and over.
fn rows() -> String {
    let mut text = "start,level,temperature\n".to_owned();
    let mut level = 0.0_f64;
    for row in 0..100 {
        level = (level + if row < 30 { 4.0 } else { -2.0 }).clamp(0.0, 100.0);
        let start = u8::from(row % 20 == 3);
        let _ = writeln!(text, "{start},{level},{}", 20 + row * 7 % 50);
    }
    text
}

fn plan() -> Plan {
    let mut plan = Plan::pair(2);
    let mut text = format!(
        "[[application]]\nname = \"batch\"\ngroup = \"tank\"\nkind = \"plc\"\nchannel = 1\nperiod_ms = 40\n\
         file = \"plc\"\nstate_max = 4096\nexecute_limit_ms = 40\n\n[application.field]\ntimeout_ms = 20\n\n\
         [[application.field.device]]\nname = \"device\"\naddress = \"{}\"\nepoch_register = 0\ncycle_register = 2\n\n",
        plan.plant
    );
    for input in 0..INPUTS {
        let register = 8 + 4 * input;
        let _ = write!(
            text,
            "[[application.input]]\nname = \"in{input}\"\ndevice = \"device\"\nregister = {register}\ntype = \"f64\"\n\n"
        );
    }
    for output in 0..OUTPUTS {
        let _ = write!(
            text,
            "[[application.output]]\nname = \"out{output}\"\ndevice = \"device\"\narea = \"block\"\n\n"
        );
    }
    // Where it is permitted, so that on a busy computer the program is not stopped for being late.
    text += "[realtime]\npriority = 10\n";
    plan.applications.push(text);
    plan
}

/// The example with twice the period, built at `program`.
fn build(site: &Site, program: &Path) {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/programs/plc");
    let project = site.path("project");
    let copied = Command::new("cp")
        .arg("-R")
        .arg(example)
        .arg(&project)
        .status();
    assert!(copied.is_ok_and(|status| status.success()));
    let config = project.join("Config0.c");
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.contains("20000000ULL"));
    fs::write(&config, text.replace("20000000ULL", "40000000ULL")).unwrap();
    let [project, program] = [&*project, program].map(|path| path.to_str().unwrap());
    let (_, stderr, status) = said(&["program", "build", project, "--output", program]);
    assert_eq!(status, Some(0), "{stderr}");
}

fn need_compiler() {
    if Command::new("cc").arg("--version").output().is_err() {
        bumpless_testing::skip("needs a C compiler");
    }
}

/// The device of `demo --program` in the plant's place, which gives the next row after each output.
fn start_device(site: &Site, rows: &Path) -> Process {
    let (address, log) = (site.plan.plant.to_string(), site.path("plant.jsonl"));
    let arguments = [
        "demo-device",
        "--listen",
        &address,
        "--log",
        log.to_str().unwrap(),
        "--inputs",
        &INPUTS.to_string(),
        "--outputs",
        &OUTPUTS.to_string(),
        "--data",
        rows.to_str().unwrap(),
        "--priority",
        "1",
    ];
    Process::start(&arguments, &site.path("device.said"))
}

/// What was seen of one of the outputs in the writes that were accepted.
fn seen(site: &Site, output: usize) -> BTreeSet<u64> {
    let lines = json_lines(&site.path("plant.jsonl"));
    let writes = lines.iter().filter(|line| line["accepted"] == true);
    let value = |line: &serde_json::Value| line["outputs"][output].as_f64().unwrap() as u64;
    writes.map(value).collect()
}

fn a_plc_program_survives_kills_of_the_primary_cycle_by_cycle_as_without_faults() {
    need_compiler();
    let mut site = Site::new(plan());
    let (program, table) = (site.path("plc"), site.path("rows.csv"));
    build(&site, &program);
    fs::write(&table, rows()).unwrap();
    site.start_witnesses();
    let device = start_device(&site, &table);
    site.start("left");
    site.start("right");
    let (mut primary, mut backup, mut epoch) = site.await_redundant("tank");
    for _ in 0..kills() {
        site.await_writes(15);
        site.kill(&primary);
        let higher = site.await_primary(&backup, "tank");
        assert!(higher > epoch);
        site.await_write_in(higher);
        site.start(&primary);
        (primary, backup, epoch) = site.await_redundant("tank");
    }
    wait_until("timer, counter and sequence have run", || {
        seen(&site, PHASE) == BTreeSet::from([0, 1, 2, 3]) && seen(&site, BATCHES).len() > 1
    });
    site.interrupt_all();
    device.interrupt();
    site.writes().judge();
    let inputs = Inputs::Table(Table::parse(&rows()).unwrap());
    let mut subject =
        Subject::open(Named::new(&program), &|| true).unwrap_or_else(|unfit| panic!("{unfit}"));
    let compared = compare_log(&site.path("plant.jsonl"), &mut subject, &inputs).unwrap();
    let differing: Vec<_> = compared.iter().filter(|it| it.differs.is_some()).collect();
    assert!(
        differing.is_empty(),
        "{} of {}: {:?}",
        differing.len(),
        compared.len(),
        differing.first()
    );
    assert!(compared.len() > 50, "{}", compared.len());
    println!(
        "{} kills, {} outputs compared, none differs",
        kills(),
        compared.len()
    );
}

/// H-24: its tasks would run at other intervals than its author wrote down.
fn a_plc_program_with_another_period_than_its_tasks_have_in_common_is_refused_at_the_start() {
    need_compiler();
    let mut plan = plan();
    for text in &mut plan.applications {
        *text = text.replace("period_ms = 40", "period_ms = 60");
    }
    let site = Site::new(plan);
    build(&site, &site.path("plc"));
    let config = site.config().display().to_string();
    let (_, stderr, status) = said(&["run", &config, "--node", "left"]);
    assert_eq!(status, Some(1), "{stderr}");
    for part in [
        "a period of 40 ms only",
        "60 ms are configured",
        "set period_ms = 40",
    ] {
        assert!(stderr.contains(part), "{part:?} in {stderr}");
    }
}

bumpless_testing::tests![
    a_plc_program_with_another_period_than_its_tasks_have_in_common_is_refused_at_the_start,
    a_plc_program_survives_kills_of_the_primary_cycle_by_cycle_as_without_faults,
];
