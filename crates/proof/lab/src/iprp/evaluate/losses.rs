//! One scenario: datagrams on several flows at once, what each network lost, what the program missed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Plan;
use super::scenario::Scenario;
use super::statistics::interval;
use crate::iprp::flow::{Arrivals, Receiver, Senders};
use crate::iprp::hosts::NAMES;
use crate::iprp::relay::{Copied, Delay, Fault};
use crate::iprp::site::Site;
use crate::iprp::{LabError, impossible};

/// As the paper has it: bytes of a datagram, and the time between two of a flow.
pub const LEN: usize = 280;
pub const EVERY: Duration = Duration::from_millis(20);
/// For what is on its way, beside the networks' delay.
const SETTLE: Duration = Duration::from_millis(300);
/// Networks that delay evenly do so by as much as those of figure 5 on the average; how long at least and at most, twice.
const EVEN: Delay = Delay {
    least_ns: 10_000_000,
    spread_ns: 0,
};
const EVEN_LEAST: Duration = Duration::from_secs(1);
const EVEN_MOST: Duration = Duration::from_secs(5);
/// Between the marks by which flows are told apart.
const MARK: Duration = Duration::from_millis(4);

/// One datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// How long its copy took on each network, nanoseconds; `None`: it was lost.
    pub copies: [Option<u64>; NAMES.len()],
    /// On how many networks a copy left.
    pub left: usize,
    /// When it was sent (nanoseconds of CLOCK_BOOTTIME), if it came.
    pub sent_ns: u64,
    /// How long it took from program to program; `None`: it was lost.
    pub delay_ns: Option<u64>,
}

/// What was measured in a scenario.
#[derive(Clone, Debug)]
pub struct Measured {
    pub scenario: Scenario,
    /// By flow.
    pub samples: Vec<Vec<Sample>>,
    /// Datagrams of the scenario of figure 5 while networks delayed evenly, before and after it.
    pub even: Vec<Sample>,
    pub doubled: usize,
    /// Datagrams of which a network has not seen the copy, so that it could not lose it; they do not count.
    pub unseen: usize,
}

/// Runs `scenario`.
///
/// # Errors
/// The machine does not permit it, or it was told to stop.
pub fn measure(plan: &Plan, scenario: Scenario) -> Result<Measured, LabError> {
    let networks = scenario.networks.len();
    let seed = plan.seed.wrapping_add(scenario.number as u64);
    let mut site = Site::start(&plan.binary, (networks, plan.flows), seed, &plan.stop)?;
    let receiver = Receiver::start(&site.hosts, plan.flows)?;
    let mut senders = Senders::new(&site.hosts, plan.flows, LEN)?;
    begin(&mut site, &mut senders, networks, plan.flows)?;
    let origins = tell_apart(&mut site, &mut senders, plan.flows)?;
    let mut parts = Vec::new();
    for (faults, length) in parts_of(plan, &scenario) {
        site.set(faults);
        let first = senders.sent().to_vec();
        let stop = || plan.stop.load(std::sync::atomic::Ordering::Relaxed);
        senders.stream(EVERY, |passed| passed >= length || stop());
        site.sleep(SETTLE + Duration::from_nanos(scenario.longest_ns()))?;
        let sent: Vec<_> = first.into_iter().zip(senders.sent().to_vec()).collect();
        parts.push((sent, site.take()));
    }
    let arrivals = receiver.end();
    site.end();
    let mut parts: Vec<_> = parts
        .iter()
        .map(|(sent, copies)| samples(sent, copies, &arrivals, &origins))
        .collect();
    let all = parts.iter().flatten().flatten();
    let plain = all.filter(|it| it.is_none()).count();
    let samples = parts.swap_remove(parts.len() / 2);
    let counts = |it: &Sample| it.left == networks;
    let even = parts.into_iter().flatten().flatten().flatten();
    let even = even.filter(counts).collect();
    if plain > 0 {
        return Err(impossible(format_args!(
            "{plain} datagrams of scenario {} left without copies, as when this machine stands still for a second; measure again",
            scenario.number
        )));
    }
    let unseen = samples.iter().flatten().flatten();
    let unseen = unseen.filter(|it| !counts(it)).count();
    let doubled = arrivals.values().filter(|it| it.times > 1).count();
    Ok(Measured {
        scenario,
        samples: samples
            .into_iter()
            .map(|flow| flow.into_iter().flatten().filter(counts).collect())
            .collect(),
        even,
        doubled,
        unseen,
    })
}

