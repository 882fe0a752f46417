//! What others are known to fail at, as rows: the same stream over the same networks, with iPRP and with those of the others that can
//! be had here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bumpless_bench::statistics::Summary;
use bumpless_net_linux::Clock;
use serde::Serialize;

use super::TortureOptions;
use crate::demo::meter::Meter;
use crate::iprp::hosts::{Hosts, address, interface};
use crate::iprp::relay::{Delay, Fault, Loss, Tally};
use crate::iprp::stalls::Stalls;
use crate::iprp::{LabError, impossible};

/// Bytes of a message, and how many are sent each second.
pub const LEN: usize = 280;
pub const RATE: u32 = 500;
/// How long the stream takes, and before and after what befalls it.
pub const LENGTH: Duration = Duration::from_secs(4);
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(1);
/// A message that takes longer has lost its worth: twice the latency that SRT holds everything back for.
const LATE_NS: u64 = 250_000_000;
/// One in so many messages may be late: the computer is not always there.
const LATE_ONE_IN: usize = 100;
/// After the sending end has begun anew it has so long until everything counts.
const REGAIN_NS: u64 = 2_000_000_000;
/// Frames of which no share is judged.
const FEW: u64 = 50;
/// Until a network has heard, and what was on its way has passed.
const ORDERED: Duration = Duration::from_millis(100);
/// How long the sending end is away.
const AWAY: Duration = Duration::from_millis(500);

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Network A loses so many per cent of all frames, network B none.
    OneSided(u8),
    /// Frames overtake each other on both networks.
    Reordering,
    /// Nothing passes on network A from here on.
    Unplugged,
    /// The sending host switches its interface of network A off.
    SwitchedOff,
    /// The sending end is killed and begins anew.
    Restart,
}

/// A known failure.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub id: &'static str,
    pub trouble: Trouble,
    /// Who failed, and how.
    pub of: &'static str,
    /// What is done here.
    pub done: &'static str,
}

/// All of them.
pub const ALL: [Failure; 6] = [
    Failure {
        id: "hsr-one-sided-loss",
        trouble: Trouble::OneSided(80),
        of: "Linux hsr (PRP): valid frames were dropped under one-sided loss, until its discard algorithm was replaced in 2026-02",
        done: "network A loses 80 % of all frames, network B none",
    },
    Failure {
        id: "hsr-reordering",
        trouble: Trouble::Reordering,
        of: "Linux hsr (PRP): valid frames were dropped when frames overtake each other, until then",
        done: "each frame takes 0 to 20 ms longer on either network",
    },
    Failure {
        id: "srt-2937",
        trouble: Trouble::OneSided(40),
        of: "SRT broadcast group (#2937): packets are lost with 40 % loss on one link and a clean second one",
        done: "network A loses 40 % of all frames, network B none",
    },
    Failure {
        id: "srt-2828",
        trouble: Trouble::Unplugged,
        of: "SRT bonding (#2828): the connection is lost when one link is unplugged",
        done: "nothing passes on network A for 2 s",
    },
    Failure {
        id: "corosync-569",
        trouble: Trouble::SwitchedOff,
        of: "corosync, kronosnet (#569): ifdown of one link stops both",
        done: "the sending host's interface of network A is switched off for 2 s; a second route is there",
    },
    Failure {
        id: "iprp-restart",
        trouble: Trouble::Restart,
        of: "iPRP reference code of 2017: after a restart of the sender everything is rejected (0 of 4,000)",
        done: "the sending end is killed and begins anew 0.5 s later; what is sent from 2 s after that on counts",
    },
];

/// What one of them came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Contestant {
    pub name: String,
    pub version: String,
    pub held: bool,
    pub sent: usize,
    pub lost: usize,
    pub doubled: usize,
    /// Messages that took longer than a quarter of a second.
    pub late: usize,
    /// Others that would not have, had this machine not stood still meanwhile.
    pub stalled: usize,
    pub delay_ns: Option<Summary>,
    pub longest_gap_ms: Option<f64>,
    /// What networks did with frames from the sending host to the other one; empty where nothing tells.
    pub networks: Vec<Tally>,
    /// Why what was to be done did not take place, if so: nothing is proved then.
    pub unproved: Option<String>,
    /// Times mean nothing where it ran.
    pub untimed: bool,
    pub note: String,
}

/// One that was not run, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Absent {
    pub name: String,
    pub why: String,
}

