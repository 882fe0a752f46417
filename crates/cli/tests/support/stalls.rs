//! What missed its time because this machine stood still is told from the rest, as in spec/torture.md: each miss on its own, by the
//! stalls inside the time that it had.

use std::fmt;

use bumpless_lab::demo::meter::Meter;
use bumpless_lab::runlog::Stall;
use bumpless_net_linux::Clock;
use serde_json::Value;

use super::site::Site;
use super::wait_for;

const NODES: [&str; 2] = ["left", "right"];
/// Heartbeats of silence after which a network is called down.
const SILENCE: u64 = 3;
const MS: u64 = 1_000_000;

/// Looks for stalls on each processor, beside the nodes and without them.
pub struct Watch {
    meter: Meter,
    from_ns: u64,
    /// States of each node that had failed before.
    failed: [u64; 2],
}

/// What was not in time.
#[derive(Clone, Debug)]
pub struct Miss {
    pub what: String,
    /// When that was told, nanoseconds.
    pub at_ns: u64,
    /// How long it had until then.
    pub had_ns: u64,
}

/// What was seen of both nodes and of the machine meanwhile.
#[derive(Default)]
pub struct Watched {
    pub stalls: Vec<Stall>,
    pub missed: Vec<Miss>,
}

impl Watch {
    /// By threads as prompt as nodes with `[realtime]`, where that is permitted.
    pub fn start(site: &Site) -> Self {
        Self::by(Meter::start().unwrap(), site)
    }

    /// By threads that wait for a processor like any other's, as nodes without rights do.
    pub fn patient(site: &Site) -> Self {
        Self::by(Meter::patient().unwrap(), site)
    }

    /// By threads of this priority, which a load below it keeps from nothing.
    pub fn above(site: &Site, priority: u8) -> Self {
        Self::by(Meter::above(priority).unwrap(), site)
    }

    fn by(meter: Meter, site: &Site) -> Self {
        Self {
            meter,
            from_ns: Clock.now().as_nanos(),
            failed: NODES.map(|node| failed(&applications(site, node))),
        }
    }

    /// Ends it. States that did not reach the backup in time and networks that were called down count as missed; what a plant
    /// does that is no real-time process does not. Each state that status counts as failed is in the log, but for those that fail while the
    /// partner is not heard (spec/events.md): then the networks that were called down are judged.
    pub fn end(self, site: &Site) -> Watched {
        let mut missed = Vec::new();
        for (node, before) in NODES.into_iter().zip(self.failed) {
            let applications = applications(site, node);
            let count = failed(&applications) - before;
            let what = format!("{node} tells of each of {count} states that failed");
            // The log may be a moment behind.
            missed.extend(wait_for(&what, || {
                let mut events = site.events(node);
                events.retain(|line| line["time_ns"].as_u64() >= Some(self.from_ns));
                let all = events.iter();
                let told = all.filter_map(|line| miss(line, (node, site), &applications));
                let told: Vec<_> = told.collect();
                let states = told.iter().filter(|it| it.is_state()).count() as u64;
                let silent = events.iter().any(|it| it["event"] == "partner_silent");
                (silent || states >= count).then_some(told)
            }));
        }
        Watched {
            stalls: self.meter.end(),
            missed,
        }
    }
}

fn applications(site: &Site, node: &str) -> Vec<Value> {
    let status = site.status(node).unwrap();
    status["applications"].as_array().unwrap().clone()
}

fn failed(applications: &[Value]) -> u64 {
    let count = |it: &Value| it["transfers_failed"].as_u64().unwrap();
    applications.iter().map(count).sum()
}

/// What a line of a node's log says was not in time.
fn miss(line: &Value, (node, site): (&str, &Site), applications: &[Value]) -> Option<Miss> {
    let (what, had_ns) = match line["event"].as_str()? {
        "transfer" if line["outcome"] == "failed" => {
            let name = &line["application"];
            let of_it = applications.iter().find(|it| it["name"] == *name);
            // One that has gone since had some time, too.
            let deadline = of_it.and_then(|it| it["deadline_ms"].as_f64());
            let had = (deadline.unwrap_or_default() * MS as f64) as u64;
            (format!("{STATE} of {name} ({})", line["cause"]), had)
        }
        "link" if line["up"] == false => {
            let had = SILENCE * u64::from(site.plan.heartbeat_ms) * MS;
            (format!("network {} called down", line["link"]), had)
        }
        _ => return None,
    };
    Some(Miss {
        what: format!("{node}: {what}"),
        at_ns: line["time_ns"].as_u64()?,
        had_ns,
    })
}

