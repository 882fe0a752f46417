//! A handmade run in which every promise holds; beside each module its promises are broken one by one.

use std::collections::BTreeSet;

use super::*;
use crate::runlog::synthetic;
use crate::runlog::{Event, Write};

pub fn judge(run: &Run) -> Vec<Promise> {
    evaluate(run, &Limits::default())
}

pub fn broken(run: &Run) -> BTreeSet<String> {
    judge(run)
        .into_iter()
        .filter(|promise| !promise.held)
        .map(|promise| promise.id)
        .collect()
}

pub fn only(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

pub fn start_of(run: &Run, kind: PhaseKind) -> u64 {
    run.phase(kind).unwrap().faulty().0
}

pub fn write_after(run: &mut Run, time_ns: u64) -> &mut Write {
    run.writes
        .iter_mut()
        .find(|write| write.time_ns > time_ns)
        .unwrap()
}

#[test]
fn a_run_as_it_should_be_keeps_every_promise_and_each_has_its_own_name() {
    let promises = judge(&synthetic::run());
    let wrong: Vec<_> = promises.iter().filter(|promise| !promise.held).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let names: BTreeSet<_> = promises.iter().map(|promise| &promise.id).collect();
    assert_eq!(names.len(), promises.len());
    assert!(promises.len() > 35, "{}", promises.len());
}

#[test]
fn an_empty_record_breaks_every_promise() {
    let mut run = synthetic::run();
    (run.writes, run.events, run.samples) = Default::default();
    assert!(judge(&run).iter().all(|promise| !promise.held));
}

#[test]
fn logs_with_holes_prove_nothing() {
    for lost in [None, Some(1)] {
        let run = Run {
            plant_lines_lost: lost,
            ..synthetic::run()
        };
        assert_eq!(broken(&run), only(&["record"]));
    }
    let mut run = synthetic::run();
    let kind = EventKind::EventsLost { count: 1 };
    run.events.push(Event {
        time_ns: 0,
        node: "left".into(),
        kind,
    });
    assert_eq!(broken(&run), only(&["record"]));
}
