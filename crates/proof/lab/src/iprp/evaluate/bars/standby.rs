//! A stream of which one network carries all packets, and is cut: what it has lost leaves again on the other one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::Plan;
use super::{Bar, Cut, MS, NETWORKS, SETTLE, cut, cuts_told, even, longest_gap, spread};
use crate::iprp::LabError;
use crate::iprp::flow::{Came, Receiver, Senders};
use crate::iprp::relay::Copied;
use crate::iprp::site::{PORT, Site};
use crate::iprp::stalls::Stalls;

/// Bytes of a datagram, and the time between two.
const LEN: usize = 280;
const EVERY: Duration = Duration::from_millis(1);
const DELAYS_MS: [u64; NETWORKS] = [4, 4];
/// The flow in standby, of two.
const FLOW: usize = 1;
/// How long the network that carries is cut.
const DOWN: Duration = Duration::from_millis(1_000);
/// It carries again after four probes, half a second apart (I-53).
pub const TURN: Duration = Duration::from_millis(4_000);
/// The longest gap: so many round trips, and so much more.
const TRIPS: u64 = 3;
const MORE_NS: u64 = 10 * MS;

/// How many of its cuts are made where a stream on both networks has so many: each takes longer.
pub const fn cuts(of_streams: usize) -> usize {
    match of_streams / 4 {
        0 => 1,
        some => some,
    }
}

/// A cut, and how long a round trip was before it, on the slower network (nanoseconds).
#[derive(Clone, Copy, Debug)]
struct Turn {
    cut: Cut,
    round_trip_ns: u64,
}

/// What was seen.
pub struct Seen {
    sent: usize,
    came: Vec<Came>,
    copies: Vec<Copied>,
    turns: Vec<Turn>,
}

/// Runs the stream.
///
/// # Errors
/// As a scenario's.
pub fn measure(plan: &Plan, cuts: usize) -> Result<Seen, LabError> {
    let more = format!(
        "[[monitor]]\nprotocol = \"udp\"\nport = {}\npackets = \"to\"\nmode = \"standby\"\n",
        usize::from(PORT) + FLOW
    );
    let mut site = Site::start_with(&plan.binary, (NETWORKS, 1, &more), plan.seed, &plan.stop)?;
    site.set(even(DELAYS_MS).to_vec());
    let receiver = Receiver::start(&site.hosts, FLOW + 1)?;
    let mut senders = Senders::new(&site.hosts, FLOW + 1, LEN)?;
    site.wait("the stream is replicated", |site| {
        senders.send(FLOW);
        site.replicated(NETWORKS) == 1
    })?;
    site.sleep(SETTLE)?;
    site.take();
    let (first, is_over) = (senders.sent()[FLOW], AtomicBool::new(false));
    let turns = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            senders.stream_on(FLOW, EVERY, |_| is_over.load(Ordering::Acquire));
        });
        let turns = befall(&mut site, cuts);
        is_over.store(true, Ordering::Release);
        let _ = sending.join();
        turns
    });
    let turns = turns?;
    site.sleep(SETTLE)?;
    let (copies, arrivals) = (site.take(), receiver.end());
    let numbers = first..senders.sent()[FLOW];
    let came = arrivals.iter().filter(|(key, _)| numbers.contains(&key.1));
    let came = came.map(|(_, came)| *came).collect();
    site.end();
    Ok(Seen {
        sent: numbers.len(),
        came,
        copies,
        turns,
    })
}

fn befall(site: &mut Site, cuts: usize) -> Result<Vec<Turn>, LabError> {
    let mut turns = Vec::new();
    for _ in 0..cuts {
        let mut round_trip_ns = None;
        site.wait("the first network carries the stream", |site| {
            round_trip_ns = carried(&site.status(0).unwrap_or_default());
            round_trip_ns.is_some()
        })?;
        site.sleep(SETTLE)?;
        let cut = cut(site, &even(DELAYS_MS), 0, DOWN)?;
        turns.push(Turn {
            cut,
            round_trip_ns: round_trip_ns.unwrap_or(0),
        });
    }
    site.sleep(SETTLE)?;
    Ok(turns)
}

/// The round trip on the slower network, nanoseconds, if the first one carries and both have answered.
fn carried(status: &Value) -> Option<u64> {
    let session = status["sending"]
        .as_array()?
        .iter()
        .find(|it| it["mode"] == "standby")?;
    let networks = session["networks"].as_array()?;
    let trip = |it: &Value| Some((it["round_trip_us"].as_f64()? * 1e3) as u64);
    let trips: Option<Vec<_>> = networks.iter().map(trip).collect();
    let carries = networks.first().is_some_and(|it| it["carries"] == true);
    trips?
        .into_iter()
        .max()
        .filter(|_| carries && networks.len() == NETWORKS)
}

impl Seen {
    /// Whether a cut took what the network carried.
    fn took_place(&self) -> bool {
        let took = |turn: &Turn| {
            let inside = turn.cut.from_ns..turn.cut.until_ns;
            let mut copies = self.copies.iter();
            copies.any(|it| it.network == 0 && it.came_ns.is_none() && inside.contains(&it.left_ns))
        };
        !self.turns.is_empty() && self.turns.iter().all(took)
    }

