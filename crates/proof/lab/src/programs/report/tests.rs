//! What people read says what was found.

use super::super::plan::Outage;
use super::super::protocol::Protocol;
use super::super::result::{Course, Died, Pass, Row, Settings, Software};
use super::*;

fn row(pass: Pass, outage: Outage, lost: usize) -> Row {
    Row {
        pass,
        outage,
        protocol: Protocol::Phasors,
        centre: "centre-1".to_owned(),
        reached: true,
        substations: 5,
        sent: 500,
        lost,
        lost_after: (pass == Pass::Protected).then_some(2),
        p50_us: Some(3_300),
        p99_us: Some(4_400),
        max_us: Some(5_500),
        silence_ms: lost as u64 * 20,
        ended: 0,
        ended_by_crash: 0,
        crashes: if lost > 0 { 3 } else { 0 },
        back_ms: (lost < 400).then_some(120),
    }
}

fn found() -> Programs {
    let course = |pass| Course {
        pass,
        protocol: Protocol::Phasors,
        centre: "centre-1".to_owned(),
        step_ms: 250,
        within_ms: 700,
        outages: vec![(Outage::Loop, 500, 1_000)],
        heard: vec![9, 9, 4, 4, 9],
    };
    Programs {
        centres: vec!["centre-1".to_owned(), "centre-2".to_owned()],
        settings: Settings {
            substations: 9,
            seconds: 15,
            every_ms: 1_000,
            ..Settings::default()
        },
        software: vec![
            Software {
                protocol: Protocol::Iec104,
                program: None,
                not_run: Some("python3 has no c104; pip makes <one>".to_owned()),
            },
            Software {
                protocol: Protocol::Phasors,
                program: Some("ours".to_owned()),
                not_run: None,
            },
        ],
        outages: vec![Died {
            outage: Outage::Loop,
            nodes: vec!["g10-1a".to_owned()],
            reached: vec![5, 5],
        }],
        rows: vec![
            row(Pass::Plain, Outage::Loop, 450),
            row(Pass::Protected, Outage::Loop, 0),
        ],
        courses: vec![course(Pass::Plain), course(Pass::Protected)],
        ..Programs::default()
    }
}

#[test]
fn tables_tell_both_passes_side_by_side_and_name_what_was_not_run() {
    let text = text(&found());
    assert!(text.contains("NOT RUN: python3 has no c104"), "{text}");
    assert!(text.contains("a whole loop dies (g10-1a)"), "{text}");
    let line = text.lines().find(|line| line.contains("5 reached"));
    let cells: Vec<&str> = line.unwrap().split("  ").map(str::trim).collect();
    let cells: Vec<_> = cells.into_iter().filter(|it| !it.is_empty()).collect();
    assert_eq!(
        cells,
        [
            "C37.118 (UDP)",
            "centre-1",
            "5 reached",
            "500, 500",
            "450",
            "-",
            "3.3",
            "4.4",
            "9.0 s",
            "-",
            "not yet",
            "3",
            "0",
            "2",
            "3.3",
            "4.4",
            "0.0 s",
            "-",
            "0.1 s",
            "0"
        ]
    );
    let not_run = text.lines().filter(|line| line.contains("not run"));
    assert_eq!(not_run.count(), 1, "{text}");
    assert!(
        text.contains("Without iPRP 450 of 500 orders, questions and frames were lost,"),
        "{text}"
    );
    assert!(
        text.contains("with it 0 of 500 orders, questions and frames were lost and 2 after it,"),
        "{text}"
    );
}

#[test]
fn the_page_draws_both_passes_and_writes_no_markup_of_others() {
    let page = page::render(&found());
    assert_eq!(page.matches("class=\"first\"").count(), 2, "{page}");
    assert_eq!(page.matches("class=\"outage\"").count(), 2);
    assert!(page.contains("pip makes &lt;one&gt;"));
    assert!(!page.contains("http"), "it needs nothing else");
}