/// A row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub id: &'static str,
    pub of: &'static str,
    pub done: &'static str,
    pub promised: String,
    /// iPRP first.
    pub contestants: Vec<Contestant>,
    pub absent: Vec<Absent>,
}

/// What was sent and what came.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// When each message was sent, nanoseconds.
    pub sent: BTreeMap<u32, u64>,
    /// When each came first, and how often it came.
    pub came: BTreeMap<u32, (u64, u32)>,
    /// What befell meanwhile.
    pub befell: Befallen,
}

/// What was seen beside the stream.
#[derive(Clone, Debug, Default)]
pub struct Befallen {
    /// From when to when the sending end was away.
    pub away: Option<(u64, u64)>,
    /// When this machine stood still.
    pub stalls: Stalls,
    /// What networks did.
    pub networks: Vec<Tally>,
    /// Why what was to be done did not take place, if so.
    pub unproved: Option<String>,
}

impl Stream {
    /// Judged as every contestant is.
    pub fn judged(&self, name: &str, version: &str) -> Contestant {
        let counts = |at: u64| {
            self.befell.away.is_none_or(|(from, again)| {
                !(from.saturating_sub(LATE_NS)..again + REGAIN_NS).contains(&at)
            })
        };
        let sent: Vec<_> = self.sent.iter().filter(|it| counts(*it.1)).collect();
        let came: Vec<_> = sent
            .iter()
            .filter_map(|(number, at)| Some((self.came.get(number)?, **at)))
            .collect();
        let delays = || {
            came.iter()
                .map(|((came, _), sent)| came.saturating_sub(*sent))
        };
        let mut arrivals: Vec<_> = came.iter().map(|((at, _), _)| *at).collect();
        arrivals.sort_unstable();
        let gaps = arrivals.windows(2).map(|two| two[1] - two[0]);
        let gap = gaps.max().filter(|_| self.befell.away.is_none());
        let is_late = |(came, sent): (u64, u64)| came.saturating_sub(sent) > LATE_NS;
        let spans = || came.iter().map(|((came, _), sent)| (*came, *sent));
        let late = spans().filter(|it| is_late(*it)).count();
        let is_stalled = |(came, sent): (u64, u64)| {
            let stalled = self.befell.stalls.within(sent, came);
            is_late((came, sent)) && !is_late((came.saturating_sub(stalled), sent))
        };
        let stalled = spans().filter(|it| is_stalled(*it)).count();
        let mut it = Contestant {
            name: name.into(),
            version: version.into(),
            held: false,
            sent: sent.len(),
            lost: sent.len() - came.len(),
            doubled: came.iter().filter(|((_, times), _)| *times > 1).count(),
            late: late - stalled,
            stalled,
            delay_ns: Summary::of(delays()),
            longest_gap_ms: gap.map(|gap| gap as f64 / 1e6),
            networks: self.befell.networks.clone(),
            unproved: self.befell.unproved.clone(),
            untimed: false,
            note: String::new(),
        };
        it.held = it.is_as_promised();
        it
    }
}

/// What everybody is measured by.
fn promised() -> String {
    format!(
        "every message comes, once, and no more than one in {LATE_ONE_IN} later than {} ms",
        LATE_NS / 1_000_000
    )
}

impl Contestant {
    /// Whether it did what is promised.
    pub fn is_as_promised(&self) -> bool {
        self.unproved.is_none()
            && self.sent > 0
            && self.lost == 0
            && self.doubled == 0
            && self.late * LATE_ONE_IN <= self.sent
    }
}

impl Trouble {
    /// What is wrong with the networks from the beginning on.
    pub fn at_first(self) -> [Fault; 2] {
        let of_all = Fault {
            of_all: true,
            ..Fault::default()
        };
        match self {
            Self::OneSided(percent) => [
                Fault {
                    loss: Loss::Independent(f64::from(percent) / 100.0),
                    ..of_all
                },
                of_all,
            ],
            Self::Reordering => {
                let delay = Delay {
                    least_ns: 0,
                    spread_ns: 20_000_000,
                };
                [Fault { delay, ..of_all }; 2]
            }
            _ => [of_all; 2],
        }
    }

