//! What is promised, and whether it was kept: from what was sent, what came, and what networks did with copies.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::case::{Case, DOWN, Event, FAULT, NETWORKS, SKEW_NS, TURNS};
use crate::iprp::flow::Came;
use crate::iprp::hosts::NAMES;
use crate::iprp::relay::Copied;

/// Until a network has heard what is wrong with it.
const ORDERED_NS: u64 = 50_000_000;
/// So many copies are lost one after the other when a network is down for 15 ms, and not by chance.
const DOWN_COPIES: usize = 8;

/// What was seen of a case.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Of each datagram: when it was sent (nanoseconds), and what came of it.
    pub datagrams: Vec<(u64, Option<Came>)>,
    /// What became of copies.
    pub copies: Vec<Copied>,
    /// When the event began.
    pub began_ns: u64,
    /// When every packet left on both networks again, if a daemon had ended.
    pub again_ns: Option<u64>,
}

/// A promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Want {
    pub id: &'static str,
    pub promised: String,
    pub seen: String,
    pub held: bool,
}

/// What a network did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkSeen {
    pub network: &'static str,
    pub copies: usize,
    pub lost: usize,
    /// Copies that overtook others.
    pub overtook: usize,
    /// How long copies took in the middle, microseconds.
    pub median_us: u64,
}

/// A case, done once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    pub number: u32,
    pub held: bool,
    pub sent: usize,
    /// Datagrams that did not come.
    pub lost: usize,
    /// Those of them of which nothing is promised.
    pub lost_unpromised: usize,
    /// Packets of which all networks lost the copy.
    pub lost_on_all: usize,
    pub doubled: usize,
    /// Datagrams that left without copies.
    pub plain: usize,
    pub networks: Vec<NetworkSeen>,
    /// The longest time between two arrivals, milliseconds.
    pub longest_gap_ms: f64,
    /// How long after the event everything was replicated again, if a daemon had ended.
    pub again_ms: Option<f64>,
    pub wants: Vec<Want>,
}

fn want(id: &'static str, promised: impl Into<String>, seen: String, held: bool) -> Want {
    Want {
        id,
        promised: promised.into(),
        seen,
        held,
    }
}

/// Of each packet that left in copies whether one came.
fn packets(copies: &[Copied]) -> BTreeMap<(u64, u32, u32), bool> {
    let mut packets = BTreeMap::new();
    for copy in copies {
        let packet = (copy.process, copy.space, copy.number);
        *packets.entry(packet).or_default() |= copy.came_ns.is_some();
    }
    packets
}

fn network(copies: &[Copied], network: usize) -> NetworkSeen {
    let of: Vec<_> = copies.iter().filter(|it| it.network == network).collect();
    let mut came: Vec<_> = of
        .iter()
        .filter_map(|it| Some((it.left_ns, it.came_ns?)))
        .collect();
    came.sort_unstable();
    let mut latest = 0;
    let overtook = came.iter().filter(|(_, at)| {
        let is_overtook = *at < latest;
        latest = latest.max(*at);
        is_overtook
    });
    let overtook = overtook.count();
    let mut took: Vec<_> = came.iter().map(|(left, at)| at - left).collect();
    took.sort_unstable();
    NetworkSeen {
        network: NAMES[network],
        copies: of.len(),
        lost: of.len() - came.len(),
        overtook,
        median_us: took.get(took.len() / 2).map_or(0, |ns| ns / 1_000),
    }
}

fn longest_gap_ms(observed: &Observed) -> f64 {
    let came = observed.datagrams.iter().filter_map(|it| it.1);
    let mut came: Vec<_> = came.map(|it| it.came_ns).collect();
    came.sort_unstable();
    let gaps = came.windows(2).map(|two| two[1] - two[0]);
    gaps.max().unwrap_or(0) as f64 / 1e6
}

/// Judges a case.
pub fn judge(case: Case, number: u32, observed: &Observed) -> Trial {
    let packets = packets(&observed.copies);
    let lost = || observed.datagrams.iter().filter(|it| it.1.is_none());
    let is_unpromised = |sent: u64| {
        let window = case.event.unpromised_ns();
        window.is_some_and(|(before, after)| {
            (observed.began_ns.saturating_sub(before)..observed.began_ns + after).contains(&sent)
        })
    };
    let is_doubled = |it: &&(u64, Option<Came>)| it.1.is_some_and(|came| came.times > 1);
    let since = |at: u64| at.saturating_sub(observed.began_ns) as f64 / 1e6;
    let mut trial = Trial {
        number,
        held: false,
        sent: observed.datagrams.len(),
        lost: lost().count(),
        lost_unpromised: lost().filter(|it| is_unpromised(it.0)).count(),
        lost_on_all: packets.values().filter(|came| !**came).count(),
        doubled: observed.datagrams.iter().filter(is_doubled).count(),
        plain: observed.datagrams.len().saturating_sub(packets.len()),
        networks: (0..NETWORKS)
            .map(|it| network(&observed.copies, it))
            .collect(),
        longest_gap_ms: longest_gap_ms(observed),
        again_ms: observed.again_ns.map(since),
        wants: Vec::new(),
    };
    trial.wants = wants(case, &trial, observed);
    trial.held = trial.wants.iter().all(|want| want.held);
    trial
}

