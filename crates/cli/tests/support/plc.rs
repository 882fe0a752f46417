//! The example's PLC program on a pair, with a device that answers it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::plan::Plan;
use super::process::{Process, said};
use super::site::Site;

/// Inputs and outputs in the order of the example's `io.toml`.
pub const INPUTS: usize = 3;
pub const OUTPUTS: usize = 6;
/// Of the outputs: batches counted, and the phase of the sequence.
pub const BATCHES: usize = 4;
pub const PHASE: usize = 5;

/// A tank that fills and empties by itself, so that each phase is come to; a row for each cycle, over and over.
pub fn rows() -> String {
    let mut text = "start,level,temperature\n".to_owned();
    let mut level = 0.0_f64;
    for row in 0..100 {
        level = (level + if row < 30 { 4.0 } else { -2.0 }).clamp(0.0, 100.0);
        let start = u8::from(row % 20 == 3);
        let _ = writeln!(text, "{start},{level},{}", 20 + row * 7 % 50);
    }
    text
}

pub fn plan() -> Plan {
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
pub fn build(site: &Site, program: &Path) {
    let project = project(site, "project");
    build_project(&project, program);
}

/// A copy of the example with twice the period, in the folder `name`.
pub fn project(site: &Site, name: &str) -> PathBuf {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/programs/plc");
    let project = site.path(name);
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
    project
}

/// Builds the project in the folder `project`.
pub fn build_project(project: &Path, program: &Path) {
    let [project, program] = [project, program].map(|path| path.to_str().unwrap());
    let (_, stderr, status) = said(&["program", "build", project, "--output", program]);
    assert_eq!(status, Some(0), "{stderr}");
}

pub fn need_compiler() {
    if Command::new("cc").arg("--version").output().is_err() {
        bumpless_testing::skip("needs a C compiler");
    }
}

/// The device of `demo --program` in the plant's place, which gives the next row after each output.
pub fn start_device(site: &Site, rows: &Path) -> Process {
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