    /// Why this did not befall a contestant whose frames networks treated so, if it did not. `off`: while the interface was.
    fn unproved(self, all: &[Tally], off: Option<&[Tally]>) -> Option<String> {
        let &[a, b] = all else {
            return Some("the networks did not tell what they did".into());
        };
        let took_place = match self {
            Self::OneSided(percent) => {
                let share = a.lost * 200 >= u64::from(percent) * a.left;
                a.lost > 0 && b.lost == 0 && (a.left < FEW || share)
            }
            Self::Reordering => a.delayed + b.delayed > FEW,
            Self::Unplugged => a.cut > 0,
            Self::SwitchedOff => off.is_some_and(|off| off.first().is_some_and(|a| a.left == 0)),
            Self::Restart => true,
        };
        let of = |it: Tally| {
            format!(
                "of {} frames {} were lost, {} cut off, {} held back",
                it.left, it.lost, it.cut, it.delayed
            )
        };
        (!took_place).then(|| format!("it did not befall: A: {}; B: {}", of(a), of(b)))
    }
}

/// What is done to a contestant.
pub trait Attempt {
    fn hosts(&self) -> &Hosts;
    /// Lets time pass.
    ///
    /// # Errors
    /// A process has ended, or it was told to stop.
    fn sleep(&mut self, time: Duration) -> Result<(), LabError>;
    /// The sending end is killed.
    ///
    /// # Errors
    /// It cannot be.
    fn end_sender(&mut self) -> Result<(), LabError>;
    /// It begins anew.
    ///
    /// # Errors
    /// It cannot.
    fn begin_sender(&mut self) -> Result<(), LabError>;
}

/// Does to the hosts and the sending end of `attempt` what `trouble` says, while a stream goes on. Tells when that end was away, what
/// networks did, and when this machine stood still.
///
/// # Errors
/// What the attempt or a tool says.
pub fn befall(attempt: &mut impl Attempt, trouble: Trouble) -> Result<Befallen, LabError> {
    let meter = Meter::start().map_err(impossible)?;
    let (mut away, mut off) = (None, None);
    // What came before does not count.
    attempt.hosts().relay.tally();
    let mut earlier = Vec::new();
    attempt.sleep(BEFORE)?;
    match trouble {
        Trouble::OneSided(_) | Trouble::Reordering => attempt.sleep(LENGTH - BEFORE - AFTER)?,
        Trouble::Unplugged => {
            let mut cut = trouble.at_first();
            cut[0].cut = true;
            attempt.hosts().relay.set(cut.to_vec());
            attempt.sleep(LENGTH - BEFORE - AFTER)?;
            attempt.hosts().relay.set(trouble.at_first().to_vec());
        }
        Trouble::SwitchedOff => {
            switch(attempt.hosts(), "down")?;
            attempt.sleep(ORDERED)?;
            earlier = attempt.hosts().relay.tally();
            attempt.sleep(LENGTH - BEFORE - AFTER - ORDERED)?;
            off = Some(attempt.hosts().relay.tally());
            switch(attempt.hosts(), "up")?;
        }
        Trouble::Restart => {
            let from = Clock.now().as_nanos();
            attempt.end_sender()?;
            attempt.sleep(AWAY)?;
            attempt.begin_sender()?;
            away = Some((from, Clock.now().as_nanos()));
            attempt.sleep(Duration::from_nanos(REGAIN_NS) + LENGTH - BEFORE - AFTER)?;
        }
    }
    attempt.sleep(AFTER)?;
    let mut networks = attempt.hosts().relay.tally();
    for part in [&earlier, off.as_ref().unwrap_or(&Vec::new())] {
        for (all, part) in networks.iter_mut().zip(part) {
            *all = all.with(*part);
        }
    }
    Ok(Befallen {
        away,
        stalls: Stalls::of(meter.end()),
        unproved: trouble.unproved(&networks, off.as_deref()),
        networks,
    })
}

fn switch(hosts: &Hosts, to: &str) -> Result<(), LabError> {
    let line = format!("link set dev {} {to}", interface(0));
    hosts.host(0).tool("ip", &line).map_err(impossible)
}

/// A way by network B to the address on network A, for when the interface is switched off.
///
/// # Errors
/// What the tool says.
pub fn second_route(hosts: &Hosts) -> Result<(), LabError> {
    let [a, b, c, _] = address(0, 0).octets();
    let line = format!("route add {a}.{b}.{c}.0/24 dev {} metric 500", interface(1));
    hosts.host(0).tool("ip", &line).map_err(impossible)
}

