//! Circumstances and answers in words.

use super::super::plan::Outage;
use super::super::result::{Pass, Programs, Row};

/// Where and with what it was made, and on which scale.
pub fn about(programs: &Programs) -> String {
    let settings = &programs.settings;
    let backup = match settings.backup.as_str() {
        "lte" => "LTE-like",
        _ => "Ethernet-like",
    };
    let each_second = |of: u64| settings.substations as u64 * of * programs.centres.len() as u64;
    format!(
        "{}; threads of real-time priority waited for a processor {} times for half a millisecond or more, {:.0} ms at most, and messages \
         that were under way then took longer. {}; a second way of each host, {backup}. {} substations at once to {} control centres: \
         {:.0} orders and as many questions and reports, and {} frames in a second; outages of {} s, seed {}; {}{}",
        programs.head.told(),
        programs.jitter.stalled,
        programs.jitter.longest_ns as f64 / 1e6,
        programs.network.told(),
        settings.substations,
        programs.centres.len(),
        each_second(1_000) as f64 / settings.every_ms.max(1) as f64,
        each_second(u64::from(settings.frames_each_second)),
        settings.seconds,
        settings.seed,
        programs.head.took(),
        crate::study::no_room(programs.overflowed),
    )
}

/// Milliseconds as seconds.
pub fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1e3)
}

/// What an operator reads off.
pub fn answers(programs: &Programs) -> Vec<String> {
    let mut answers = Vec::new();
    for outage in [Outage::BackbonePair, Outage::Loop] {
        let reached: Vec<&Row> = rows(programs, outage, |row| row.reached);
        if reached.is_empty() {
            continue;
        }
        let of = |pass: Pass| summary(reached.iter().copied().filter(|row| row.pass == pass));
        let substations = reached.iter().map(|row| row.substations).max();
        answers.push(format!(
            "When {} dies, up to {} of {} substations have it on their way to a centre. Without iPRP {}; with it {}.",
            outage.title(),
            substations.unwrap_or(0),
            programs.settings.substations,
            of(Pass::Plain),
            of(Pass::Protected)
        ));
    }
    let second = programs.centres.get(1).cloned().unwrap_or_default();
    let there = rows(programs, Outage::Centre, |row| row.centre == second);
    let back = rows(programs, Outage::Centre, |row| row.centre != second);
    if !there.is_empty() {
        let of = |pass: Pass| summary(there.iter().copied().filter(|row| row.pass == pass));
        let slowest = |pass: Pass| {
            let times = back.iter().filter(|row| row.pass == pass);
            let times: Option<Vec<u64>> = times.map(|row| row.back_ms).collect();
            match times.and_then(|it| it.into_iter().max()) {
                Some(ms) => format!("after {}", seconds(ms)),
                None => "not before the end".to_owned(),
            }
        };
        answers.push(format!(
            "When the primary control centre dies, {second}, which has connections of its own to every substation, goes on: without iPRP {}; with it {}. \
             When the first one is back, it has heard every substation by every protocol {} without iPRP, {} with it.",
            of(Pass::Plain),
            of(Pass::Protected),
            slowest(Pass::Plain),
            slowest(Pass::Protected)
        ));
    }
    answers
}

fn rows(programs: &Programs, outage: Outage, wanted: impl Fn(&Row) -> bool) -> Vec<&Row> {
    let all = programs.rows.iter();
    all.filter(|row| row.outage == outage && wanted(row))
        .collect()
}

fn summary<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return "nothing was measured".to_owned();
    }
    let sum = |of: fn(&Row) -> usize| rows.iter().map(|row| of(row)).sum::<usize>();
    let silence = rows.iter().map(|row| row.silence_ms).max().unwrap_or(0);
    let after = match sum(|it| it.lost_after.unwrap_or(0)) {
        0 => String::new(),
        after => format!(" and {after} after it"),
    };
    format!(
        "{} of {} orders, questions and frames were lost{after}, {} connections ended, and a substation was not heard for {} at most",
        sum(|it| it.lost),
        sum(|it| it.sent),
        sum(|it| it.ended),
        seconds(silence)
    )
}
