//! How long the way to another host takes on each network, and how much is lost there.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bumpless_base::{Duration, Instant};
use bumpless_iprp::Ind;
use serde_json::{Value, json};

/// Pings that may run at once; the one that began first ends for one more.
const RUNS: usize = 16;
/// How long a host that is not known has for showing itself.
const SHOW: Duration = Duration::from_secs(3);
/// An answer that takes longer counts as lost.
const LATE: Duration = Duration::from_secs(1);
/// Bytes of a probe: which ping, which round, which network.
pub const PROBE_LEN: usize = 9;

/// One network of a ping.
struct Way {
    ind: Ind,
    card: usize,
    to: IpAddr,
    sent: BTreeMap<u32, Instant>,
    trips: Vec<(u32, Duration)>,
    lost: u32,
    count: u32,
}

/// A ping that runs or has ended.
struct Run {
    id: u32,
    to: IpAddr,
    began: Instant,
    count: u32,
    every: Duration,
    round: u32,
    next: Instant,
    ways: Vec<Way>,
}

/// A probe that is to leave.
pub struct Probe {
    pub card: usize,
    pub to: IpAddr,
    pub bytes: [u8; PROBE_LEN],
}

/// All that run.
#[derive(Default)]
pub struct Pings {
    runs: Vec<Run>,
    next: u32,
}

impl Pings {
    /// Begins a ping of `count` rounds; its number.
    pub fn begin(&mut self, now: Instant, to: IpAddr, count: u32, every: Duration) -> u32 {
        if self.runs.len() == RUNS {
            self.runs.remove(0);
        }
        self.next = self.next.wrapping_add(1);
        self.runs.push(Run {
            id: self.next,
            to,
            began: now,
            count,
            every,
            round: 0,
            next: now,
            ways: Vec::new(),
        });
        self.next
    }

    /// When [`poll`](Self::poll) is to be called.
    pub fn due(&self) -> Instant {
        let open = self.runs.iter().filter(|run| run.round < run.count);
        open.map(|run| run.next)
            .min()
            .unwrap_or(Instant::FAR_FUTURE)
    }

    /// The probes that are due. `ways` tells how the host at an address is reached: networks, cards, addresses.
    pub fn poll(
        &mut self,
        now: Instant,
        ways: impl Fn(IpAddr) -> Vec<(Ind, usize, IpAddr)>,
    ) -> Vec<Probe> {
        let mut probes = Vec::new();
        for run in &mut self.runs {
            if now < run.next || run.round >= run.count {
                continue;
            }
            let found = ways(run.to);
            if found.is_empty() {
                run.next = now + Duration::from_millis(20);
                if now > run.began + SHOW {
                    run.count = 0;
                }
                continue;
            }
            run.round += 1;
            run.next = now + run.every;
            for (ind, card, to) in found {
                if !run.ways.iter().any(|way| way.ind == ind) {
                    run.ways.push(Way::new(ind, card, to));
                }
            }
            for way in &mut run.ways {
                way.sent.insert(run.round, now);
                way.count += 1;
                probes.push(Probe {
                    card: way.card,
                    to: way.to,
                    bytes: bytes(run.id, run.round, way.ind),
                });
            }
        }
        probes
    }

    /// A probe leaves only at this time.
    pub fn leaves(&mut self, now: Instant, probe: &Probe) {
        if let Some((way, round)) = self.find(&probe.bytes)
            && let Some(sent) = way.sent.get_mut(&round)
        {
            *sent = now;
        }
    }

    /// An answer has come.
    pub fn answered(&mut self, now: Instant, message: &[u8]) {
        if let Some((way, round)) = self.find(message)
            && let Some(sent) = way.sent.remove(&round)
        {
            match now.since(sent) {
                trip if trip < LATE => way.trips.push((round, trip)),
                _ => way.lost += 1,
            }
        }
    }

    /// The network and the round of a probe.
    fn find(&mut self, message: &[u8]) -> Option<(&mut Way, u32)> {
        let &[a, b, c, d, e, f, g, h, ind] = message.first_chunk::<PROBE_LEN>()?;
        let id = u32::from_be_bytes([a, b, c, d]);
        let run = self.runs.iter_mut().find(|run| run.id == id)?;
        let way = run.ways.iter_mut().find(|way| way.ind.get() == ind)?;
        Some((way, u32::from_be_bytes([e, f, g, h])))
    }

