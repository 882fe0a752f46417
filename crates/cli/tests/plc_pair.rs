//! A PLC program on a pair, with timers, a counter, a controller and a sequence that run: the primary is killed again and
//! again, and every output that the device took is the one of its cycle in a run without faults.

mod support;

use std::collections::BTreeSet;
use std::fs;

use bumpless_host::Subject;
use bumpless_host::kit::{Inputs, Table};
use bumpless_host::subject::Named;
use bumpless_lab::demo::compare_log;
use support::plc::{BATCHES, PHASE, build, need_compiler, plan, rows, start_device};
use support::process::said;
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
