//! A PLC program on a pair, with timers, a counter, a controller and a sequence that run: the primary is killed again and
//! again, and every output that the device took is the one of its cycle in a run without faults.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use bumpless_host::Subject;
use bumpless_host::kit::{Inputs, Table};
use bumpless_host::subject::Named;
use bumpless_lab::demo::compare_log;
use support::plc::{
    BATCHES, PHASE, build, build_project, need_compiler, plan, project, rows, start_device,
};
use support::process::{Process, said};
use support::site::Site;
use support::{json_lines, wait_until};

/// How often the primary is killed; `BUMPLESS_KILLS` says otherwise.
fn kills() -> u64 {
    let told = std::env::var("BUMPLESS_KILLS").ok();
    told.and_then(|told| told.parse().ok()).unwrap_or(3)
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

/// The next version of the example, of the same behaviour: a variable has come in each block, and all lie elsewhere.
fn next_version(site: &Site) -> PathBuf {
    let (next, program) = (project(site, "next"), site.path("plc-2"));
    let replace = |name: &str, from: &str, to: &str| {
        let path = next.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name} has no {from:?}");
        fs::write(path, text.replace(from, to)).unwrap();
    };
    replace(
        "POUS.h",
        "__DECLARE_VAR(TIME,SINCE)",
        "__DECLARE_VAR(TIME,LONGEST) __DECLARE_VAR(TIME,SINCE)",
    );
    replace(
        "POUS.h",
        "__DECLARE_VAR(INT,CV)",
        "__DECLARE_VAR(INT,SHIFT) __DECLARE_VAR(INT,CV)",
    );
    replace(
        "POUS.h",
        "  TON SOAK;\n  CTU COUNTED;",
        "  CTU COUNTED;\n  TON SOAK;",
    );
    replace("Res0.c", "BOOL FAST;", "REAL BEFORE = 3;\nBOOL FAST;");
    build_project(&next, &program);
    program
}

/// The configuration with another program, and with this line.
fn next_config(site: &Site, program: &str, line: &str) -> String {
    let path = site.path("next.toml");
    let text = fs::read_to_string(site.config()).unwrap();
    let begins = text.find("file = \"plc").unwrap();
    let ends = begins + text[begins..].find('\n').unwrap();
    let text = format!(
        "{}file = \"{program}\"\n{line}{}",
        &text[..begins],
        &text[ends..]
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn is_changed(site: &Site) -> bool {
    fs::read_to_string(site.config())
        .unwrap()
        .contains("file = \"plc-2\"")
}

/// with the primary killed while the change is being made, and again after it, every output is the one of its cycle in a
/// run without faults and without a change.
fn a_plc_program_is_changed_while_it_runs_and_keeps_timers_counters_and_sequence_through_kills() {
    need_compiler();
    let mut site = Site::new(plan());
    let (program, table) = (site.path("plc"), site.path("rows.csv"));
    build(&site, &program);
    next_version(&site);
    fs::write(&table, rows()).unwrap();
    site.start_witnesses();
    let device = start_device(&site, &table);
    site.start("left");
    site.start("right");
    let (primary, backup, epoch) = site.await_redundant("tank");
    wait_until("the timer has run", || seen(&site, PHASE).contains(&2));
    let config = site.config().display().to_string();
    let next = next_config(&site, "plc-2", "");
    let (stdout, stderr, status) = said(&["apply", &config, &next, "--dry-run"]);
    assert_eq!(status, Some(0), "{stderr}");
    for part in ["keep their values", "RES0__TANK0.SOAK.LONGEST", "BEFORE"] {
        assert!(stdout.contains(part), "{part:?} in {stdout}");
    }
    let change = Process::start(
        &["apply", &config, &next, "--wait", "3"],
        &site.path("apply.said"),
    );
    site.await_status("it is on its way", &primary, |status| {
        !status["configuration"]["change"].is_null() || is_changed(&site)
    });
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    site.await_write_in(higher);
    change.wait();
    site.start(&primary);
    let (primary, backup, _) = site.await_redundant("tank");
    println!(
        "killed in mid-change: {}",
        if is_changed(&site) {
            "made"
        } else {
            "not made"
        }
    );
    if !is_changed(&site) {
        let (stdout, stderr, status) = said(&["apply", &config, &next]);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
    }
    site.await_writes(15);
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    site.await_write_in(higher);
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
}

/// what another type would make of a value is not tried.
fn a_variable_of_another_type_keeps_a_version_out_unless_the_file_says_that_it_begins_anew() {
    need_compiler();
    let mut site = Site::new(plan());
    let (program, table) = (site.path("plc"), site.path("rows.csv"));
    build(&site, &program);
    let next = project(&site, "next");
    for (name, from, to) in [
        (
            "lib/iec_std_lib.h",
            "typedef float REAL",
            "typedef int32_t DINT;\ntypedef float REAL",
        ),
        ("POUS.h", "__DECLARE_VAR(INT,CV)", "__DECLARE_VAR(DINT,CV)"),
        ("io.toml", "retain = [", "# retain = ["),
    ] {
        let path = next.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from));
        fs::write(path, text.replace(from, to)).unwrap();
    }
    build_project(&next, &site.path("plc-2"));
    fs::write(&table, rows()).unwrap();
    site.start_witnesses();
    let device = start_device(&site, &table);
    site.start("left");
    site.start("right");
    site.await_redundant("tank");
    let config = site.config().display().to_string();
    let (old, new) = (
        program.display().to_string(),
        site.path("plc-2").display().to_string(),
    );
    let (stdout, _, status) = said(&["program", "compare", &old, &new, "--json"]);
    assert_eq!(status, Some(1), "{stdout}");
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["schema"], "bumpless.program-compare/1");
    assert_eq!(
        (&told["ok"], &told["goes_on"]),
        (&false.into(), &"by_variables".into())
    );
    assert_eq!(
        told["variables"]["other_type"][0]["name"],
        "RES0__TANK0.COUNTED.CV"
    );
    let next = next_config(&site, "plc-2", "");
    let (stdout, stderr, status) = said(&["apply", &config, &next]);
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    let why = "RES0__TANK0.COUNTED.CV (DINT, was INT)";
    assert!(
        stderr.contains(why) && stderr.contains("state = \"partly\""),
        "{stderr}"
    );
    assert!(!is_changed(&site));
    let next = next_config(&site, "plc-2", "state = \"partly\"");
    let (stdout, stderr, status) = said(&["apply", &config, &next]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains(why), "{stderr}");
    site.await_writes(10);
    site.await_redundant("tank");
    site.interrupt_all();
    device.interrupt();
    site.writes().judge();
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
    a_plc_program_is_changed_while_it_runs_and_keeps_timers_counters_and_sequence_through_kills,
    a_variable_of_another_type_keeps_a_version_out_unless_the_file_says_that_it_begins_anew,
    a_plc_program_with_another_period_than_its_tasks_have_in_common_is_refused_at_the_start,
    a_plc_program_survives_kills_of_the_primary_cycle_by_cycle_as_without_faults,
];
