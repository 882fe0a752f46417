//! A stream at 1,000 packets a second over networks of which one is cut, in turn: it goes on as if nothing had happened.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::super::Plan;
use super::super::statistics::chance_of_ranks;
use super::{
    Bar, Cut, MS, NETWORKS, ONE_IN, SETTLE, all_in_copies, cut, cuts_told, even, felt, lengths,
    longest_gap, ms, plain, spread,
};
use crate::iprp::LabError;
use crate::iprp::flow::{Came, Receiver, Senders};
use crate::iprp::relay::Copied;
use crate::iprp::site::Site;
use crate::iprp::stalls::Stalls;

/// Bytes of a datagram, and the time between two.
const LEN: usize = 280;
const EVERY: Duration = Duration::from_millis(1);
/// Both networks take as long, so that what a cut adds is not what the other one takes longer.
const DELAYS_MS: [u64; NETWORKS] = [1, 1];
/// How long a network is cut, and how long both are sound before that.
const DOWN: Duration = Duration::from_millis(250);
const SOUND: Duration = Duration::from_millis(250);
pub const TURN: Duration = Duration::from_millis(500);
/// A longer gap at one packet in a millisecond is a gap.
const GAP_NS: u64 = 50 * MS;
/// What is looked at after a cut, and as long before it.
const LOOK_NS: u64 = 120 * MS;

/// What was seen.
pub struct Seen {
    sent: usize,
    /// What came.
    came: Vec<Came>,
    copies: Vec<Copied>,
    cuts: Vec<Cut>,
}

/// Runs the stream.
///
/// # Errors
/// As a scenario's.
pub fn measure(plan: &Plan, cuts: usize) -> Result<Seen, LabError> {
    let usual = even(DELAYS_MS);
    let mut site = Site::start(&plan.binary, (NETWORKS, 1), plan.seed, &plan.stop)?;
    let receiver = Receiver::start(&site.hosts, 1)?;
    let mut senders = Senders::new(&site.hosts, 1, LEN)?;
    super::super::losses::begin(&mut site, &mut senders, NETWORKS, 1)?;
    site.set(usual.to_vec());
    let (first, before, is_over) = (senders.sent()[0], plain(&site), AtomicBool::new(false));
    let done = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            senders.stream(EVERY, |_| is_over.load(Ordering::Acquire));
        });
        let mut done = Vec::new();
        let result = (0..cuts).try_for_each(|turn| {
            site.sleep(SOUND)?;
            done.push(cut(&mut site, &usual, turn % NETWORKS, DOWN)?);
            Ok(())
        });
        is_over.store(true, Ordering::Release);
        let _ = sending.join();
        result.map(|()| done)
    });
    let cuts = done?;
    site.sleep(SETTLE)?;
    all_in_copies(&site, before, "the stream over cuts")?;
    let (copies, arrivals) = (site.take(), receiver.end());
    let numbers = first..senders.sent()[0];
    let came = arrivals.iter().filter(|(key, _)| numbers.contains(&key.1));
    let came = came.map(|(_, came)| *came).collect();
    site.end();
    Ok(Seen {
        sent: numbers.len(),
        came,
        copies,
        cuts,
    })
}

impl Seen {
    /// Whether nothing passed on a network while it was cut, and copies were sent there.
    fn took_place(&self) -> bool {
        let lost = |cut: &Cut| {
            // Until the network has heard of it.
            let inside = cut.from_ns + 50 * MS..cut.until_ns;
            let copies = self.copies.iter();
            let copies =
                copies.filter(|it| it.network == cut.network && inside.contains(&it.left_ns));
            let (mut all, mut lost) = (0, 0);
            copies.for_each(|it| {
                all += 1;
                lost += usize::from(it.came_ns.is_none());
            });
            all > 20 && all == lost
        };
        !self.cuts.is_empty() && self.cuts.iter().all(lost)
    }

