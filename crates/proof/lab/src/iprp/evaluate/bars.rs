//! Promises beside losses, each with its verdict: a datagram is there when its first copy is, and a network that is cut is not felt, by a
//! stream, by a TCP connection, and in standby for no longer than it takes to find out.
//!
//! A machine on which other things run delays everything now and then. So what a cut adds is judged beside what the same stream has without
//! one, by ranks, and what is judged by a bound is excused by as much as this machine stood still meanwhile, which is counted.

pub mod delay;
mod standby;
mod stream;
mod tcp;

use std::time::Duration;

use bumpless_net_linux::Clock;
use serde::Serialize;
use serde_json::Value;

use super::Plan;
use crate::demo::meter::Meter;
use crate::iprp::relay::{Delay, Fault};
use crate::iprp::site::Site;
use crate::iprp::stalls::Stalls;
use crate::iprp::{LabError, impossible};

const MS: u64 = 1_000_000;
/// Networks that there are.
const NETWORKS: usize = 2;
/// Ranks as clear as this are seen once in so many true measurements.
const ONE_IN: f64 = 1_000.0;
/// For what is on its way at the end.
const SETTLE: Duration = Duration::from_millis(300);

/// A promise, and what was seen of it.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    pub id: &'static str,
    pub promised: String,
    pub seen: String,
    pub held: bool,
    /// How much of it is excused, since this machine stood still.
    pub stalled: usize,
    /// What it was judged by.
    pub figures: Value,
}

/// A network that was cut, from when to when (nanoseconds of CLOCK_BOOTTIME).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    network: usize,
    from_ns: u64,
    until_ns: u64,
}

/// Measures all that is judged by cuts, each of the first two promises by so many.
///
/// # Errors
/// As a scenario's.
pub fn measure(
    plan: &Plan,
    cuts: usize,
    mut tell: impl FnMut(&str),
) -> Result<(Vec<Bar>, Stalls), LabError> {
    // Programs and daemons have no real-time priority.
    let meter = Meter::patient().map_err(impossible)?;
    tell("a stream over cuts");
    let stream = stream::measure(plan, cuts)?;
    tell("a TCP connection over cuts");
    let tcp = tcp::measure(plan, cuts)?;
    tell("standby over cuts");
    let standby = standby::measure(plan, standby::cuts(cuts))?;
    let stalls = Stalls::of(meter.end());
    let bars = vec![
        stream.judged(&stalls),
        tcp.judged(&stalls),
        standby.judged(&stalls),
    ];
    Ok((bars, stalls))
}

/// About how long that takes.
pub fn takes(cuts: usize) -> Duration {
    let starts = Duration::from_secs(9);
    let turns = (stream::TURN + tcp::TURN) * cuts as u32;
    starts + turns + standby::TURN * standby::cuts(cuts) as u32
}

/// A fault of each network: a delay, always the same.
fn even(delays_ms: [u64; NETWORKS]) -> [Fault; NETWORKS] {
    delays_ms.map(|ms| Fault {
        delay: Delay {
            least_ns: ms * MS,
            spread_ns: 0,
        },
        ..Fault::default()
    })
}

/// Cuts `network` for so long. What it was like before it is again then.
fn cut(
    site: &mut Site,
    usual: &[Fault; NETWORKS],
    network: usize,
    length: Duration,
) -> Result<Cut, LabError> {
    let mut faults = *usual;
    faults[network].cut = true;
    let from_ns = Clock.now().as_nanos();
    site.set(faults.to_vec());
    site.sleep(length)?;
    let until_ns = Clock.now().as_nanos();
    site.set(usual.to_vec());
    Ok(Cut {
        network,
        from_ns,
        until_ns,
    })
}

/// Packets of both hosts that have left as they were.
fn plain(site: &Site) -> u64 {
    let of = |number: usize| {
        let status = site.status(number).unwrap_or_default();
        let counters = ["suspended", "unreplicated", "no_copy_left"];
        let counters = counters.map(|name| status["counters"][name].as_u64().unwrap_or(0));
        counters.iter().sum::<u64>()
    };
    of(0) + of(1)
}

/// That all of them left in copies since there were `before`: otherwise it is not measured what a cut does to copies.
fn all_in_copies(site: &Site, before: u64, what: &str) -> Result<(), LabError> {
    match plain(site).saturating_sub(before) {
        0 => Ok(()),
        some => Err(impossible(format_args!(
            "{some} packets of {what} left without copies, as when this machine stands still for a second; measure again"
        ))),
    }
}

/// How many of these times, each from one instant to another, are a cut's by themselves: longer than `bound` and than whatever there was
/// `without` one, even without the time for which this machine stood still in them. And how many that time alone excuses.
fn felt(times: &[(u64, u64)], (bound, without): (u64, &[u64]), stalls: &Stalls) -> (usize, usize) {
    let bound = without.iter().copied().fold(bound, u64::max);
    let long = times.iter().filter(|it| it.1 - it.0 > bound);
    let is_excused = |it: &&(u64, u64)| {
        let long = it.1 - it.0;
        long - stalls.within(it.0, it.1).min(long) <= bound
    };
    let excused = long.clone().filter(is_excused).count();
    (long.count() - excused, excused)
}

/// The longest time between two arrivals of which the second one comes in a span: from when to when.
fn longest_gap(arrivals: &[u64], from: u64, until: u64) -> (u64, u64) {
    let gaps = arrivals
        .windows(2)
        .filter(|two| (from..until).contains(&two[1]));
    let longest = gaps.max_by_key(|two| two[1] - two[0]);
    longest.map_or((from, until), |two| (two[0], two[1]))
}

/// How often was cut, in words: what did not take place proves nothing.
fn cuts_told(count: usize, took_place: bool) -> String {
    let not = if took_place {
        ""
    } else {
        ", which did NOT take place"
    };
    format!("{count} cuts{not}")
}

fn lengths(times: &[(u64, u64)]) -> Vec<u64> {
    times.iter().map(|it| it.1 - it.0).collect()
}

/// Of figures the one in the middle, the least and the most, in milliseconds, in words.
fn spread(figures: &[u64]) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    let ms = |ns: Option<&u64>| ns.map_or(0.0, |ns| *ns as f64 / 1e6);
    format!(
        "{:.2} ms ({:.2} to {:.2})",
        ms(sorted.get(sorted.len() / 2)),
        ms(sorted.first()),
        ms(sorted.last())
    )
}

fn ms(ns: &[u64]) -> Vec<f64> {
    ns.iter().map(|ns| *ns as f64 / 1e6).collect()
}

/// A machine that stood still for so long from then on, milliseconds.
#[cfg(test)]
fn stall(at: u64, length: u64) -> Stalls {
    Stalls::of(vec![crate::runlog::Stall {
        time_ns: (at + length) * MS,
        length_ns: length * MS,
        seen_by: String::new(),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_comes_in_a_span_is_a_gap_of_all_of_it() {
        assert_eq!(longest_gap(&[10, 20, 90], 15, 60), (10, 20));
        assert_eq!(longest_gap(&[10, 200], 15, 60), (15, 60));
    }
}