const STATE: &str = "a state";

impl Miss {
    fn is_state(&self) -> bool {
        self.what.contains(STATE)
    }

    /// For how long some processor stood still in the time that it had.
    fn stalled_ns(&self, stalls: &[Stall]) -> u64 {
        let begin = self.at_ns.saturating_sub(self.had_ns);
        let inside = |it: &Stall| (it.from_ns().max(begin), it.time_ns.min(self.at_ns));
        let mut inside: Vec<_> = stalls.iter().map(inside).collect();
        inside.sort_unstable();
        // What several processors stood still at once counts once.
        let (mut sum, mut counted_to) = (0, begin);
        for (from, until) in inside {
            sum += until.saturating_sub(from.max(counted_to));
            counted_to = counted_to.max(until);
        }
        sum
    }

    /// Half of the time that it had: what is in time by itself needs far less than the rest.
    fn is_explained(&self, stalls: &[Stall]) -> bool {
        self.had_ns > 0 && self.stalled_ns(stalls) >= self.had_ns / 2
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / MS as f64;
        let Self {
            what,
            at_ns,
            had_ns,
        } = self;
        write!(f, "{what} at {:.1} ms, had {} ms", ms(*at_ns), ms(*had_ns))
    }
}

impl Watched {
    /// Those of the missed ones in whose time no processor stood still for long enough.
    pub fn unexplained(&self) -> Vec<&Miss> {
        let missed = self.missed.iter();
        missed
            .filter(|miss| !miss.is_explained(&self.stalls))
            .collect()
    }

    /// Nothing was missed but for stalls.
    pub fn judge(&self) {
        for miss in &self.missed {
            let stalled = miss.stalled_ns(&self.stalls) as f64 / MS as f64;
            println!("{miss}, of which the machine stood still for {stalled:.1} ms");
        }
        let longest = self.stalls.iter().map(|it| it.length_ns).max();
        let unexplained = self.unexplained();
        println!(
            "missed: {}, {} of them without a stall; {} stalls of the machine, the longest {:.1} ms",
            self.missed.len(),
            unexplained.len(),
            self.stalls.len(),
            longest.unwrap_or(0) as f64 / MS as f64
        );
        assert!(unexplained.is_empty(), "{unexplained:#?}");
    }
}

/// A test of this judge, for those who rely on it.
pub fn a_miss_is_excused_only_by_stalls_in_half_of_the_time_that_it_had() {
    let stall = |from_ms: u64, until_ms: u64, processor: u32| Stall {
        time_ns: until_ms * MS,
        length_ns: (until_ms - from_ms) * MS,
        seen_by: format!("the meter on processor {processor}"),
    };
    let excused = |stalls: &[Stall]| {
        let watched = Watched {
            stalls: stalls.to_vec(),
            missed: vec![Miss {
                what: STATE.into(),
                at_ns: 1_000 * MS,
                had_ns: 20 * MS,
            }],
        };
        watched.unexplained().is_empty()
    };
    assert!(!excused(&[]));
    assert!(excused(&[stall(985, 995, 0)]));
    assert!(!excused(&[stall(985, 994, 0)]), "too short");
    assert!(!excused(&[stall(900, 985, 0)]), "mostly before");
    assert!(!excused(&[stall(995, 1_100, 0)]), "mostly after");
    assert!(excused(&[stall(982, 988, 0), stall(990, 994, 1)]));
    let at_once = [stall(982, 988, 0), stall(983, 989, 1)];
    assert!(!excused(&at_once), "the same time twice");
    assert!(excused(&[stall(900, 1_100, 0)]), "told late");
}
