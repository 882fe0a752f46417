//! The hops of one network on the way to a host, found by probes that live longer and longer.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{HopAnswer, HopFate};

/// Hops in a row of which nothing is heard before the search ends.
const SILENT_MAX: usize = 4;
/// Once a hop has answered a probe, its other answers are waited for three times as long as this one took, as traceroute(8)
/// does, and this long at least.
const HERE: Duration = Duration::from_millis(50);
/// The port of the first probe, as traceroute(8) has it: hardly anybody listens from there on.
const FIRST_PORT: u16 = 33434;

/// How far and how patiently a way is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLimits {
    /// Most hops.
    pub hops: u8,
    /// Probes for each hop.
    pub probes: u8,
    /// For how long the answers of a hop are waited for.
    pub wait: Duration,
}

/// What was heard of the probes that lived for as many hops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// How many hops they lived for.
    pub number: u8,
    /// Who answered, and after how long.
    pub answers: Vec<(IpAddr, Duration)>,
    /// Probes that left.
    pub sent: u8,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteEnd {
    /// At the host.
    Reached,
    /// Nothing is heard from this hop on.
    Silent(u8),
    /// Somebody says that it goes no further: who, type and code of the ICMP message.
    Refused(IpAddr, u8, u8),
    /// Probes do not leave this host: why, and what to do.
    NotSent(String),
    /// There are more hops than were searched.
    TooFar,
}

/// The search on one network.
#[derive(Clone, Debug)]
pub struct Route {
    limits: RouteLimits,
    hops: Vec<Hop>,
    /// Probes of the last hop without an answer, by port.
    open: BTreeMap<u16, Instant>,
    due: Instant,
    /// What the last hop's answers make the end, when all of them have been waited for.
    verdict: Option<RouteEnd>,
    end: Option<RouteEnd>,
}

impl Route {
    /// Nothing has left yet.
    pub const fn new(limits: RouteLimits) -> Self {
        Self {
            limits,
            hops: Vec::new(),
            open: BTreeMap::new(),
            due: Instant::ZERO,
            verdict: None,
            end: None,
        }
    }

    /// When [`poll`](Self::poll) is to be called at the latest.
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// How it ended, if it has.
    pub const fn end(&self) -> Option<&RouteEnd> {
        self.end.as_ref()
    }

    /// What was heard, hop by hop.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// The probes that are to leave at present: for how many hops they live, and their ports.
    pub fn poll(&mut self, now: Instant) -> Option<(u8, Vec<u16>)> {
        if self.end.is_some() || (!self.open.is_empty() && now < self.due) {
            return None;
        }
        self.open.clear();
        self.end = self.judge();
        if self.end.is_some() {
            return None;
        }
        let number = self.hops.len() as u8 + 1;
        let probes = self.limits.probes;
        let first = FIRST_PORT + u16::from(number - 1) * u16::from(probes);
        let ports: Vec<_> = (first..first + u16::from(probes)).collect();
        self.open = ports.iter().map(|port| (*port, now)).collect();
        self.due = now + self.limits.wait;
        self.hops.push(Hop {
            number,
            answers: Vec::new(),
            sent: probes,
        });
        Some((number, ports))
    }

    /// The end, if what has been heard so far is one. Hops behind the last one of which anything was heard are forgotten
    /// then.
    fn judge(&mut self) -> Option<RouteEnd> {
        if let Some(verdict) = self.verdict.take() {
            return Some(verdict);
        }
        let silent = self.hops.iter().rev();
        let silent = silent.take_while(|hop| hop.answers.is_empty()).count();
        let all = self.hops.len() >= usize::from(self.limits.hops);
        if silent >= SILENT_MAX || (all && silent > 0) {
            self.hops.truncate(self.hops.len() - silent);
            return Some(RouteEnd::Silent(self.hops.len() as u8 + 1));
        }
        all.then_some(RouteEnd::TooFar)
    }

