//! Retained variables of a PLC program: what goes on where a pair begins anew, after a stop of both computers that was
//! longer than its states may be gone on from, and in another version of the program. The real program as separate
//! processes.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use bumpless_controller::retain::Record;
use bumpless_node::persist::format::parse;
use serde_json::Value;
use support::plc::{self, BATCHES, PHASE, build_project, need_compiler, rows, start_device};
use support::process::{Process, said};
use support::site::Site;
use support::state_file::forge;
use support::{json_lines, wait_for, wait_until};

const NODES: [&str; 2] = ["left", "right"];
/// No stall of the machine is as long.
const LONG_MS: u32 = 120_000;
/// A node that holds nothing waits so long before it begins alone.
const SHORT_MS: u32 = 5_000;
const COUNT: &str = "CONFIG0.RES0.TANK0.COUNTED.CV";

/// A pair that runs the example with this changed and has counted a batch that is on both disks; its device runs.
fn running(hot_restart_ms: u32, change: impl FnOnce(&Path)) -> (Site, Process) {
    need_compiler();
    let mut plan = plc::plan().keeping("persist_every_ms = 1");
    plan.group = format!("hot_restart_ms = {hot_restart_ms}");
    let mut site = Site::new(plan);
    let project = plc::project(&site, "project");
    change(&project);
    build_project(&project, &site.path("plc"));
    let table = site.path("rows.csv");
    fs::write(&table, rows()).unwrap();
    site.start_witnesses();
    let device = start_device(&site, &table);
    NODES.iter().for_each(|node| site.start(node));
    site.await_redundant("tank");
    for node in NODES {
        wait_until("a batch is counted and on disk", || {
            counted(&site, node) > Some(0)
        });
    }
    (site, device)
}

fn file(site: &Site, node: &str) -> PathBuf {
    site.path(&format!("{node}.states/black-box-{node}-batch.state"))
}

/// The value of the counter in the record that `node` has on disk.
fn counted(site: &Site, node: &str) -> Option<u16> {
    let bytes = fs::read(file(site, node)).ok()?;
    let file = parse(&bytes).expect("a file is always whole");
    let count = file.retained.entries().find(|it| it.name == COUNT)?;
    assert_eq!(count.of, "INT");
    Some(u16::from_le_bytes(
        count.value.try_into().expect("two bytes"),
    ))
}

/// Both files are older than the process permits.
fn age(site: &Site) {
    for node in NODES {
        forge(&file(site, node), |file| {
            file.published_ns -= 3_600_000_000_000
        });
    }
}

/// The first write that the device takes in an epoch above `epoch`.
fn first_above(site: &Site, epoch: u64) -> Value {
    wait_for("a write", || {
        let lines = json_lines(&site.path("plant.jsonl"));
        let later = |line: &Value| line["accepted"] == true && line["epoch"].as_u64() > Some(epoch);
        lines.into_iter().find(later)
    })
}

/// It is the first cycle of a sequence that begins anew, with as many batches counted as the node that wrote it had.
fn is_anew_with(site: &Site, write: &Value, counts: &[u16; 2]) -> u16 {
    let (primary, ..) = site.await_redundant("tank");
    let count = counts[usize::from(primary == "right")];
    assert_eq!(write["cycle"], 1, "{write}");
    let outputs = &write["outputs"];
    assert_eq!(outputs[BATCHES].as_f64(), Some(f64::from(count)), "{write}");
    // Filling at most, since the start may be asked for at once.
    assert!(outputs[PHASE].as_f64() < Some(2.0), "{write}");
    count
}

/// What the newest `retained` of `node` says.
fn told(site: &Site, node: &str) -> String {
    let events = site.events_of(node, "retained");
    let cause = events.last().and_then(|event| event["cause"].as_str());
    cause.unwrap_or_default().to_owned()
}

fn weakness(site: &Site, node: &str, part: &str) {
    let wanted = |event: &Value| event["cause"].as_str().unwrap().contains(part);
    site.await_event(node, "weakness", wanted);
}

/// Ends both nodes, the backup first, so that it does not take over; returns the primary and its epoch.
fn end_both(site: &mut Site, orderly: bool) -> (String, u64) {
    let (primary, backup, epoch) = site.await_redundant("tank");
    for node in [&backup, &primary] {
        match orderly {
            true => site.interrupt(node),
            false => site.kill(node),
        }
    }
    (primary, epoch)
}

fn the_retained_counter_goes_on_and_the_rest_begins_anew_after_both_were_stopped_for_too_long() {
    let (mut site, device) = running(LONG_MS, |_| ());
    for orderly in [false, true] {
        let (_, epoch) = end_both(&mut site, orderly);
        let counts = NODES.map(|node| counted(&site, node).unwrap());
        assert!(counts.iter().all(|&count| count > 0));
        age(&site);
        NODES.iter().for_each(|node| site.start(node));
        let count = is_anew_with(&site, &first_above(&site, epoch), &counts);
        let (primary, ..) = site.await_redundant("tank");
        assert!(told(&site, &primary).ends_with("from disk: 1 retained"));
        let shown = site.await_status("it says what was kept", &primary, |status| {
            status["applications"][0]["program"]["retained"]["taken"] == 1
        });
        assert_eq!(
            shown["applications"][0]["program"]["retained"]["lacking"],
            0
        );
        weakness(&site, &primary, "too old");
        let other = NODES.iter().find(|node| **node != primary).unwrap();
        assert!(
            site.events_of(other, "retained").len() <= 1,
            "the backup took nothing over"
        );
        wait_until("the count goes on", || {
            counted(&site, &primary) > Some(count)
        });
    }
    site.interrupt_all();
    device.interrupt();
    site.writes().judge_epochs();
}

