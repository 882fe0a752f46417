//! Sites that end, and are back.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use bumpless_base::Random;
use bumpless_base::random::mix64;
use bumpless_net_linux::Clock;
use bumpless_plan::distance::{Distance, Sizes};
use bumpless_wan::address::{Addresses, Pool};
use bumpless_wan::emulation::{self, Delays, Routing, Running};

use super::Ending;
use super::SitesOptions;
use super::configuration::{self, Map, NODES};
use super::judge::{Evidence, Limits, failure};
use super::pair::Pair;
use super::result::{Failure, Planned, SitesResult};
use crate::demo::meter::Meter;
use crate::runlog::{Run, Stall};
use crate::study::urgent;
use crate::torture::ledger::Count;

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;
/// How often something is looked for.
const LOOK_NS: u64 = 10 * MS;
/// How long a pair has to become redundant after a start.
const PATIENCE_NS: u64 = 20_000 * MS;
/// How long an order is given again while it is refused: the backup may not be ready at that moment.
const ORDER_NS: u64 = 2_000 * MS;
/// From an ordered switchover until the site that has given the role away ends.
const BEFORE_THE_END_NS: u64 = 300 * MS;
/// How long a site is gone.
const GONE_NS: u64 = 700 * MS;
/// What logs may lag behind.
const LAG_NS: u64 = 160 * MS;
/// What a computer that is back may take beside its start wait: processes start, states come.
const RETURN_NS: u64 = 2_000 * MS;
/// The longest lease that the witness grants is no less.
const LONGEST_LEASE_MS: u64 = 200;

fn now_ns() -> u64 {
    Clock.now().as_nanos()
}

/// Does what `options` ask for; `told` hears how many sites of how many have ended.
///
/// # Errors
/// What keeps it from judging anything. Nothing of it is left.
pub fn run_sites(
    options: &SitesOptions,
    told: &(dyn Fn(usize, usize) + Sync),
) -> Result<SitesResult, String> {
    // The network's holder is started from here, too: what else runs on the machine is no distance.
    urgent(|| over_the_network(options, told))
}

fn over_the_network(
    options: &SitesOptions,
    told: &dyn Fn(usize, usize),
) -> Result<SitesResult, String> {
    let topology = &options.topology;
    let addresses = Addresses::new(topology, Pool::V4).map_err(|error| error.to_string())?;
    let map = Map::new(topology, &addresses, &options.sites)?;
    // What the distance does not permit is told before anything is made.
    configuration::sized(options, &map, Path::new("/"))?;
    let mut keeper = Command::new(&options.binary);
    keeper.args(["wan", "keep", "--tied", "--name", options.place.name()]);
    let (running, tie) = emulation::up_tied(
        &options.place,
        topology,
        (Pool::V4, Routing::Fixed),
        &mut keeper,
    )
    .map_err(|error| error.to_string())?;
    let delayed = delayed(&running.delays);
    let result = delayed.and_then(|()| on(options, &running, &map, told));
    // What does not end in order ends with the process that holds it.
    let _ = emulation::down(&options.place);
    drop(tie);
    result
}

/// Whether links take their time: promises are those of distances.
fn delayed(delays: &Delays) -> Result<(), String> {
    match delays {
        Delays::Lacking(why) => Err(format!(
            "every link of the network would be instant, so nothing could be said of distances: {why}"
        )),
        Delays::Nothing | Delays::Netem | Delays::Held => Ok(()),
    }
}

