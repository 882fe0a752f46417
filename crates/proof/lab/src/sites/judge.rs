//! Whether the end of a site kept what the plan promises: a function of what was logged.

use crate::evaluate::gaps_in;
use crate::runlog::Run;
use crate::torture::judge::{events_lost, initial_starts, one_writer, record};
use crate::torture::ledger::Count;
use crate::torture::pair::NodeEvent;
use crate::torture::result::{Outcome, Want};

use super::Ending;
use super::result::Failure;

/// What the end of a site left behind.
pub struct Evidence {
    /// Writes, from the last accepted one before it, and stalls.
    pub run: Run,
    /// The writes counted.
    pub count: Count,
    /// What the controllers logged.
    pub events: Vec<NodeEvent>,
    /// Lines that could not be understood.
    pub strange: u64,
    /// When the site ended, or the order was given; and when it was back.
    pub fault_ns: (u64, u64),
    /// When the pair was seen redundant again.
    pub healed_ns: Option<u64>,
    /// Until when the logs are known to be whole.
    pub until_ns: u64,
    /// Of an ordered end: the order was taken.
    pub ordered: Option<Result<(), String>>,
}

/// What it is measured with, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest gap.
    pub gap_ns: u64,
    /// Between two cycles.
    pub period_ns: u64,
    /// From the return until the pair is redundant.
    pub heal_ns: u64,
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The record of it.
pub fn failure(
    number: u32,
    ending: Ending,
    primary: &str,
    seen: &Evidence,
    limits: Limits,
) -> Failure {
    let gaps = gaps_in(&seen.run, seen.fault_ns.0, seen.until_ns).into_iter();
    let gaps: Vec<(u64, u64)> = gaps
        .map(|gap| (gap.length_ns(), seen.run.stalled_ns(gap.from_ns, gap.to_ns)))
        .collect();
    let longest = gaps.iter().copied().max();
    let mut wants = vec![
        no_reset(seen),
        one_writer(&seen.count),
        gap(&gaps, limits),
        heals(seen, limits),
    ];
    wants.push(record(events_lost(&seen.events), seen.strange));
    if let Some(ordered) = &seen.ordered {
        let said = ordered.clone().err().unwrap_or_else(|| "taken".to_owned());
        wants.push(Want::strict(
            "ordered",
            "the order is taken and the roles change",
            ordered.is_ok(),
            said,
        ));
    }
    Failure {
        number,
        ending,
        primary: primary.to_owned(),
        gap_ms: longest.map(|(length, _)| ms(length)),
        stalled_ms: longest.map_or(0.0, |(_, stalled)| ms(stalled)),
        promised_ms: ms(limits.gap_ns),
        healed_ms: seen
            .healed_ns
            .map(|at| ms(at.saturating_sub(seen.fault_ns.1))),
        writes: seen.count,
        initial_starts: initial_starts(&seen.events),
        wants,
    }
}

fn no_reset(seen: &Evidence) -> Want {
    let (backward, initial) = (seen.count.resets, initial_starts(&seen.events));
    Want::strict(
        "no-reset",
        "the process goes on from its newest state",
        backward == 0 && initial == 0,
        format!("{backward} accepted outputs went back, {initial} starts from the initial state"),
    )
}

/// A gap may be longer by the stalls in it, and by a period if there was one: a cycle that a stall hits is lost whole.
fn gap(gaps: &[(u64, u64)], limits: Limits) -> Want {
    let excused = |stalled: u64| match stalled {
        0 => 0,
        stalled => stalled + limits.period_ns,
    };
    let promised = format!("outputs go on within {:.1} ms", ms(limits.gap_ns));
    let worst = gaps
        .iter()
        .max_by_key(|(length, stalled)| length.saturating_sub(excused(*stalled)));
    let Some(&(length, stalled)) = worst else {
        return Want::strict("gap", promised, false, "no accepted output");
    };
    let seen = format!(
        "{:.1} ms, of which the machine stood still {:.1} ms",
        ms(length),
        ms(stalled)
    );
    let mut want = Want::strict(
        "gap",
        promised,
        length <= limits.gap_ns + excused(stalled),
        seen,
    );
    let longest = gaps.iter().map(|(length, _)| *length).max().unwrap_or(0);
    if want.outcome == Outcome::Held && longest > limits.gap_ns {
        want.outcome = Outcome::Explained;
    }
    want
}