/// K-20: records are not carried between nodes; whoever was started alone begins with its own, and epochs go on above it.
fn a_node_that_is_started_first_begins_with_its_own_record_and_the_other_follows() {
    let (mut site, device) = running(SHORT_MS, |_| ());
    let (last, epoch) = end_both(&mut site, false);
    let other = NODES.into_iter().find(|node| *node != last).unwrap();
    age(&site);
    let mut bytes = vec![COUNT.len() as u8];
    bytes.extend(COUNT.as_bytes());
    bytes.extend(b"\x03INT\0\0\0\x02\x16\0");
    let record = Record::parse(bytes.leak()).unwrap();
    forge(&file(&site, other), |file| {
        // It has been primary since.
        file.progress.epoch.0 += 11;
        file.retained = record;
    });
    site.start(other);
    let first = first_above(&site, epoch);
    site.start(&last);
    is_anew_with(&site, &first, &[22, 22]);
    assert!(first["epoch"].as_u64() > Some(epoch + 11), "{first}");
    wait_until("the other one has the count", || {
        counted(&site, &last) >= Some(22)
    });
    site.interrupt_all();
    device.interrupt();
}

/// Global variables of a project: what declares each in C, its name, its type.
fn with_globals(project: &Path, globals: &[(&str, &str, &str)]) {
    let replace = |name: &str, from: &str, to: String| {
        let path = project.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name}");
        fs::write(&path, text.replacen(from, &format!("{to}{from}"), 1)).unwrap();
    };
    let declared = |(c, name, _): &(&str, &str, &str)| {
        format!("struct {{ {c} value; BYTE flags; }} CONFIG0__{name} = {{7, 0}};\n")
    };
    replace(
        "Config0.c",
        "void RES0_init__",
        globals.iter().map(declared).collect(),
    );
    let listed = |(_, name, of): &(&str, &str, &str)| {
        format!("99;VAR;CONFIG0.{name};CONFIG0.{name};{of};\n")
    };
    replace(
        "VARIABLES.csv",
        "0;FB;",
        globals.iter().map(listed).collect(),
    );
    let retained = |(_, name, _): &(&str, &str, &str)| format!("\"CONFIG0.{name}\", ");
    replace(
        "io.toml",
        "\"CONFIG0.RES0",
        globals.iter().map(retained).collect(),
    );
}

fn another_version_of_the_program_takes_over_what_has_the_same_name_and_type() {
    let before = [("UINT", "SHIFTS", "UINT"), ("int16_t", "SUM", "INT")];
    let after = [
        ("UINT", "TURNS", "UINT"),
        ("int32_t", "SUM", "DINT"),
        ("BOOL", "EXTRA", "BOOL"),
    ];
    let (mut site, device) = running(LONG_MS, |project| with_globals(project, &before));
    let (_, epoch) = end_both(&mut site, false);
    let counts = NODES.map(|node| counted(&site, node).unwrap());
    let project = plc::project(&site, "later");
    with_globals(&project, &after);
    build_project(&project, &site.path("plc"));
    NODES.iter().for_each(|node| site.start(node));
    is_anew_with(&site, &first_above(&site, epoch), &counts);
    let (primary, ..) = site.await_redundant("tank");
    let said = "1 retained, 1 of another type, 1 no longer there, 2 not kept before: ";
    assert!(
        told(&site, &primary).contains(said),
        "{}",
        told(&site, &primary)
    );
    let names = "CONFIG0.SUM (DINT, not INT); CONFIG0.SHIFTS; CONFIG0.EXTRA, CONFIG0.TURNS";
    for node in NODES {
        assert!(
            site.node(node).said().contains(&format!("{said}{names}")),
            "{node}"
        );
        weakness(&site, node, "is not gone on from");
        let mut aside = file(&site, node).into_os_string();
        aside.push(".refused");
        assert!(parse(&fs::read(aside).unwrap()).is_ok());
    }
    site.interrupt_all();
    device.interrupt();
}

fn check_says_what_is_retained_and_warns_if_nothing_is_kept_on_disk() {
    need_compiler();
    for keeps in [true, false] {
        let plan = plc::plan();
        let site = Site::new(if keeps { plan.keeping("") } else { plan });
        plc::build(&site, &site.path("plc"));
        let config = site.config().display().to_string();
        let (stdout, stderr, status) = said(&["check", &config, "--json"]);
        assert_eq!(status, Some(0), "{stderr}");
        let told: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(told["programs"][0]["retained"], serde_json::json!([COUNT]));
        let weak = told["weaknesses"].as_array().unwrap();
        let weak = weak
            .iter()
            .find(|it| it["code"] == "retained-in-memory-alone");
        assert_eq!(weak.is_none(), keeps, "{weak:?}");
        let (text, ..) = said(&["check", &config]);
        assert!(text.contains(&format!("'batch' retains {COUNT}")), "{text}");
        assert_eq!(text.contains("set persist = \"file\""), !keeps, "{text}");
    }
}

bumpless_testing::tests![
    the_retained_counter_goes_on_and_the_rest_begins_anew_after_both_were_stopped_for_too_long,
    a_node_that_is_started_first_begins_with_its_own_record_and_the_other_follows,
    another_version_of_the_program_takes_over_what_has_the_same_name_and_type,
    check_says_what_is_retained_and_warns_if_nothing_is_kept_on_disk,
];