fn wants(case: Case, trial: &Trial, observed: &Observed) -> Vec<Want> {
    let lost = trial.lost - trial.lost_unpromised;
    let but = match case.event.unpromised_ns() {
        None => String::new(),
        Some((before, after)) => format!(
            ", but for those sent from {} ms before the kill to {} ms after it",
            before / 1_000_000,
            after / 1_000_000
        ),
    };
    let unpromised = match trial.lost_unpromised {
        0 => String::new(),
        some => format!(", {some} more around the kill"),
    };
    let mut wants = vec![
        want(
            "first-copy",
            format!("no datagram is missed of which a network brought a copy{but}"),
            format!(
                "{lost} of {} missed{unpromised}, all networks lost {}",
                trial.sent, trial.lost_on_all
            ),
            trial.sent > 0 && lost <= trial.lost_on_all,
        ),
        want(
            "once",
            "nothing comes twice",
            format!("{} came twice", trial.doubled),
            trial.doubled == 0,
        ),
    ];
    if case.event.ends().is_some() {
        wants.push(want(
            "heals",
            "everything is replicated on both networks again",
            trial.again_ms.map_or_else(
                || "it is not".into(),
                |ms| {
                    format!(
                        "after {ms:.0} ms, {} datagrams left as they were",
                        trial.plain
                    )
                },
            ),
            trial.again_ms.is_some(),
        ));
    }
    wants.push(took_place(case, trial, observed));
    wants
}

/// Of the copies of a network that left so long after the event, in order, whether each was lost.
fn lost_in(observed: &Observed, network: usize, (from, until): (u64, u64)) -> Vec<bool> {
    let span = observed.began_ns + from..observed.began_ns + until;
    let copies = observed.copies.iter();
    let inside = copies.filter(|it| it.network == network && span.contains(&it.left_ns));
    inside.map(|it| it.came_ns.is_none()).collect()
}

/// Whether nothing passed while the network was cut.
fn was_cut(observed: &Observed) -> bool {
    let lost = lost_in(observed, 0, (ORDERED_NS, FAULT.as_nanos() as u64));
    lost.len() > 100 && lost.iter().all(|it| *it)
}

/// Whether a network was down again and again: so many copies one after the other are not lost by chance.
fn flapped(observed: &Observed, network: usize) -> bool {
    let takes = DOWN.as_nanos() as u64 * TURNS as u64;
    let lost = lost_in(observed, network, (0, takes));
    let downs = lost.split(|it| !it).filter(|run| run.len() >= DOWN_COPIES);
    downs.count() * 2 * NETWORKS >= TURNS
}

