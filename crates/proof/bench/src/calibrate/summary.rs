//! From what sessions have measured to the costs that are kept.

use std::time::{SystemTime, UNIX_EPOCH};

use bumpless_config::Config;
use bumpless_plan::cost::file::{Basis, Jitter, Measured, NodeCosts, Path, SCHEMA, path_route};
use bumpless_plan::cost::{Costs, Sample, fit};

use super::end::{Outcome, Times};
use super::session::{self, Session};
use crate::statistics::Summary;

/// Transfers of a size that count at least.
const ENOUGH: usize = 8;
/// A stall hurts a transfer if it is longer than one part in so many of its time.
const HURTS: u64 = 10;

/// The times of all sessions that repeat each other, together.
pub fn together(done: &[(Session, Outcome)]) -> Vec<(Session, Vec<Times>)> {
    let mut all: Vec<(Session, Vec<Times>)> = Vec::new();
    for (session, outcome) in done {
        match all.iter_mut().find(|(known, _)| known.repeats(session)) {
            Some((_, known)) => {
                for (known, times) in known.iter_mut().zip(&outcome.sizes) {
                    known.took.extend(&times.took);
                    known.stall.extend(&times.stall);
                }
            }
            None => all.push((session.clone(), outcome.sizes.clone())),
        }
    }
    all
}

/// What a size's transfers took, and how many do not count because the machine stood still for a tenth of their
/// time or more. Where too few remain, those with the shortest stalls count too.
pub fn measured(session: &Session, times: &Times) -> (Option<Measured>, usize) {
    let mut all: Vec<(u64, u64)> = times
        .took
        .iter()
        .copied()
        .zip(times.stall.iter().copied())
        .collect();
    let hurt = |&(took, stall): &(u64, u64)| stall > took / HURTS;
    all.sort_by_key(|pair| (hurt(pair), pair.1));
    let counted = all
        .iter()
        .filter(|pair| !hurt(pair))
        .count()
        .max(ENOUGH)
        .min(all.len());
    let measured =
        Summary::of(all[..counted].iter().map(|(took, _)| *took)).map(|summary| Measured {
            size: times.size,
            payload: session.payload,
            count: summary.count,
            min_ns: summary.min,
            p50_ns: summary.p50,
            p99_ns: summary.p99,
            max_ns: summary.max,
        });
    (measured, all.len() - counted)
}