    /// What it comes to.
    pub fn judged(&self, stalls: &Stalls) -> Bar {
        let mut arrivals: Vec<_> = self.came.iter().map(|it| it.came_ns).collect();
        arrivals.sort_unstable();
        let gaps = self.turns.iter().map(|turn| {
            let (from, until) = longest_gap(&arrivals, turn.cut.from_ns, turn.cut.until_ns);
            let most = turn.round_trip_ns * TRIPS + MORE_NS;
            (until - from, stalls.within(from, until), most)
        });
        let gaps: Vec<_> = gaps.collect();
        let too_long = || gaps.iter().filter(|(gap, _, most)| gap > most);
        let stalled = too_long().filter(|(gap, stalled, most)| gap - stalled.min(gap) <= *most);
        let stalled = stalled.count();
        let broken = too_long().count() - stalled;
        let lost = self.sent - self.came.len();
        let doubled = self.came.iter().filter(|it| it.times > 1).count();
        let took_place = self.took_place();
        let (longest, bounds): (Vec<_>, Vec<_>) = gaps.iter().map(|it| (it.0, it.2)).unzip();
        Bar {
            id: "standby",
            promised: format!(
                "the network that carries a stream in standby is cut: nothing lost, nothing doubled, and no gap longer than {TRIPS} round trips \
                 and {} ms, but for what this machine stands still in it",
                MORE_NS / MS
            ),
            seen: format!(
                "{}: {lost} of {} lost, {doubled} doubled; longest gap after a cut {}, at most {}; {broken} longer",
                cuts_told(self.turns.len(), took_place),
                self.sent,
                spread(&longest),
                spread(&bounds)
            ),
            held: took_place && lost == 0 && doubled == 0 && broken == 0,
            stalled,
            figures: json!({
                "sent": self.sent,
                "lost": lost,
                "doubled": doubled,
                "longest_gap_after_a_cut_ms": super::ms(&longest),
                "at_most_ms": super::ms(&bounds),
                "longer": broken,
                "took_place": took_place,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runlog::Stall;

    /// Two cuts of a stream that stands still for `gap` ms at each; round trips of 5 ms, so at most 25.
    fn seen(gap: u64) -> Seen {
        let turn = |at: u64| Turn {
            cut: Cut {
                network: 0,
                from_ns: at * MS,
                until_ns: (at + 1_000) * MS,
            },
            round_trip_ns: 5 * MS,
        };
        let came = (0..4_000).map(|at: u64| {
            let late = gap.saturating_sub(at % 2_000 - (at % 2_000).min(300));
            let late = if at % 2_000 < 300 { 0 } else { late };
            Came {
                sent_ns: at * MS,
                came_ns: (at + 4 + late) * MS,
                times: 1,
            }
        });
        let copies = [300, 2_300].map(|at: u64| Copied {
            network: 0,
            process: 1,
            space: 2,
            number: at as u32,
            left_ns: at * MS + 1,
            came_ns: None,
        });
        Seen {
            sent: 4_000,
            came: came.collect(),
            copies: copies.into(),
            turns: vec![turn(300), turn(2_300)],
        }
    }

    fn stall(at: u64, length: u64) -> Stalls {
        Stalls::of(vec![Stall {
            time_ns: at * MS,
            length_ns: length * MS,
            seen_by: String::new(),
        }])
    }

    #[test]
    fn a_gap_is_broken_above_three_round_trips_and_ten_ms_unless_the_machine_stood_still() {
        let judged = |gap: u64, stalls: &Stalls| {
            let bar = seen(gap).judged(stalls);
            (bar.held, bar.stalled)
        };
        assert_eq!(judged(22, &Stalls::default()), (true, 0));
        assert_eq!(judged(40, &Stalls::default()), (false, 0));
        // Of both gaps one is excused.
        assert_eq!(judged(40, &stall(330, 20)), (false, 1));
        let mut one = seen(40);
        one.turns.pop();
        assert!(one.judged(&stall(330, 20)).held);
        assert!(!one.judged(&stall(330, 2)).held);
        assert!(!one.judged(&stall(900, 20)).held);
    }

    #[test]
    fn a_loss_a_double_and_a_cut_that_took_nothing_break_it() {
        let none = Stalls::default();
        let mut lost = seen(5);
        lost.came.remove(50);
        let mut doubled = seen(5);
        doubled.came[50].times = 2;
        let mut uncut = seen(5);
        uncut.copies.pop();
        for it in [lost, doubled, uncut] {
            assert!(!it.judged(&none).held);
        }
    }

    #[test]
    fn the_slower_round_trip_is_taken_once_the_first_network_carries() {
        let status = |carries: bool, trip: Value| {
            json!({"sending": [
                {"mode": "redundant"},
                {"mode": "standby", "networks": [
                    {"carries": carries, "round_trip_us": 4_000.0},
                    {"carries": !carries, "round_trip_us": trip},
                ]},
            ]})
        };
        assert_eq!(carried(&status(true, 5_000.0.into())), Some(5_000_000));
        assert_eq!(carried(&status(false, 5_000.0.into())), None);
        assert_eq!(carried(&status(true, Value::Null)), None);
    }
}