fn on(
    options: &SitesOptions,
    running: &Running,
    map: &Map,
    told: &dyn Fn(usize, usize),
) -> Result<SitesResult, String> {
    let directory = options.place.folder().map_err(|error| error.to_string())?;
    let (text, sizes, distance) = configuration::sized(options, map, &directory)?;
    let longest = sizes.lease.as_nanos().div_ceil(MS).max(LONGEST_LEASE_MS);
    let pair = Pair::start(&options.binary, &directory, running, map, (&text, longest))?;
    let began = Clock.now();
    let mut result = SitesResult::begin(options.seed, options.failures);
    result.planned = planned(options, running, map, &sizes, &distance);
    let mut stage = Stage {
        options,
        running,
        map,
        planned: result.planned.clone(),
        heal_ns: sizes.start_wait.as_nanos() + RETURN_NS,
        pair,
        random: Random::new(mix64(options.seed)),
        stalls: Vec::new(),
    };
    for number in 1..=options.failures {
        let ending = options.endings[(number as usize - 1) % options.endings.len()];
        match stage.end(number, ending) {
            Ok(Some(failure)) => result.failures.push(failure),
            Ok(None) => break,
            Err(why) => {
                result.error = Some(why);
                break;
            }
        }
        told(number as usize, options.failures as usize);
    }
    let longest = stage.stalls.iter().map(|stall| stall.length_ns).max();
    result.stalls = (stage.stalls.len(), longest.unwrap_or(0) as f64 / 1e6);
    result.head.took_s = Clock.now().since(began).as_nanos() as f64 / 1e9;
    result.conclude();
    Ok(result)
}

fn planned(
    options: &SitesOptions,
    running: &Running,
    map: &Map,
    sizes: &Sizes,
    distance: &Distance,
) -> Planned {
    let ms = |span: bumpless_base::Duration| span.as_millis_f64();
    let gaps = distance.applications.first().map(|far| far.gaps);
    let gap = |ending: Ending| gaps.map_or(0.0, |gaps| ms(ending.promised(&gaps)));
    let delays = match running.delays {
        Delays::Nothing => "nothing",
        Delays::Netem => "netem",
        Delays::Held => "held",
        Delays::Lacking(_) => "lacking",
    };
    let topology = &options.topology;
    Planned {
        network: (
            topology.nodes().len(),
            topology.links().len(),
            delays.to_owned(),
        ),
        nodes: options.sites.nodes.clone(),
        witness: options.sites.witness.clone(),
        field: options.sites.field.clone(),
        pair_ms: ms(map.pair),
        to_witness_ms: ms(map.to_witness),
        to_field_ms: ms(map.to_field),
        heartbeat_ms: ms(sizes.heartbeat),
        lease_ms: ms(sizes.lease),
        least_lease_ms: ms(distance.least_lease),
        period_ms: ms(sizes.period),
        deadline_ms: ms(sizes.deadline),
        takeover_ms: ms(distance.takeover),
        unordered_ms: gap(Ending::PrimaryKilled),
        ordered_ms: gap(Ending::Ordered),
        backup_ms: gap(Ending::BackupKilled),
    }
}

/// Where sites end.
struct Stage<'a> {
    options: &'a SitesOptions,
    running: &'a Running,
    map: &'a Map,
    planned: Planned,
    heal_ns: u64,
    pair: Pair<'a>,
    random: Random,
    stalls: Vec<Stall>,
}