/// What networks do, for how long, in order; the part in the middle is the scenario. The time through both hosts is measured by the same flows,
/// on both sides of what it is held against.
fn parts_of(plan: &Plan, scenario: &Scenario) -> Vec<(Vec<Fault>, Duration)> {
    let whole = (scenario.faults(), plan.length);
    if scenario.number != super::FIGURE_5 {
        return vec![whole];
    }
    let beside = (plan.length / 8).clamp(EVEN_LEAST, EVEN_MOST);
    let even = || (even(scenario.networks.len()), beside);
    vec![even(), whole, even()]
}

/// Networks that delay evenly and lose nothing.
fn even(networks: usize) -> Vec<Fault> {
    let even = Fault {
        delay: EVEN,
        ..Fault::default()
    };
    vec![even; networks]
}

/// Sends until every flow is replicated on every network.
pub fn begin(
    site: &mut Site,
    senders: &mut Senders,
    networks: usize,
    flows: usize,
) -> Result<(), LabError> {
    site.wait("every flow is replicated", |site| {
        (0..flows).for_each(|flow| {
            senders.send(flow);
        });
        site.replicated(networks) == flows
    })?;
    site.sleep(SETTLE)?;
    site.take();
    Ok(())
}

/// By number space: which flow it is, and what is to be added to its numbers to have those of datagrams.
type Origins = BTreeMap<u32, (usize, u32)>;

fn tell_apart(site: &mut Site, senders: &mut Senders, flows: usize) -> Result<Origins, LabError> {
    let mut marks = Vec::new();
    for flow in 0..flows {
        marks.push(senders.send(flow));
        site.sleep(MARK)?;
    }
    site.sleep(SETTLE)?;
    let mut copies = site.take();
    copies.retain(|copy| copy.network == 0);
    copies.sort_by_key(|copy| copy.left_ns);
    let found = copies.iter().zip(&marks).enumerate();
    let origins: Origins = found
        .map(|(flow, (copy, mark))| (copy.space, (flow, mark.wrapping_sub(copy.number))))
        .collect();
    match copies.len() == flows && origins.len() == flows {
        true => Ok(origins),
        false => Err(impossible("flows could not be told apart; measure again")),
    }
}

/// By flow, what became of each datagram; `None`: it had no copy.
fn samples(
    sent: &[(u32, u32)],
    copies: &[Copied],
    arrivals: &Arrivals,
    origins: &Origins,
) -> Vec<Vec<Option<Sample>>> {
    let empty = sent
        .iter()
        .map(|(first, end)| vec![None; (end - first) as usize]);
    let mut all: Vec<Vec<Option<Sample>>> = empty.collect();
    for copy in copies {
        let Some((flow, offset)) = origins.get(&copy.space) else {
            continue;
        };
        let number = copy.number.wrapping_add(*offset);
        let at = number.wrapping_sub(sent[*flow].0) as usize;
        let Some(it) = all[*flow].get_mut(at) else {
            continue;
        };
        let sample = it.get_or_insert_with(|| {
            let came = arrivals.get(&(*flow as u32, number));
            Sample {
                sent_ns: came.map_or(0, |came| came.sent_ns),
                delay_ns: came.map(|came| came.came_ns.saturating_sub(came.sent_ns)),
                ..Sample::default()
            }
        });
        sample.left += 1;
        sample.copies[copy.network] = copy.came_ns.map(|came| came - copy.left_ns);
    }
    all
}

impl Measured {
    /// How many datagrams were sent.
    pub fn sent(&self) -> usize {
        self.samples.iter().map(Vec::len).sum()
    }

    /// How many the program missed.
    pub fn lost(&self) -> usize {
        let all = self.samples.iter().flatten();
        all.filter(|it| it.delay_ns.is_none()).count()
    }