    /// What it comes to.
    pub fn judged(&self, stalls: &Stalls) -> Bar {
        let mut arrivals: Vec<_> = self.came.iter().map(|it| it.came_ns).collect();
        arrivals.sort_unstable();
        let gap = |from: u64| longest_gap(&arrivals, from, from + LOOK_NS);
        let longest: Vec<_> = self.cuts.iter().map(|cut| gap(cut.from_ns)).collect();
        let without = self.cuts.iter().map(|cut| gap(cut.from_ns - LOOK_NS));
        let without: Vec<_> = without.collect();
        let (after, without) = (lengths(&longest), lengths(&without));
        let chance = chance_of_ranks(&after, &without);
        let (felt, stalled) = felt(&longest, (GAP_NS, &without), stalls);
        let lost = self.sent - self.came.len();
        let doubled = self.came.iter().filter(|it| it.times > 1).count();
        let took_place = self.took_place();
        Bar {
            id: "cut-stream",
            promised: format!(
                "one of two networks is cut at 1,000 packets a second: nothing lost, nothing doubled, and the longest gap after a cut is not \
                 told from that without one (ranks, once in {ONE_IN:.0} true measurements), nor longer than {} ms and all of those",
                GAP_NS / MS
            ),
            seen: format!(
                "{}: {lost} of {} lost, {doubled} doubled; longest gap after a cut {}, as long before it {}; by chance so in {:.1} % of \
                 measurements; {felt} felt by themselves",
                cuts_told(self.cuts.len(), took_place),
                self.sent,
                spread(&after),
                spread(&without),
                chance * 100.0
            ),
            held: took_place && lost + doubled + felt == 0 && chance * ONE_IN >= 1.0,
            stalled,
            figures: json!({
                "sent": self.sent,
                "lost": lost,
                "doubled": doubled,
                "longest_gap_after_a_cut_ms": ms(&after),
                "longest_gap_before_it_ms": ms(&without),
                "chance": chance,
                "felt": felt,
                "took_place": took_place,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stall;
    use super::*;

    /// Eight cuts of a stream that takes `gap` ms longer at each, in which gaps of up to 4 ms come by themselves.
    fn seen(gap: u64) -> Seen {
        let cuts: Vec<_> = (0..8)
            .map(|turn| Cut {
                network: turn as usize % NETWORKS,
                from_ns: (turn * 500 + 250) * MS,
                until_ns: (turn * 500 + 500) * MS,
            })
            .collect();
        let copies = (1..4_000).flat_map(|at: u64| {
            let cuts = &cuts;
            (0..NETWORKS).map(move |network| {
                let left_ns = at * MS;
                let is_cut = |it: &Cut| {
                    it.network == network && (it.from_ns..it.until_ns).contains(&left_ns)
                };
                let came_ns = (!cuts.iter().any(is_cut)).then_some(left_ns + MS);
                Copied {
                    network,
                    process: 1,
                    space: 2,
                    number: at as u32,
                    left_ns,
                    came_ns,
                }
            })
        });
        let came = (1..4_000).map(|at: u64| {
            let late = match (at % 500, at % 97) {
                (250..270, _) => gap,
                (_, 0) => at % 5,
                _ => 0,
            };
            Came {
                sent_ns: at * MS,
                came_ns: (at + 1 + late) * MS,
                times: 1,
            }
        });
        Seen {
            sent: 3_999,
            came: came.collect(),
            copies: copies.collect(),
            cuts,
        }
    }

    #[test]
    fn what_is_lost_doubled_or_held_up_by_cuts_breaks_it_and_jitter_does_not() {
        let good = seen(0);
        assert!(
            good.judged(&Stalls::default()).held,
            "{:?}",
            good.judged(&Stalls::default())
        );
        for gap in [20, 100] {
            assert!(
                !seen(gap).judged(&Stalls::default()).held,
                "{gap}: {:?}",
                seen(gap).judged(&Stalls::default())
            );
        }
        // One of eight is enough, whatever the ranks say, unless the machine stood still.
        let mut one = seen(0);
        let late = (250..320).map(|at: u64| at * MS);
        let late: Vec<_> = late.collect();
        one.came
            .iter_mut()
            .filter(|it| late.contains(&it.sent_ns))
            .for_each(|it| it.came_ns = 321 * MS);
        let bar = one.judged(&Stalls::default());
        assert!(!bar.held && bar.stalled == 0, "{bar:?}");
        let bar = one.judged(&stall(255, 60));
        assert!(bar.held && bar.stalled == 1, "{bar:?}");
        let mut lost = seen(0);
        lost.came.pop();
        assert!(!lost.judged(&Stalls::default()).held);
        let mut doubled = seen(0);
        doubled.came[7].times = 2;
        assert!(!doubled.judged(&Stalls::default()).held);
    }

    #[test]
    fn a_cut_that_did_not_take_place_proves_nothing() {
        let mut seen = seen(0);
        let passed = seen.copies.iter_mut().find(|it| it.left_ns == 400 * MS);
        passed.unwrap().came_ns = Some(401 * MS);
        assert!(!seen.judged(&Stalls::default()).held);
        seen.cuts.clear();
        assert!(!seen.judged(&Stalls::default()).held);
    }
}
