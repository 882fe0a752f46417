//! What was seen, as figures: rows of tables, courses over time, promises.

use std::collections::BTreeMap;

use super::plan::Outage;
use super::protocol::Protocol;
use super::result::{Course, Pass, Programs, Row};
use super::seen::Seen;
use crate::study::Promise;

const MS: u64 = 1_000_000;
/// Between two figures of a course, milliseconds.
const STEP_MS: u64 = 250;

/// When an outage began and ended, and when the next one began: nanoseconds of CLOCK_BOOTTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dead {
    /// What died.
    pub outage: Outage,
    /// When it began.
    pub cut: u64,
    /// What was sent before then had left before everything carried again, also by a sender or a daemon that was held up.
    pub last: u64,
    /// When everything carried again.
    pub healed: u64,
    /// When the next one began, or the pass ended.
    pub next: u64,
}

/// What a centre saw by a protocol, and of which substations.
#[derive(Debug)]
pub struct View<'a> {
    /// Whether the programs were protected.
    pub pass: Pass,
    /// The protocol.
    pub protocol: Protocol,
    /// The centre.
    pub centre: &'a str,
    /// How many substations there are.
    pub sites: usize,
    /// What it saw.
    pub seen: &'a Seen,
}

/// The rows of an outage: of the substations that it `reached`, and of the others; those of which there are none are left out.
pub fn rows(view: &View<'_>, dead: &Dead, reached: &[bool]) -> Vec<Row> {
    let heard = view.seen.heard(view.sites);
    let of = |wanted: bool| row(view, dead, &heard, (reached, wanted));
    [true, false].into_iter().filter_map(of).collect()
}

fn row(
    view: &View<'_>,
    dead: &Dead,
    heard: &[Vec<u64>],
    (reached, wanted): (&[bool], bool),
) -> Option<Row> {
    let is_of = |site: usize| reached.get(site) == Some(&wanted);
    let substations = (0..view.sites).filter(|&site| is_of(site)).count();
    if substations == 0 {
        return None;
    }
    let sent: Vec<_> = view
        .seen
        .exchanges
        .iter()
        .filter(|it| is_of(it.site) && (dead.cut..dead.last).contains(&it.sent))
        .collect();
    let later = dead.last..dead.next;
    let lost_after = view.seen.exchanges.iter();
    let lost_after = lost_after
        .filter(|it| is_of(it.site) && it.done.is_none() && later.contains(&it.sent))
        .count();
    let mut took: Vec<u64> = sent
        .iter()
        .filter_map(|it| Some(it.done?.saturating_sub(it.sent) / 1000))
        .collect();
    took.sort_unstable();
    let percentile = |percent: usize| {
        let place = (took.len() * percent).div_ceil(100).checked_sub(1)?;
        took.get(place).copied()
    };
    let mine = heard.iter().enumerate();
    let mine: Vec<_> = mine.filter(|(site, _)| is_of(*site)).collect();
    let silences = mine.iter().map(|(_, times)| silence(times, dead));
    let back = mine.iter().map(|(_, times)| {
        let first = times[times.partition_point(|at| *at < dead.healed)..].first();
        first
            .filter(|at| **at < dead.next)
            .map(|at| at - dead.healed)
    });
    let back: Option<Vec<u64>> = back.collect();
    let ends = view.seen.connections.iter();
    let ends: Vec<u64> = ends
        .filter(|(site, at, up)| is_of(*site) && !up && (dead.cut..dead.next).contains(at))
        .map(|(_, at, _)| *at)
        .collect();
    let crashes = &view.seen.crashes;
    Some(Row {
        pass: view.pass,
        outage: dead.outage,
        protocol: view.protocol,
        centre: view.centre.to_owned(),
        reached: wanted,
        substations,
        sent: sent.len(),
        lost: sent.len() - took.len(),
        lost_after: Some(lost_after),
        p50_us: percentile(50),
        p99_us: percentile(99),
        max_us: took.last().copied(),
        silence_ms: silences.max().unwrap_or_default() / MS,
        ended: ends.len(),
        ended_by_crash: ends.iter().filter(|at| crashes.contains(at)).count(),
        crashes: crashes
            .iter()
            .filter(|at| (dead.cut..dead.next).contains(at))
            .count(),
        back_ms: back.map(|it| it.into_iter().max().unwrap_or_default() / MS),
    })
}

/// The longest time without being heard that touches an outage or what follows it.
fn silence(times: &[u64], dead: &Dead) -> u64 {
    let first = times.partition_point(|at| *at < dead.cut);
    let last = times.partition_point(|at| *at < dead.next);
    let before = first.checked_sub(1).map_or(dead.cut, |at| times[at]);
    let mut longest = 0;
    let mut since = before;
    for &at in times[first..last].iter().chain([&dead.next]) {
        longest = longest.max(at.saturating_sub(since));
        since = at;
    }
    longest
}