/// The costs that all sessions together tell, from the sizes that are for it.
///
/// # Errors
/// Too little could be measured.
pub fn costs(
    config: &Config,
    nodes: &[String; 2],
    done: &[(Session, Outcome)],
) -> Result<Costs, String> {
    let mut paths: Vec<Path> = Vec::new();
    for (session, times) in &together(done) {
        let told_from = times.iter().filter(|times| session::tells(times.size));
        let sized = told_from.map(|times| measured(session, times));
        let (sizes, thrown): (Vec<_>, Vec<usize>) = sized.unzip();
        let same = |path: &&mut Path| path.is_of(&session.from, &session.networks, session.spread);
        if !paths.iter_mut().any(|path| same(&&mut *path)) {
            paths.push(blank(session));
        }
        if let Some(path) = paths.iter_mut().find(same) {
            path.sizes.extend(sizes.into_iter().flatten());
            path.thrown_away += thrown.iter().sum::<usize>();
        }
    }
    for path in &mut paths {
        fit_path(config, path)?;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(Costs {
        schema: SCHEMA.into(),
        measured_unix_s: now.map_or(0, |since| since.as_secs()),
        version: env!("CARGO_PKG_VERSION").into(),
        basis: Basis::of(config),
        nodes: nodes.iter().map(|name| node(name, done)).collect(),
        paths,
    })
}

fn blank(session: &Session) -> Path {
    Path {
        from: session.from.clone(),
        to: session.to.clone(),
        networks: session.networks.clone(),
        spread: session.spread,
        cost: Default::default(),
        largest_error: 0.0,
        held_out_error: None,
        round_trip_ns: [0, 0],
        thrown_away: 0,
        sizes: Vec::new(),
    }
}

fn fit_path(config: &Config, path: &mut Path) -> Result<(), String> {
    let place = || {
        format!(
            "{} to {} on {}",
            path.from,
            path.to,
            path.networks.join(" and ")
        )
    };
    let samples: Vec<Sample> = path
        .sizes
        .iter()
        .map(|measured| Sample {
            route: path_route(config, path, measured.payload),
            size: measured.size,
            nanos: measured.p50_ns as f64,
        })
        .collect();
    path.cost = fit(&samples).map_err(|unfit| {
        format!(
            "{}: {unfit}. {} transfers did not count because the machine stood still: repeat when it has less to do",
            place(),
            path.thrown_away
        )
    })?;
    path.largest_error = fit::largest_error(&samples, &path.cost);
    let empty = path.sizes.iter().filter(|measured| measured.size == 0);
    let least = empty.clone().map(|measured| measured.min_ns).min();
    let most = empty.map(|measured| measured.p99_ns).max();
    path.round_trip_ns = [least.unwrap_or(0), most.unwrap_or(0)];
    Ok(())
}

/// A node as the sessions in which it sent saw it.
fn node(name: &str, done: &[(Session, Outcome)]) -> NodeCosts {
    let own = || {
        done.iter()
            .filter(|(session, _)| session.from == name)
            .map(|(_, outcome)| outcome)
    };
    NodeCosts {
        name: name.into(),
        host: own()
            .map(|outcome| outcome.host.clone())
            .next()
            .unwrap_or_default(),
        jitter: jitter(own()),
    }
}

/// The jitter of several sessions together.
fn jitter<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> Jitter {
    let wakes: u64 = outcomes.clone().map(|outcome| outcome.wakes).sum();
    let mut latest: Vec<u64> = outcomes
        .flat_map(|outcome| outcome.latest_ns.iter().copied())
        .collect();
    latest.sort_unstable_by(|a, b| b.cmp(a));
    let above = |one_in: u64| {
        latest
            .get((wakes / one_in) as usize)
            .or(latest.last())
            .copied()
    };
    Jitter {
        wakes,
        p999_ns: above(1_000).unwrap_or(0),
        p9999_ns: above(10_000).unwrap_or(0),
        longest_ns: latest.first().copied().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_with_stalls_of_a_tenth_of_their_time_do_not_count() {
        let session: Session = serde_json::from_str(
            r#"{"number":0,"purpose":"calibrate","from":"a","to":"b","networks":["A"],"spread":false,
                "payload":1442,"sizes":[7],"rounds":12}"#,
        )
        .unwrap();
        let mut times = Times {
            size: 7,
            took: vec![1_000; 12],
            stall: vec![0; 12],
        };
        (times.took[0], times.stall[0]) = (9_000_000, 900_001);
        (times.took[1], times.stall[1]) = (9_000_000, 900_000);
        let (found, thrown_away) = measured(&session, &times);
        let found = found.unwrap();
        assert_eq!((thrown_away, found.count, found.p50_ns), (1, 11, 1_000));
        assert_eq!((found.min_ns, found.max_ns), (1_000, 9_000_000));
        // Of too few the least disturbed count, and of none there is nothing to tell.
        let few = Times {
            took: (1..=12).collect(),
            stall: (1..=12).map(|n| n * 1_000).collect(),
            ..times
        };
        let (found, thrown_away) = measured(&session, &few);
        let found = found.unwrap();
        assert_eq!((thrown_away, found.count, found.max_ns), (4, 8, 8));
        assert_eq!(measured(&session, &Times::default()), (None, 0));
    }

    #[test]
    fn percentiles_of_several_sessions_are_those_of_all_their_wake_ups() {
        let outcome = |latest_ns: Vec<u64>| Outcome {
            wakes: 10_000,
            latest_ns,
            ..Outcome::default()
        };
        let quiet = outcome((1..=200).rev().collect());
        let loud = outcome((1..=200).rev().map(|n| n * 1_000).collect());
        let both = jitter([&quiet, &loud].into_iter());
        assert_eq!((both.wakes, both.longest_ns), (20_000, 200_000));
        // 20 of 20,000 wake-ups are later than the 21st, 2 later than the third.
        assert_eq!((both.p999_ns, both.p9999_ns), (180_000, 198_000));
        assert_eq!(jitter([].into_iter()), Jitter::default());
    }
}