fn heals(seen: &Evidence, limits: Limits) -> Want {
    let promised = format!(
        "redundant again within {:.0} ms of the site's return",
        ms(limits.heal_ns)
    );
    let Some(healed_ns) = seen.healed_ns else {
        return Want::strict("heals", promised, false, "never by itself");
    };
    let took = healed_ns.saturating_sub(seen.fault_ns.1);
    let stalled = seen.run.stalled_ns(seen.fault_ns.1, healed_ns);
    let mut want = Want::strict(
        "heals",
        promised,
        took <= limits.heal_ns + stalled,
        format!("{:.0} ms", ms(took)),
    );
    if want.outcome == Outcome::Held && took > limits.heal_ns {
        want.outcome = Outcome::Explained;
    }
    want
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runlog::{Stall, Write};

    const MS: u64 = 1_000_000;

    /// Writes at these milliseconds, each of writer, epoch and cycle; stalls of these (end, length).
    fn evidence(writes: &[(u64, u64, u64, u64)], stalls: &[(u64, u64)]) -> Evidence {
        let mut count = Count::default();
        let mut ledger = crate::torture::ledger::Ledger::default();
        let writes: Vec<Write> = writes
            .iter()
            .map(|&(at, writer, epoch, cycle)| Write {
                time_ns: at * MS,
                writer,
                epoch,
                cycle,
                outputs: vec![0.0; 2],
                accepted: true,
            })
            .collect();
        writes
            .iter()
            .for_each(|write| ledger.take(write, &mut count));
        let stall = |&(at, length): &(u64, u64)| Stall {
            time_ns: at * MS,
            length_ns: length * MS,
            seen_by: "test".into(),
        };
        Evidence {
            run: Run {
                writes,
                stalls: stalls.iter().map(stall).collect(),
                ..Run::default()
            },
            count,
            events: Vec::new(),
            strange: 0,
            fault_ns: (100 * MS, 200 * MS),
            healed_ns: Some(300 * MS),
            until_ns: 160 * MS,
            ordered: None,
        }
    }

    const LIMITS: Limits = Limits {
        gap_ns: 50 * MS,
        period_ns: 10 * MS,
        heal_ns: 200 * MS,
    };

    fn outcomes(seen: &Evidence) -> Vec<(String, Outcome)> {
        let failure = failure(1, Ending::PrimaryKilled, "left", seen, LIMITS);
        failure
            .wants
            .into_iter()
            .map(|want| (want.id, want.outcome))
            .collect()
    }

    fn broken(seen: &Evidence) -> Vec<String> {
        let all = outcomes(seen).into_iter();
        all.filter(|it| it.1 == Outcome::Broken)
            .map(|it| it.0)
            .collect()
    }

    #[test]
    fn a_takeover_within_what_was_promised_is_no_finding() {
        let seen = evidence(&[(90, 0, 2, 9), (139, 1, 3, 10), (160, 1, 3, 12)], &[]);
        assert!(broken(&seen).is_empty(), "{:?}", outcomes(&seen));
    }

    #[test]
    fn a_longer_gap_is_found_and_only_a_stall_in_it_explains_it() {
        let writes = [(90, 0, 2, 9), (141, 1, 3, 10), (160, 1, 3, 12)];
        assert_eq!(broken(&evidence(&writes, &[])), ["gap"]);
        assert_eq!(broken(&evidence(&writes, &[(80, 3)])), ["gap"]);
        let explained = outcomes(&evidence(&writes, &[(120, 3)]));
        assert!(
            explained.contains(&("gap".into(), Outcome::Explained)),
            "{explained:?}"
        );
        let much = [(90, 0, 2, 9), (155, 1, 3, 10), (160, 1, 3, 12)];
        assert_eq!(broken(&evidence(&much, &[(120, 3)])), ["gap"]);
    }

    #[test]
    fn second_writers_resets_and_what_does_not_heal_are_found() {
        let dual = evidence(&[(90, 0, 2, 9), (130, 1, 2, 10), (160, 1, 3, 12)], &[]);
        assert_eq!(broken(&dual), ["one-writer"]);
        let reset = evidence(&[(90, 0, 2, 9), (130, 1, 3, 1), (160, 1, 3, 2)], &[]);
        assert_eq!(broken(&reset), ["no-reset"]);
        let mut ill = evidence(&[(90, 0, 2, 9), (130, 1, 3, 10), (160, 1, 3, 12)], &[]);
        ill.healed_ns = None;
        ill.strange = 1;
        ill.ordered = Some(Err("refused".into()));
        assert_eq!(broken(&ill), ["heals", "record", "ordered"]);
    }
}