    /// The share of copies that a network lost.
    pub fn loss_of(&self, network: usize) -> f64 {
        let all = self.samples.iter().flatten();
        let lost = all.filter(|it| it.copies[network].is_none()).count();
        lost as f64 / self.sent().max(1) as f64
    }

    /// The share that all networks would lose together if they lost independently of each other.
    pub fn theory(&self) -> f64 {
        let networks = 0..self.scenario.networks.len();
        networks.map(|network| self.loss_of(network)).product()
    }

    /// Within which counts of lost datagrams theory is confirmed, with 99 %.
    pub fn interval(&self) -> (f64, f64) {
        let losses: Vec<_> = self.scenario.networks.iter().map(|it| it.2).collect();
        let each = self.samples.first().map_or(1, Vec::len).max(1);
        interval(self.sent(), each, self.theory(), &losses)
    }

    /// Whether what was lost is what theory says.
    pub fn is_as_theory_says(&self) -> bool {
        let (least, most) = self.interval();
        let lost = self.lost() as f64;
        least <= lost && lost <= most && self.sent() > 0
    }

    /// Whether it is, all of it was lost by the networks, and nothing came twice.
    pub fn holds(&self) -> bool {
        self.is_as_theory_says() && self.own_losses() == 0 && self.doubled == 0
    }

    /// Datagrams that no network lost all copies of, and the program missed: iPRP's own losses.
    pub fn own_losses(&self) -> usize {
        let all = self.samples.iter().flatten();
        all.filter(|it| it.delay_ns.is_none() && it.copies.iter().any(Option::is_some))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::ALL;
    use super::*;
    use crate::iprp::flow::Came;

    fn measured(samples: Vec<Sample>) -> Measured {
        Measured {
            scenario: ALL[1],
            samples: vec![samples],
            even: Vec::new(),
            doubled: 0,
            unseen: 0,
        }
    }

    fn sample(a: bool, b: bool, came: bool) -> Sample {
        Sample {
            copies: [a.then_some(1), b.then_some(2), None],
            left: 2,
            sent_ns: 0,
            delay_ns: came.then_some(3),
        }
    }

    #[test]
    fn what_all_networks_lost_is_theorys_and_what_one_brought_and_the_program_missed_is_not() {
        let mut all = vec![sample(true, true, true); 360];
        all.extend([sample(false, true, true); 19]);
        all.extend([sample(true, false, true); 19]);
        all.extend([sample(false, false, false); 1]);
        let good = measured(all.clone());
        assert!((good.loss_of(0) - 20.0 / 399.0).abs() < 1e-9);
        assert_eq!((good.lost(), good.own_losses(), good.holds()), (1, 0, true));
        // As many as theory has, and this one is not the networks'.
        let mut own = all.clone();
        own[0] = sample(true, true, false);
        let own = measured(own);
        assert_eq!((own.lost(), own.own_losses()), (2, 1));
        assert!(own.is_as_theory_says() && !own.holds());
        all.extend([sample(true, true, false); 9]);
        let bad = measured(all);
        assert_eq!((bad.lost(), bad.own_losses(), bad.holds()), (10, 9, false));
    }

    #[test]
    fn copies_find_their_datagrams_by_space_and_number() {
        let copy = |space: u32, number: u32, came: bool| Copied {
            network: 0,
            process: 1,
            space,
            number,
            left_ns: 5,
            came_ns: came.then_some(12),
        };
        // Flow 0 is space 4, flow 1 is space 2; datagrams 3 and 4 of each, numbers 1 and 2.
        let origins = BTreeMap::from([(4, (0, 2)), (2, (1, 2))]);
        let copies = [copy(4, 1, true), copy(2, 2, false), copy(8, 1, true)];
        let came = Came {
            sent_ns: 1,
            came_ns: 4,
            times: 1,
        };
        let arrivals = Arrivals::from([((0, 3), came)]);
        let all = samples(&[(3, 5), (3, 5)], &copies, &arrivals, &origins);
        let first = all[0][0].unwrap();
        assert_eq!((first.copies[0], first.delay_ns), (Some(7), Some(3)));
        assert_eq!(all[0][1], None);
        let lost = Sample {
            left: 1,
            ..Sample::default()
        };
        assert_eq!(all[1][1], Some(lost));
    }
}