/// What a view shows over time, from `began` on.
pub fn course(view: &View<'_>, (began, dead): (u64, &[Dead]), every_ms: u64) -> Course {
    let ended = dead.last().map_or(began, |it| it.next);
    // Two that are missed, and half a second for the ways and the programs.
    let within_ms = 2 * every_ms + 500;
    let heard = view.seen.heard(view.sites);
    let step = STEP_MS * MS;
    let count = |at: u64| {
        let is_heard = |times: &&Vec<u64>| {
            let last = times.partition_point(|it| *it <= at).checked_sub(1);
            last.is_some_and(|last| at - times[last] <= within_ms * MS)
        };
        heard.iter().filter(is_heard).count() as u16
    };
    let since = |at: u64| at.saturating_sub(began) / MS;
    Course {
        pass: view.pass,
        protocol: view.protocol,
        centre: view.centre.to_owned(),
        step_ms: STEP_MS,
        within_ms,
        outages: dead
            .iter()
            .map(|it| (it.outage, since(it.cut), since(it.healed)))
            .collect(),
        heard: (0..=(ended - began) / step)
            .map(|number| count(began + number * step))
            .collect(),
    }
}

/// What is promised of programs under iPRP, judged: in each outage of the network, and at the second centre when the first one
/// dies, nothing is lost until the next one, and no connection ends.
pub fn promises(programs: &Programs) -> Vec<Promise> {
    let mut promises = Vec::new();
    for outage in Outage::ALL {
        for protocol in Protocol::ALL {
            let rows: Vec<&Row> = programs
                .rows
                .iter()
                .filter(|row| {
                    let survives =
                        outage != Outage::Centre || Some(&row.centre) != programs.centres.first();
                    let is_of = row.outage == outage && row.protocol == protocol;
                    is_of && survives && row.pass == Pass::Protected
                })
                .collect();
            if !rows.is_empty() {
                promises.push(promise(outage, protocol, &rows));
            }
        }
    }
    promises
}

