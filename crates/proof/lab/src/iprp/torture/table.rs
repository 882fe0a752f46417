//! The result in words.

use std::fmt::Write;

use super::case::{Case, Conditions, Event, Place};
use super::known::{Contestant, Row};
use super::{Cell, Results};
use crate::iprp::relay::Tally;

/// All tables.
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    if !results.cells.is_empty() {
        matrix(&mut text, results);
        broken(&mut text, results);
    }
    if !results.rows.is_empty() {
        known(&mut text, &results.rows);
    }
    let (count, longest) = results.stalls;
    let _ = writeln!(
        text,
        "\nThis machine stood still {count} times for 2 ms or more, {longest:.1} ms at the longest; in the matrix nothing is excused by that."
    );
    if results.is_stopped {
        text.push_str("It was told to stop before the end.\n");
    }
    text.push_str(results.verdict().words());
    text
}

/// A cell in a word or two.
pub fn verdict(cell: &Cell) -> String {
    let held = cell.trials.iter().filter(|trial| trial.held).count();
    match (cell.held, &cell.error) {
        (true, _) => format!("{held} of {held}"),
        (false, Some(_)) => "NOT DONE".into(),
        (false, None) => format!("BROKEN {held} of {}", cell.trials.len()),
    }
}

/// Places in which something was done, with what they are called.
pub fn places(results: &Results) -> Vec<(Place, &'static str)> {
    let all = [
        (Place::Namespaces, "With real daemons"),
        (
            Place::Simulated,
            "With the product's cores, in simulated time",
        ),
    ];
    let is_there = |place: Place| results.cells.iter().any(|cell| cell.case.place == place);
    all.into_iter().filter(|it| is_there(it.0)).collect()
}

/// Events of which there is a cell in a place.
pub fn events(results: &Results, place: Place) -> Vec<Event> {
    let is_there = |event: &Event| {
        let mut cells = results.cells.iter();
        cells.any(|cell| cell.case.place == place && cell.case.event == *event)
    };
    Event::ALL.into_iter().filter(is_there).collect()
}

/// Conditions of which there is a cell.
pub fn conditions(results: &Results) -> Vec<Conditions> {
    let is_there = |it: &Conditions| results.cells.iter().any(|cell| cell.case.conditions == *it);
    Conditions::ALL.into_iter().filter(is_there).collect()
}

/// The cell of a case.
pub fn cell(results: &Results, case: Case) -> Option<&Cell> {
    results.cells.iter().find(|cell| cell.case == case)
}

fn matrix(text: &mut String, results: &Results) {
    let _ = writeln!(
        text,
        "The matrix: how often every promise was kept. A datagram each millisecond. loss: network A loses 40 % of copies; skew: B is\n\
         100 ms behind; reordering: copies take up to 20 ms longer."
    );
    let columns = conditions(results);
    for (place, title) in places(results) {
        let _ = write!(text, "\n{title}\n\n{:<18}", "");
        for it in &columns {
            let _ = write!(text, " {:>21}", it.name());
        }
        text.push('\n');
        for event in events(results, place) {
            let _ = write!(text, "{:<18}", event.name());
            for &conditions in &columns {
                let case = Case {
                    place,
                    event,
                    conditions,
                };
                let words = cell(results, case).map_or("-".into(), verdict);
                let _ = write!(text, " {words:>21}");
            }
            text.push('\n');
        }
    }
}

fn broken(text: &mut String, results: &Results) {
    for cell in results.cells.iter().filter(|cell| !cell.held) {
        let _ = writeln!(text, "\n{}: {}", cell.id, cell.title);
        if let Some(error) = &cell.error {
            let _ = writeln!(text, "  not done: {error}");
        }
        for trial in cell.trials.iter().filter(|trial| !trial.held) {
            for want in trial.wants.iter().filter(|want| !want.held) {
                let _ = writeln!(
                    text,
                    "  run {}: {}: {}",
                    trial.number, want.promised, want.seen
                );
            }
        }
    }
}

/// Whether it did what is promised, in a word.
pub fn word(it: &Contestant) -> &'static str {
    let is_kept_but_for_doubles = it.untimed && it.lost == 0 && it.sent > 0;
    match it.held {
        true => "holds",
        false if it.unproved.is_some() => "UNPROVED",
        // The norm of what is not timed, PRP, tolerates them.
        false if is_kept_but_for_doubles => "holds, with doubles",
        false => "FAILS",
    }
}

/// How many were late, where times mean something.
pub fn late(it: &Contestant) -> String {
    match it.untimed {
        true => "-".into(),
        false => it.late.to_string(),
    }
}

/// What networks did with frames from the sending host to the other one; empty where nothing tells.
pub fn frames(it: &Contestant) -> String {
    let of = |(name, it): (char, &Tally)| {
        let parts = [
            (it.lost, "lost"),
            (it.cut, "cut off"),
            (it.delayed, "held back"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        match parts.is_empty() {
            true => format!("{name}: {}", it.left),
            false => format!("{name}: {}, {}", it.left, parts.join(", ")),
        }
    };
    let all: Vec<_> = ('A'..).zip(&it.networks).map(of).collect();
    all.join("; ")
}

fn known(text: &mut String, rows: &[Row]) {
    let promised = rows.first().map_or("", |row| &row.promised);
    let _ = writeln!(
        text,
        "\nWhat others are known to fail at. Promised: {promised}.\n"
    );
    for row in rows {
        let _ = writeln!(text, "{}: {}\n  here: {}", row.id, row.of, row.done);
        for it in &row.contestants {
            let _ = write!(
                text,
                "  {:<24} {}  lost {:>4} of {:>4}, doubled {:>4}, late {:>4}",
                it.name,
                word(it),
                it.lost,
                it.sent,
                it.doubled,
                late(it)
            );
            if let Some(why) = &it.unproved {
                let _ = write!(text, "; {why}");
            }
            if let Some(delay) = &it.delay_ns {
                let ms = |ns: u64| ns as f64 / 1e6;
                let _ = write!(
                    text,
                    "; delay {:.1} ms, p99 {:.1}, longest {:.1}",
                    ms(delay.p50),
                    ms(delay.p99),
                    ms(delay.max)
                );
            }
            if it.stalled > 0 {
                let _ = write!(text, "; {} more while this machine stood still", it.stalled);
            }
            if let Some(gap) = it.longest_gap_ms {
                let _ = write!(text, "; gap {gap:.1} ms");
            }
            let _ = writeln!(text, "  [{}]", it.version);
            if !it.networks.is_empty() {
                let _ = writeln!(text, "  {:<24} frames: {}", "", frames(it));
            }
            if !it.note.is_empty() {
                let _ = writeln!(text, "  {:<24} {}", "", it.note);
            }
        }
        for it in &row.absent {
            let _ = writeln!(text, "  {:<24} not run: {}", it.name, it.why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_networks_did_with_frames_is_told_without_what_they_did_not() {
        let mut it = Contestant::default();
        assert_eq!(frames(&it), "");
        it.networks = vec![
            Tally {
                left: 10,
                lost: 4,
                cut: 2,
                delayed: 0,
            },
            Tally {
                left: 9,
                delayed: 3,
                ..Tally::default()
            },
        ];
        assert_eq!(frames(&it), "A: 10, 4 lost, 2 cut off; B: 9, 3 held back");
        it.networks[1].delayed = 0;
        assert!(frames(&it).ends_with("; B: 9"));
    }
}