impl Row {
    /// One in which nobody has tried yet.
    pub fn of(failure: &Failure) -> Self {
        Self {
            id: failure.id,
            of: failure.of,
            done: failure.done,
            promised: promised(),
            contestants: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// What one of them came to, or why it did not run.
    pub fn take(&mut self, name: &str, seen: Result<Contestant, String>) {
        match seen {
            Ok(it) => self.contestants.push(it),
            Err(why) => self.absent.push(Absent {
                name: name.into(),
                why,
            }),
        }
    }

    /// Whether iPRP did what is promised.
    pub fn held(&self) -> bool {
        self.contestants.first().is_some_and(|it| it.held)
    }

    /// Whether it says anything of iPRP.
    pub fn is_done(&self) -> bool {
        let first = self.contestants.first();
        first.is_some_and(|it| it.unproved.is_none())
    }
}

/// Where programs of others are, if they are anywhere.
pub fn programs(options: &TortureOptions) -> Option<&PathBuf> {
    options.peers.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runlog::Stall;

    fn stream(delay_ns: u64) -> Stream {
        let mut it = Stream::default();
        for number in 0..1_000u32 {
            let at = u64::from(number) * 2_000_000 + 5_000_000_000;
            it.sent.insert(number, at);
            it.came.insert(number, (at + delay_ns, 1));
        }
        it
    }

    #[test]
    fn a_miss_a_double_and_messages_that_are_late_break_the_promise() {
        let held = |stream: &Stream| stream.judged("x", "1").held;
        assert!(held(&stream(120_000_000)));
        assert!(!held(&stream(LATE_NS + 1)));
        assert!(!held(&Stream::default()));
        let mut missed = stream(1);
        missed.came.remove(&500);
        assert!(!held(&missed));
        let mut doubled = stream(1);
        doubled.came.insert(500, (7, 2));
        assert!(!held(&doubled));
        // One of a hundred may be late.
        let mut late = stream(1);
        for number in 0..10 {
            late.came.insert(number, (u64::MAX, 1));
        }
        assert!(held(&late));
        late.came.insert(10, (u64::MAX, 1));
        assert!(!held(&late));
    }

    #[test]
    fn what_did_not_befall_proves_nothing() {
        let a = Tally {
            left: 1_000,
            lost: 800,
            ..Tally::default()
        };
        let b = Tally {
            left: 1_000,
            ..Tally::default()
        };
        let is_proved = |trouble: Trouble, all: [Tally; 2]| trouble.unproved(&all, None).is_none();
        assert!(is_proved(Trouble::OneSided(80), [a, b]));
        for all in [[b, b], [a, a], [Tally { lost: 300, ..a }, b]] {
            assert!(!is_proved(Trouble::OneSided(80), all));
        }
        for trouble in [Trouble::Reordering, Trouble::Unplugged] {
            assert!(!is_proved(trouble, [a, b]));
        }
        let off = |left: u64| [Tally { left, ..b }, b];
        let switched = |left| Trouble::SwitchedOff.unproved(&[b, b], Some(&off(left)));
        assert!(switched(0).is_none() && switched(1).is_some());
        let mut it = stream(1);
        it.befell.unproved = switched(1);
        assert!(!it.judged("x", "1").held);
    }

    #[test]
    fn what_is_late_by_no_more_than_the_machine_stood_still_is_not_late() {
        let at = 5_000_000_000;
        let stall = |from: u64, until: u64| Stall {
            time_ns: at + until,
            length_ns: until - from,
            seen_by: String::new(),
        };
        let mut it = stream(LATE_NS + 50_000_000);
        // Both processors at once, which counts once.
        let long = 3_000_000_000;
        it.befell.stalls = Stalls::of(vec![stall(0, long), stall(10, long)]);
        assert_eq!(it.befell.stalls.within(0, at + 2 * long), long);
        let seen = it.judged("x", "1");
        assert_eq!((seen.late, seen.stalled), (0, 1_000));
        it.befell.stalls = Stalls::of(vec![stall(0, 40_000_000)]);
        let seen = it.judged("x", "1");
        assert_eq!((seen.late, seen.stalled), (1_000, 0));
    }

    #[test]
    fn while_the_sending_end_is_away_nothing_counts_and_after_that_everything() {
        let mut it = stream(1);
        let at = |number: u32| u64::from(number) * 2_000_000 + 5_000_000_000;
        it.befell.away = Some((at(200), at(200) + 1));
        // Two seconds: all that is left.
        for number in 200..1_000 {
            it.came.remove(&number);
        }
        assert!(it.judged("x", "1").held);
        it.came.remove(&10);
        assert_eq!(it.judged("x", "1").lost, 1);
    }
}