    /// What is known of ping `id` (`bumpless.iprp.ping/1`).
    pub fn result(&mut self, now: Instant, id: u32) -> Option<Value> {
        let run = self.runs.iter_mut().find(|run| run.id == id)?;
        for way in &mut run.ways {
            let late: Vec<_> = way
                .sent
                .iter()
                .filter(|(_, at)| now.since(**at) >= LATE)
                .map(|(round, _)| *round)
                .collect();
            way.lost += late.len() as u32;
            way.sent.retain(|round, _| !late.contains(round));
        }
        let unknown = run.ways.is_empty() && run.count == 0;
        let open = run.ways.iter().any(|way| !way.sent.is_empty());
        let ended = unknown || (run.round >= run.count && !open);
        let trouble = unknown.then(|| {
            format!(
                "{} does not show itself; is `bumpless iprp run` running there, with the same key or a certificate of the same group and \
                 site, and does the network let UDP, and with certificates TCP, pass to its control port?",
                run.to
            )
        });
        Some(json!({
            "schema": "bumpless.iprp.ping/1",
            "host": run.to.to_string(),
            "rounds": run.round,
            "ended": ended,
            "trouble": trouble,
            "networks": run.ways.iter().map(Way::json).collect::<Vec<_>>(),
        }))
    }
}

impl Way {
    fn new(ind: Ind, card: usize, to: IpAddr) -> Self {
        Self {
            ind,
            card,
            to,
            sent: BTreeMap::new(),
            trips: Vec::new(),
            lost: 0,
            count: 0,
        }
    }

    fn json(&self) -> Value {
        let micros: Vec<f64> = self
            .trips
            .iter()
            .map(|(_, trip)| trip.as_nanos() as f64 / 1e3)
            .collect();
        let mut sorted = micros.clone();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2);
        json!({
            "ind": self.ind.get(),
            "to": self.to.to_string(),
            "sent": self.count,
            "answered": self.trips.len(),
            "lost": self.lost,
            "least_us": sorted.first(),
            "median_us": median,
            "most_us": sorted.last(),
            "round_trips_us": micros,
        })
    }
}

fn bytes(id: u32, round: u32, ind: Ind) -> [u8; PROBE_LEN] {
    let mut bytes = [0; PROBE_LEN];
    bytes[..4].copy_from_slice(&id.to_be_bytes());
    bytes[4..8].copy_from_slice(&round.to_be_bytes());
    bytes[8] = ind.get();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn each_network_is_measured_by_itself_and_what_is_late_is_lost() {
        let mut pings = Pings::default();
        let to = IpAddr::from([10, 1, 0, 2]);
        let (a, b) = (Ind::new(10).unwrap(), Ind::new(11).unwrap());
        let ways = |_| vec![(a, 0, to), (b, 1, IpAddr::from([10, 2, 0, 2]))];
        let id = pings.begin(at(0), to, 2, Duration::from_millis(100));
        let first = pings.poll(at(0), ways);
        assert_eq!(first.len(), 2);
        pings.answered(at(3), &first[0].bytes);
        // The same answer again counts once.
        pings.answered(at(4), &first[0].bytes);
        assert_eq!(pings.result(at(10), id).unwrap()["ended"], false);
        let second = pings.poll(at(100), ways);
        pings.answered(at(105), &second[0].bytes);
        pings.answered(at(1_200), &second[1].bytes);
        assert!(pings.poll(at(300), ways).is_empty());
        let result = pings.result(at(1_300), id).unwrap();
        assert_eq!(result["ended"], true);
        let networks = &result["networks"];
        assert_eq!(networks[0]["answered"], 2);
        assert_eq!(networks[0]["median_us"], 5000.0);
        assert_eq!(
            (&networks[1]["lost"], &networks[1]["answered"]),
            (&2.into(), &0.into())
        );
    }

    #[test]
    fn a_round_trip_begins_when_its_own_probe_leaves() {
        let mut pings = Pings::default();
        let to = IpAddr::from([10, 1, 0, 2]);
        let (a, b) = (Ind::new(10).unwrap(), Ind::new(11).unwrap());
        let id = pings.begin(at(0), to, 1, Duration::from_millis(100));
        let probes = pings.poll(at(0), |_| vec![(a, 0, to), (b, 1, to)]);
        pings.leaves(at(2), &probes[0]);
        pings.leaves(at(4), &probes[1]);
        probes
            .iter()
            .for_each(|it| pings.answered(at(10), &it.bytes));
        // What has been answered has left.
        pings.leaves(at(20), &probes[0]);
        let result = pings.result(at(30), id).unwrap();
        let trips: Vec<_> = (0..2)
            .map(|it| &result["networks"][it]["most_us"])
            .collect();
        assert_eq!(trips, [&json!(8000.0), &json!(6000.0)]);
        assert_eq!(result["ended"], true);
    }

    #[test]
    fn a_host_that_does_not_show_itself_is_told_so() {
        let mut pings = Pings::default();
        let to = IpAddr::from([10, 1, 0, 2]);
        let id = pings.begin(at(0), to, 2, Duration::from_millis(100));
        let mut now = 0;
        while pings.due() < Instant::FAR_FUTURE {
            assert!(pings.poll(at(now), |_| Vec::new()).is_empty());
            now += 20;
        }
        let result = pings.result(at(now), id).unwrap();
        assert!(result["trouble"].as_str().unwrap().contains("10.1.0.2"));
        assert_eq!((&result["ended"], now < 4_000), (&true.into(), true));
    }
}