    /// An answer has come. What answers no probe of the last hop is passed over: it is too late, or forged.
    pub fn answered(&mut self, now: Instant, answer: &HopAnswer) {
        let Some(sent) = self.open.remove(&answer.port) else {
            return;
        };
        let Some(hop) = self.hops.last_mut() else {
            return;
        };
        let trip = now.since(sent);
        hop.answers.push((answer.from, trip));
        self.due = self.due.min(now + (trip + trip + trip).max(HERE));
        match answer.fate {
            HopFate::Exceeded => {}
            HopFate::Reached => self.verdict = Some(RouteEnd::Reached),
            HopFate::Refused(kind, code) => {
                let refused = RouteEnd::Refused(answer.from, kind, code);
                self.verdict.get_or_insert(refused);
            }
        }
    }

    /// Probes of the last hop did not leave.
    pub fn not_sent(&mut self, why: String) {
        self.hops.pop();
        self.open.clear();
        self.end = Some(RouteEnd::NotSent(why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RouteLimits = RouteLimits {
        hops: 8,
        probes: 2,
        wait: Duration::from_millis(100),
    };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn answer(port: u16, host: u8, fate: HopFate) -> HopAnswer {
        HopAnswer {
            port,
            from: IpAddr::from([10, 0, 0, host]),
            fate,
        }
    }

    #[test]
    fn each_hop_begins_when_the_one_before_was_heard_and_the_host_ends_it() {
        let mut route = Route::new(LIMITS);
        let (first, ports) = route.poll(at(0)).unwrap();
        assert_eq!((first, ports.len()), (1, 2));
        route.answered(at(3), &answer(ports[0], 1, HopFate::Exceeded));
        assert_eq!(route.poll(at(3)), None, "one is open");
        // A second answer to the same probe counts as none.
        route.answered(at(4), &answer(ports[0], 9, HopFate::Exceeded));
        route.answered(at(5), &answer(ports[1], 1, HopFate::Exceeded));
        let (second, later) = route.poll(at(5)).unwrap();
        assert_eq!(second, 2);
        assert!(!later.contains(&ports[1]), "each probe has its port");
        route.answered(at(9), &answer(later[0], 2, HopFate::Reached));
        // The other probe is lost: it is not waited for as long as if nobody had answered.
        assert_eq!((route.poll(at(58)), route.end()), (None, None));
        assert_eq!(route.poll(at(59)), None);
        assert_eq!(route.end(), Some(&RouteEnd::Reached));
        let heard: Vec<_> = route.hops().iter().map(|hop| hop.answers.len()).collect();
        assert_eq!(heard, [2, 1]);
    }

    #[test]
    fn silence_is_told_from_the_first_silent_hop_on_and_a_gap_is_none() {
        let mut route = Route::new(LIMITS);
        let mut now = 0;
        let mut asked = 0;
        while route.end().is_none() {
            if let Some((number, ports)) = route.poll(at(now)) {
                asked = number;
                // Hop 1 says nothing, hop 2 does, and nobody behind it.
                if number == 2 {
                    route.answered(at(now), &answer(ports[0], 2, HopFate::Exceeded));
                }
            }
            now += 100;
        }
        assert_eq!(route.end(), Some(&RouteEnd::Silent(3)));
        assert_eq!((asked, route.hops().len()), (6, 2));
        assert!(now <= 700, "{now}");
    }

    #[test]
    fn refusals_distance_and_probes_that_do_not_leave_are_ends() {
        let mut refused = Route::new(LIMITS);
        let (_, ports) = refused.poll(at(0)).unwrap();
        refused.answered(at(1), &answer(ports[0], 7, HopFate::Refused(3, 1)));
        refused.poll(at(100));
        let by = IpAddr::from([10, 0, 0, 7]);
        assert_eq!(refused.end(), Some(&RouteEnd::Refused(by, 3, 1)));
        let mut far = Route::new(LIMITS);
        while let Some((_, ports)) = far.poll(at(0)) {
            for port in ports {
                far.answered(at(0), &answer(port, 1, HopFate::Exceeded));
            }
        }
        assert_eq!((far.end(), far.hops().len()), (Some(&RouteEnd::TooFar), 8));
        let mut unsent = Route::new(LIMITS);
        unsent.poll(at(0));
        unsent.not_sent("no way".into());
        assert_eq!((unsent.poll(at(500)), unsent.hops().len()), (None, 0));
    }
}