/// A fault that did not take place proves nothing.
fn took_place(case: Case, trial: &Trial, observed: &Observed) -> Want {
    let spaces: BTreeSet<_> = observed.copies.iter().map(|copy| copy.space).collect();
    let [a, b] = [0, 1].map(|network| &trial.networks[network]);
    let conditions = case.conditions;
    let event = match case.event {
        Event::Nothing => true,
        Event::Cut => was_cut(observed),
        Event::Flapping => (0..NETWORKS).all(|network| flapped(observed, network)),
        Event::NumbersEnd => spaces.len() > 1,
        _ => trial.plain > 0,
    };
    let held = event
        && (!conditions.loss || a.lost * 5 > a.copies)
        && (!conditions.skew
            || (b.median_us - a.median_us.min(b.median_us)) * 10 > SKEW_NS / 1_000 * 9)
        && (!conditions.reordering || a.overtook > 50 && b.overtook > 50);
    let words = |it: &NetworkSeen| {
        format!(
            "{} lost {} of {}, {} overtook others, {:.1} ms in the middle",
            it.network,
            it.lost,
            it.copies,
            it.overtook,
            it.median_us as f64 / 1e3
        )
    };
    want(
        "took-place",
        "what is done takes place",
        format!("{}; {}", words(a), words(b)),
        held,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iprp::torture::case::{Conditions, Place};

    const MS: u64 = 1_000_000;

    /// A thousand datagrams, of which A loses two of five; B is `behind`.
    fn observed(behind_ms: u64) -> Observed {
        let mut it = Observed {
            began_ns: 500 * MS,
            ..Observed::default()
        };
        for number in 0..1_000 {
            let sent_ns = u64::from(number) * MS;
            let came = Came {
                sent_ns,
                came_ns: sent_ns + 1,
                times: 1,
            };
            it.datagrams.push((sent_ns, Some(came)));
            for network in 0..NETWORKS {
                let is_lost = network == 0 && number % 5 < 2;
                let behind = network as u64 * behind_ms * MS;
                it.copies.push(Copied {
                    network,
                    process: 1,
                    space: 2,
                    number,
                    left_ns: sent_ns,
                    came_ns: (!is_lost).then_some(sent_ns + 1 + behind),
                });
            }
        }
        it
    }

    fn case(event: Event, skew: bool) -> Case {
        let conditions = Conditions {
            loss: true,
            skew,
            reordering: false,
        };
        Case {
            place: Place::Namespaces,
            event,
            conditions,
        }
    }

    fn broken(case: Case, observed: &Observed) -> Vec<&'static str> {
        let trial = judge(case, 1, observed);
        let broken = trial.wants.iter().filter(|want| !want.held);
        broken.map(|want| want.id).collect()
    }

    #[test]
    fn what_came_once_keeps_the_promise_and_a_miss_or_a_double_breaks_it() {
        let case = case(Event::Nothing, true);
        let good = observed(100);
        assert_eq!(broken(case, &good), [""; 0]);
        let mut missed = good.clone();
        missed.datagrams[7].1 = None;
        assert_eq!(broken(case, &missed), ["first-copy"]);
        // All networks lost it.
        let of_seven = missed.copies.iter_mut().filter(|it| it.number == 7);
        of_seven.for_each(|it| it.came_ns = None);
        assert_eq!(broken(case, &missed), [""; 0]);
        let mut doubled = good.clone();
        doubled.datagrams[7].1.as_mut().unwrap().times = 2;
        assert_eq!(broken(case, &doubled), ["once"]);
        assert!(broken(case, &Observed::default()).contains(&"first-copy"));
    }

    #[test]
    fn only_around_a_kill_may_something_be_missed() {
        let mut good = observed(0);
        // As it is while a daemon is away.
        good.copies.retain(|it| it.number < 500 || it.number > 700);
        good.again_ns = Some(701 * MS);
        let mut missed = good.clone();
        missed.datagrams[510].1 = None;
        let killed = case(Event::SenderKilled, false);
        assert_eq!(broken(killed, &missed), [""; 0]);
        assert_eq!(
            broken(case(Event::SenderRestarts, false), &missed),
            ["first-copy"]
        );
        missed.datagrams[760].1 = None;
        assert_eq!(broken(killed, &missed), ["first-copy"]);
        good.again_ns = None;
        assert_eq!(broken(killed, &good), ["heals"]);
    }

    #[test]
    fn a_cut_and_flapping_are_seen_by_what_they_take_in_their_time() {
        let end = 500 * MS;
        let cut = |is_down: &dyn Fn(&Copied) -> bool| {
            let mut it = observed(0);
            // The stream begins with the event.
            it.began_ns = 0;
            let copies = it.copies.iter_mut().filter(|copy| is_down(copy));
            copies.for_each(|copy| copy.came_ns = None);
            it
        };
        let whole = cut(&|copy| copy.network == 0);
        assert_eq!(broken(case(Event::Cut, false), &whole), [""; 0]);
        let half = cut(&|copy| copy.network == 0 && copy.left_ns < end);
        assert_eq!(broken(case(Event::Cut, false), &half), ["took-place"]);
        let turn = |copy: &Copied| copy.left_ns / DOWN.as_nanos() as u64 % 2 == copy.network as u64;
        assert_eq!(broken(case(Event::Flapping, false), &cut(&turn)), [""; 0]);
        let one = |copy: &Copied| copy.network == 1 && turn(copy);
        let one = cut(&one);
        assert_eq!(broken(case(Event::Flapping, false), &one), ["took-place"]);
    }

    #[test]
    fn packets_of_a_process_and_of_the_one_before_it_are_told_apart() {
        let mut it = observed(0);
        for copy in it.copies.iter_mut().filter(|it| it.number >= 500) {
            (copy.process, copy.number) = (2, copy.number - 500);
        }
        let case = case(Event::SenderRestarts, false);
        assert_eq!(judge(case, 1, &it).plain, 0);
    }

    #[test]
    fn a_fault_that_did_not_take_place_proves_nothing() {
        let good = observed(0);
        for event in [Event::Cut, Event::Flapping, Event::NumbersEnd] {
            assert_eq!(
                broken(case(event, false), &good),
                ["took-place"],
                "{event:?}"
            );
        }
        assert_eq!(broken(case(Event::Nothing, true), &good), ["took-place"]);
        let mut unlost = good;
        unlost
            .copies
            .iter_mut()
            .for_each(|it| it.came_ns = Some(it.left_ns + 1));
        assert_eq!(broken(case(Event::Nothing, false), &unlost), ["took-place"]);
    }
}
