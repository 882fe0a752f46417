//! What the log says of a cycle.

use bumpless_base::Epoch;
use bumpless_controller::executor::Role;
use bumpless_controller::retain::Applied;
use bumpless_controller::state::Progress;
use serde_json::Value;

use super::*;
use crate::log::{EventLog, Names, render};

/// The lines that these reports give.
fn told(reports: &[CycleReport]) -> Vec<Value> {
    let names = Names {
        node: "left".into(),
        applications: vec![("heater".into(), 1), ("tank".into(), 2)],
        ..Names::default()
    };
    let mut log = EventLog::new(names);
    let mut reporter = Reporter::new(ApplicationNumber(1), log.sink(), false);
    reports.iter().for_each(|report| reporter.report(report));
    let mut lines = Vec::new();
    log.drain(|names, at, event| lines.push(render(names, at, event)));
    lines
}

fn report(role: Role, outcome: Outcome) -> CycleReport {
    CycleReport {
        role,
        cycle: 42,
        epoch: Some(Epoch(2)),
        scheduled: Instant::ZERO,
        started: Instant::ZERO,
        inputs_at: None,
        published_at: None,
        state_bytes: 0,
        settled: None,
        transfer_settled_after: None,
        backup_behind: false,
        written_at: None,
        ended: Instant::ZERO,
        skipped: 0,
        resumed: None,
        retained: None,
        silent_devices: 0,
        driver_failure: None,
        program_fault: None,
        outcome,
    }
}

#[test]
fn what_happens_to_an_application_says_which_one_it_is() {
    let lines = told(&[CycleReport {
        resumed: Some(Resumed::ColdStart),
        backup_behind: true,
        ..report(Role::Primary, Outcome::Written)
    }]);
    let events: Vec<_> = lines.iter().map(|line| &line["event"]).collect();
    assert_eq!(events, ["resumed", "behind"]);
    for line in lines {
        assert_eq!(line["application"], "tank", "{line}");
        assert!(line["group"].is_null(), "{line}");
        assert!(!line["cause"].as_str().unwrap().contains('…'), "{line}");
    }
}

#[test]
fn a_backup_that_cannot_reach_the_device_says_so_once_and_of_no_output() {
    let cold = || {
        let error = FieldError {
            kind: FieldErrorKind::Timeout,
            place: "127.0.0.1:502".into(),
        };
        report(Role::Backup, Outcome::Cold(error))
    };
    let warm = report(Role::Backup, Outcome::Warm);
    let lines = told(&[cold(), cold(), warm, cold()]);
    let events: Vec<_> = lines.iter().map(|line| &line["event"]).collect();
    assert_eq!(events, ["field_unreachable"; 2]);
    assert_eq!(lines[0]["application"], "tank");
    assert!(lines[0]["cause"].as_str().unwrap().contains("127.0.0.1"));
}

#[test]
fn what_was_kept_at_a_cold_start_is_told_with_what_was_not() {
    let applied = Applied {
        taken: 2,
        unknown: vec!["OLD".into()],
        ..Applied::default()
    };
    let progress = Progress {
        epoch: Epoch(3),
        cycle: 41,
    };
    let lines = told(&[CycleReport {
        retained: Some(RetainedReport {
            from: RetainedFrom::Disk,
            progress,
            applied,
        }),
        ..report(Role::Primary, Outcome::Written)
    }]);
    assert_eq!(lines[0]["event"], "retained");
    assert_eq!(lines[0]["application"], "tank");
    let cause = "of cycle 41 of epoch 3, from disk: 2 retained, 1 no longer there: OLD";
    assert_eq!(lines[0]["cause"], cause);
}