impl Stage<'_> {
    /// Waits until then, unless somebody wants to stop; returns whether to go on.
    fn until(&self, until_ns: u64) -> bool {
        loop {
            if self.options.stop.load(Ordering::Relaxed) {
                return false;
            }
            let left = until_ns.saturating_sub(now_ns());
            if left == 0 {
                return true;
            }
            thread::sleep(Duration::from_nanos(left.min(LOOK_NS)));
        }
    }

    /// Waits until the pair is redundant at a moment after `since_ns`.
    fn redundant(&self, since_ns: u64, timeout_ns: u64) -> Option<usize> {
        let until = now_ns().max(since_ns) + timeout_ns;
        while now_ns() < until && self.until(now_ns() + LOOK_NS) {
            if let Some(primary) = self.pair.redundant(since_ns) {
                return Some(primary);
            }
        }
        None
    }

    /// Ends a site, has it return, and judges; `None` if somebody wants to stop.
    fn end(&mut self, number: u32, ending: Ending) -> Result<Option<Failure>, String> {
        let Some(_) = self.redundant(now_ns(), PATIENCE_NS) else {
            return self.stopped_or("the pair does not become redundant");
        };
        let meter = Meter::start().map_err(|error| format!("a thread: {error}"))?;
        let moment = self.random.below(100 * MS);
        if !self.until(now_ns() + LAG_NS + moment) {
            return Ok(None);
        }
        let Some(primary) = self.redundant(now_ns(), PATIENCE_NS) else {
            return self.stopped_or("the pair does not stay redundant");
        };
        // What was before is judged where it belongs; the last write is where a gap begins.
        self.pair.take_events();
        let before = self.pair.take_writes(&mut Count::default());
        let mut writes: Vec<_> = before
            .into_iter()
            .rev()
            .find(|write| write.accepted)
            .into_iter()
            .collect();
        let mut count = Count::default();
        let (fault_ns, ordered) = self.gone_and_back(ending, primary)?;
        let since = fault_ns.1 + LAG_NS;
        let healed = self.redundant(since, self.heal_ns.max(PATIENCE_NS));
        let healed_ns = healed.map(|_| now_ns());
        if !self.until(now_ns() + LAG_NS) {
            return Ok(None);
        }
        writes.extend(self.pair.take_writes(&mut count));
        let (events, strange) = self.pair.take_events();
        let stalls = meter.end();
        self.stalls.extend(stalls.iter().cloned());
        let seen = Evidence {
            run: Run {
                writes,
                stalls,
                ..Run::default()
            },
            count,
            events,
            strange,
            fault_ns,
            healed_ns,
            until_ns: now_ns() - LAG_NS,
            ordered,
        };
        let ns = |ms: f64| (ms * 1e6) as u64;
        let promised_ms = match ending {
            Ending::PrimaryKilled | Ending::PrimaryCut => self.planned.unordered_ms,
            Ending::Ordered => self.planned.ordered_ms,
            Ending::BackupKilled | Ending::BackupCut => self.planned.backup_ms,
        };
        let limits = Limits {
            gap_ns: ns(promised_ms),
            period_ns: ns(self.planned.period_ms),
            heal_ns: self.heal_ns,
        };
        Ok(Some(failure(number, ending, NODES[primary], &seen, limits)))
    }

    fn stopped_or(&self, why: &str) -> Result<Option<Failure>, String> {
        match self.options.stop.load(Ordering::Relaxed) {
            true => Ok(None),
            false => Err(format!(
                "{why} in time; is the machine overloaded?\n{}",
                self.pair.last_words()
            )),
        }
    }

    /// A site ends and is back: when, and what became of an order.
    #[expect(clippy::type_complexity, reason = "two instants and an outcome")]
    fn gone_and_back(
        &mut self,
        ending: Ending,
        primary: usize,
    ) -> Result<((u64, u64), Option<Result<(), String>>), String> {
        let node = if ending.is_of_primary() {
            primary
        } else {
            1 - primary
        };
        let mut ordered = None;
        let mut from_ns = now_ns();
        if ending == Ending::Ordered {
            ordered = Some(self.hand_over(primary)?);
            self.until(now_ns() + BEFORE_THE_END_NS);
        }
        let place = self.map.nodes[node].0;
        let links = self.options.topology.links_at(place).to_vec();
        let fail = |error: std::io::Error| format!("the kernel refuses: {error}");
        if ending.is_cut() {
            emulation::cut(self.running, &self.options.topology, &links).map_err(fail)?;
        } else if let Some(at) = self.pair.kill_node(node) {
            from_ns = if ordered.is_some() { from_ns } else { at };
        }
        self.until(now_ns() + GONE_NS);
        if ending.is_cut() {
            emulation::heal(self.running, &self.options.topology, &links).map_err(fail)?;
        } else {
            self.pair.start_node(node)?;
        }
        Ok(((from_ns, now_ns()), ordered))
    }

    /// Orders the switchover until it is taken and the roles have changed.
    fn hand_over(&self, primary: usize) -> Result<Result<(), String>, String> {
        let until = now_ns() + ORDER_NS;
        let mut refused = "the roles have not changed".to_owned();
        while now_ns() < until {
            if let Some(why) = self.pair.order(primary)? {
                refused = why;
            }
            if self
                .redundant(now_ns(), ORDER_NS / 4)
                .is_some_and(|now| now != primary)
            {
                return Ok(Ok(()));
            }
        }
        Ok(Err(refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_lacks_its_delays_is_refused_with_the_reason() {
        let why = delayed(&Delays::Lacking("no netem".to_owned())).unwrap_err();
        assert!(why.ends_with("no netem"), "{why}");
        // Links that are to take no time are what was asked for.
        for right in [Delays::Nothing, Delays::Netem, Delays::Held] {
            assert_eq!(delayed(&right), Ok(()));
        }
    }
}
