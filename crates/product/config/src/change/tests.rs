use bumpless_base::Duration;

use super::*;
use crate::model::ProgramHost;
use crate::programs::{ModuleEngine, OnProgramFault, StateOnChange};

const OLD: &str = include_str!("../../../../../examples/table20.toml");

fn parsed(text: &str) -> Config {
    Config::parse(text, "new.toml").unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The sections of applications in `text`, and what stands before them.
fn taken_apart(text: &str) -> (String, Vec<String>) {
    let mut parts = text.split("[[application]]").map(str::to_owned);
    let head = parts.next().unwrap_or_default();
    (head, parts.collect())
}

fn put_together(head: &str, applications: &[String]) -> Config {
    let mut text = head.to_owned();
    for application in applications {
        text.push_str("[[application]]");
        text.push_str(application);
    }
    parsed(&text)
}

fn renamed(section: &str, name: &str, channel: u16) -> String {
    let line = |line: &str| match line.split('=').next().map(str::trim) {
        Some("name") => format!("name = \"{name}\""),
        Some("channel") => format!("channel = {channel}"),
        _ => line.to_owned(),
    };
    section.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn applications_that_come_go_and_stay_are_told_apart_by_name() {
    let (head, mut sections) = taken_apart(OLD);
    let old = parsed(OLD);
    let count = sections.len();
    let gone = sections.remove(1);
    sections.push(renamed(&gone, "newcomer", 900));
    sections.swap(0, 2);
    let new = put_together(&head, &sections);
    let change = Change::between(&old, &new, "new.toml").unwrap();
    assert_eq!(change.removed, [1]);
    assert_eq!(change.added, [count - 1]);
    assert!(change.tuned.is_empty());
    assert_eq!(change.kept.len(), count - 1);
    for stays in change.kept {
        let names = (
            &old.applications[stays.from].name,
            &new.applications[stays.to].name,
        );
        assert_eq!(names.0, names.1);
    }
    assert!(Change::between(&old, &old, "new.toml").unwrap().is_empty());
}

#[test]
fn everything_that_takes_a_restart_is_said_at_once_with_a_remedy() {
    let old = parsed(OLD);
    let mut new = old.clone();
    new.timing.heartbeat = new.timing.heartbeat * 2;
    new.networks[0].bandwidth /= 2;
    new.applications[0].state_max += 1;
    new.applications[1].channel = new.applications[2].channel;
    new.applications[3].name = "another".into();
    let problems = Change::between(&old, &new, "new.toml").unwrap_err();
    let fields: Vec<_> = problems
        .iter()
        .map(|problem| problem.field.as_str())
        .collect();
    assert_eq!(
        fields,
        [
            "timing",
            "network",
            "application[1].size",
            "application[2].channel",
            "application[4].channel"
        ]
    );
    assert!(
        problems
            .iter()
            .all(|problem| !problem.right.is_empty() && problem.file == "new.toml")
    );
}

#[test]
fn what_only_the_plan_reads_and_what_tunes_an_application_may_change() {
    let old = parsed(OLD);
    let mut new = old.clone();
    new.plan.run_although_refused = true;
    new.change.together = true;
    new.applications[0].period = new.applications[0].period * 2;
    new.applications[1].retransmissions = Some(9);
    let change = Change::between(&old, &new, "new.toml").unwrap();
    assert_eq!(
        change
            .tuned
            .iter()
            .map(|stays| stays.to)
            .collect::<Vec<_>>(),
        [0, 1]
    );
}

/// `old` with a program in the place of its first application, and the same with what `change` makes of that.
fn programs(host: ProgramHost, change: impl Fn(&mut Program)) -> [Config; 2] {
    let mut program = Program {
        host,
        file: "tank".into(),
        sha256: [1; 32],
        state_max: 64,
        memory_max: None,
        engine: ModuleEngine::Wasmi,
        execute_limit: Duration::from_millis(1),
        inputs: Vec::new(),
        outputs: Vec::new(),
        on_fault: OnProgramFault::Hold,
        state: StateOnChange::Kept,
    };
    let with = |program: &Program| {
        let mut config = parsed(OLD);
        config.applications[0].kind = ApplicationKind::Program(Box::new(program.clone()));
        config
    };
    let old = with(&program);
    change(&mut program);
    [old, with(&program)]
}

#[test]
fn a_program_of_any_kind_may_be_another_version_and_none_may_be_of_another_kind() {
    let process = |words: &[&str]| ProgramHost::Process {
        command: Vec::new(),
        arguments: words.iter().map(|&word| word.to_owned()).collect(),
    };
    let other_file = |program: &mut Program| program.sha256 = [2; 32];
    let [old, new] = programs(process(&["a"]), |program| {
        other_file(program);
        program.host = process(&["b"]);
    });
    let change = Change::between(&old, &new, "new.toml").unwrap();
    assert_eq!(change.tuned.len(), 1);
    assert!(changes_program(&old.applications[0], &new.applications[0]));
    assert!(!changes_program(&old.applications[0], &old.applications[0]));
    let refused = |host: ProgramHost, change: &dyn Fn(&mut Program)| {
        let [old, new] = programs(host, change);
        let problems = Change::between(&old, &new, "new.toml").unwrap_err();
        assert_eq!(problems.len(), 1);
        problems[0].field.clone()
    };
    for host in [ProgramHost::Plc, ProgramHost::Wasm] {
        let [old, new] = programs(host, other_file);
        assert_eq!(
            Change::between(&old, &new, "new.toml").unwrap().tuned.len(),
            1
        );
    }
    let becomes = |host: ProgramHost| move |program: &mut Program| program.host = host.clone();
    let of_another_kind = refused(ProgramHost::Plc, &becomes(process(&[])));
    assert_eq!(of_another_kind, "application[1].kind");
}

#[test]
fn how_often_a_state_is_written_to_disk_may_change_and_whether_may_not() {
    let mut old = parsed(OLD);
    old.applications[0].persist = Some(Duration::from_millis(100));
    let mut new = old.clone();
    new.applications[0].persist = Some(Duration::from_millis(200));
    let change = Change::between(&old, &new, "new.toml").unwrap();
    assert_eq!(change.tuned.len(), 1);
    for (at, persist) in [(0, None), (1, Some(Duration::from_millis(100)))] {
        let mut new = old.clone();
        new.applications[at].persist = persist;
        let problems = Change::between(&old, &new, "new.toml").unwrap_err();
        assert_eq!(problems.len(), 1);
        assert_eq!(
            problems[0].field,
            format!("application[{}].persist", at + 1)
        );
    }
}

#[test]
fn who_goes_and_who_comes_must_fit_into_the_memory_together() {
    let (head, mut sections) = taken_apart(OLD);
    let old = parsed(OLD);
    let gone = sections.remove(1);
    sections.push(renamed(&gone, "newcomer", 900));
    let mut new = put_together(&head, &sections);
    let alone = new.state_memory(NodeId(0));
    new.transfer.memory_max = alone;
    let mut old = old;
    old.transfer.memory_max = alone;
    let problems = Change::between(&old, &new, "new.toml").unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].field, "transfer.memory_max");
    let goes = put_together(&head, &sections[..sections.len() - 1]);
    old.transfer.memory_max = goes.transfer.memory_max;
    assert!(
        Change::between(&old, &goes, "new.toml").is_ok(),
        "one after the other"
    );
}