fn promise(outage: Outage, protocol: Protocol, rows: &[&Row]) -> Promise {
    let sum = |of: fn(&Row) -> usize| rows.iter().map(|row| of(row)).sum::<usize>();
    let (sent, lost, ended) = (sum(|it| it.sent), sum(|it| it.lost), sum(|it| it.ended));
    let after = sum(|it| it.lost_after.unwrap_or(0));
    let lost_after = match after {
        0 => String::new(),
        after => format!(" and {after} after"),
    };
    let centres = match outage {
        Outage::Centre => "the second centre",
        _ => "both centres",
    };
    let silence = rows.iter().map(|row| row.silence_ms).max().unwrap_or(0);
    // Both rows of a centre have those of its program.
    let by_centre: BTreeMap<&str, usize> =
        rows.iter().map(|row| (&*row.centre, row.crashes)).collect();
    let crashed = match by_centre.values().sum::<usize>() {
        0 => String::new(),
        crashes => format!(
            "; the program itself crashed {crashes} times, which ended {} of these connections, and what it had asked then is not counted",
            sum(|it| it.ended_by_crash)
        ),
    };
    Promise {
        says: format!(
            "{protocol} under iPRP, {} dies: {centres} lose none of the {}, and no connection ends",
            outage.title(),
            protocol.exchange()
        )
        .replace("the second centre lose", "the second centre loses"),
        seen: format!(
            "{sent} sent, {lost} lost{lost_after}, {ended} connections ended, longest silence {silence} ms{crashed}"
        ),
        count: sent,
        above: lost + after + ended,
        explained: 0,
        held: sent > 0 && lost + after + ended == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Exchange;
    use super::*;

    const DEAD: Dead = Dead {
        outage: Outage::Loop,
        cut: 1_000 * MS,
        last: 2_900 * MS,
        healed: 3_000 * MS,
        next: 6_000 * MS,
    };

    fn view(seen: &Seen) -> View<'_> {
        View {
            pass: Pass::Protected,
            protocol: Protocol::Modbus,
            centre: "centre-1",
            sites: 2,
            seen,
        }
    }

    /// Two substations asked every half second; the first is not heard from the outage until 4.1 s.
    fn seen() -> Seen {
        let mut seen = Seen::default();
        for number in 0..12 {
            let sent = number * 500 * MS;
            for site in 0..2 {
                let dead = site == 0 && (1_000 * MS..4_000 * MS).contains(&sent);
                let done = (!dead).then_some(sent + (site as u64 + 1) * 100 * MS);
                seen.exchanges.push(Exchange { site, sent, done });
            }
        }
        seen.connections.push((0, 500 * MS, false));
        seen.connections.push((0, 2_500 * MS, false));
        seen
    }

    #[test]
    fn figures_are_of_the_outage_and_of_the_substations_that_it_reached() {
        let seen = seen();
        let rows = rows(&view(&seen), &DEAD, &[true, false]);
        let [reached, others] = &rows[..] else {
            panic!("{rows:?}");
        };
        assert!(reached.reached && !others.reached);
        assert_eq!((reached.sent, reached.lost, reached.ended), (4, 4, 1));
        assert_eq!((reached.silence_ms, reached.back_ms), (3_500, Some(1_100)));
        assert_eq!(reached.max_us, None);
        assert_eq!((others.sent, others.lost, others.ended), (4, 0, 0));
        assert_eq!((others.silence_ms, others.back_ms), (500, Some(200)));
        assert_eq!(others.p50_us, Some(200_000));
        let never = Dead {
            next: 4_000 * MS,
            ..DEAD
        };
        let rows = super::rows(&view(&seen), &never, &[true, true]);
        assert_eq!((rows.len(), rows[0].back_ms), (1, None));
    }

    #[test]
    fn what_was_held_up_until_everything_carried_again_is_not_of_the_outage() {
        let mut seen = seen();
        seen.exchanges.push(Exchange {
            site: 0,
            sent: 2_950 * MS,
            done: Some(3_001 * MS),
        });
        let rows = rows(&view(&seen), &DEAD, &[true, false]);
        assert_eq!((rows[0].sent, rows[0].lost), (4, 4));
        // Two more that left when everything carried again were lost, too.
        assert_eq!(rows[0].lost_after, Some(2));
    }

    #[test]
    fn what_is_lost_when_everything_carries_again_breaks_a_promise_too() {
        let exchange = |sent, done| Exchange {
            site: 0,
            sent,
            done,
        };
        let judged = |last: u64| {
            let mut seen = Seen::default();
            let (sent, done) = (2_000 * MS, Some(2_001 * MS));
            seen.exchanges.push(exchange(sent, done));
            seen.exchanges.push(exchange(last, None));
            let programs = Programs {
                rows: rows(&view(&seen), &DEAD, &[true, true]),
                ..Programs::default()
            };
            promises(&programs).remove(0)
        };
        // What is held up until everything carries again, and the last before the next outage.
        for last in [2_950 * MS, 5_999 * MS] {
            let promise = judged(last);
            assert!(!promise.held && promise.above == 1, "{promise:?}");
            assert!(promise.seen.contains("0 lost and 1 after"), "{promise:?}");
        }
        assert!(judged(6_000 * MS).held, "that is the next one's");
    }

    #[test]
    fn a_course_counts_who_was_heard_within_two_that_are_missed() {
        let seen = seen();
        let course = course(&view(&seen), (0, &[DEAD]), 500);
        assert_eq!(course.within_ms, 1_500);
        let at = |ms: u64| course.heard[(ms / STEP_MS) as usize];
        assert_eq!(
            [at(0), at(250), at(1_000), at(2_000), at(2_250)],
            [0, 2, 2, 2, 1]
        );
        assert_eq!([at(4_000), at(4_250)], [1, 2]);
        assert_eq!(course.outages, [(Outage::Loop, 1_000, 3_000)]);
    }

    #[test]
    fn a_crash_that_ends_connections_breaks_a_promise_and_is_told() {
        let mut seen = Seen::default();
        for site in 0..2 {
            let (sent, done) = (2_000 * MS, Some(2_001 * MS));
            seen.exchanges.push(Exchange { site, sent, done });
            seen.connections.push((site, 2_500 * MS, false));
        }
        seen.crashes.push(2_500 * MS);
        let programs = Programs {
            rows: rows(&view(&seen), &DEAD, &[true, false]),
            ..Programs::default()
        };
        let of = |row: &Row| (row.ended, row.ended_by_crash, row.crashes);
        assert_eq!(
            programs.rows.iter().map(of).collect::<Vec<_>>(),
            [(1, 1, 1); 2]
        );
        let promise = &promises(&programs)[0];
        assert!(!promise.held && promise.above == 2, "{promise:?}");
        let told = "crashed 1 times, which ended 2 of these connections";
        assert!(promise.seen.contains(told), "{promise:?}");
    }

    #[test]
    fn a_promise_is_broken_by_one_that_is_lost_and_says_nothing_of_a_centre_that_died() {
        let seen = seen();
        let mut programs = Programs {
            centres: vec!["centre-1".to_owned(), "centre-2".to_owned()],
            rows: rows(&view(&seen), &DEAD, &[true, false]),
            ..Programs::default()
        };
        let [judged] = &promises(&programs)[..] else {
            panic!("one promise");
        };
        assert!(!judged.held && judged.above == 7, "{judged:?}");
        programs.rows.remove(0);
        assert!(promises(&programs)[0].held);
        programs.rows[0].outage = Outage::Centre;
        assert!(promises(&programs).is_empty());
        programs.rows[0].centre = "centre-2".to_owned();
        assert!(promises(&programs)[0].held);
    }
}
