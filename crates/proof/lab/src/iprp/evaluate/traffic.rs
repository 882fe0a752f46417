//! Traffic of other programs, unmodified: iperf3 over UDP and TCP, an RTP stream of GStreamer, frames of a phasor measurement unit, Modbus
//! TCP, and a stream to a multicast group with three receivers.

mod iperf;
mod modbus;
mod pmu;
mod rtp;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bumpless_bench::statistics::Summary;
use serde_json::{Value, json};

use super::Plan;
use super::scenario::{ALL, Scenario};
use crate::iprp::LabError;
use crate::iprp::hosts::NAMES;
use crate::iprp::relay::Copied;
use crate::iprp::site::{PORT, Site};

/// What is wrong with the networks meanwhile: as in the scenario of figure 5.
const SCENARIO: Scenario = ALL[super::FIGURE_5];
/// Networks, and ports of UDP that are monitored.
const NETWORKS: usize = 2;
const FLOWS: usize = 5;
/// Ports of each program.
const PMU: u16 = PORT;
const MULTICAST: u16 = PORT + 1;
const IPERF: u16 = PORT + 2;
const MODBUS: u16 = PORT + 3;
const RTP: u16 = PORT + 4;
/// Receivers advertise themselves so often, so that a group's does not keep the next program waiting.
const ADVERTISE_MS: u32 = 3_000;
/// For what is on its way, beside the networks' delay.
const SETTLE: Duration = Duration::from_millis(300);

/// What was measured of a program.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// What it is counted in.
    pub unit: &'static str,
    /// How many were sent.
    pub sent: u64,
    /// How many it missed.
    pub lost: u64,
    /// How many came twice.
    pub doubled: u64,
    /// Of each network: copies, and those that it lost.
    pub networks: Vec<(u64, u64)>,
    /// Packets all copies of which were lost.
    pub lost_on_all: u64,
    /// Of what `delay` tells.
    pub delay_of: &'static str,
    /// How long it took.
    pub delay: Option<Summary>,
    /// A sentence more.
    pub note: String,
    /// Whether the program missed no more than networks lost all copies of; one over TCP nothing.
    pub held: bool,
}

/// A program that this computer does not have.
#[derive(Clone, Debug)]
pub struct Absent {
    /// Which.
    pub name: &'static str,
    /// Why, and what to do.
    pub why: String,
}

/// All programs.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    pub rows: Vec<Row>,
    pub absent: Vec<Absent>,
}

/// Two hosts, their networks and how long a program runs.
pub struct Stage<'a> {
    plan: &'a Plan,
    site: Site,
    length: Duration,
}

/// Runs all programs, one after the other, each for `length`.
///
/// # Errors
/// As a scenario's.
pub fn measure(
    plan: &Plan,
    length: Duration,
    mut tell: impl FnMut(&str),
) -> Result<Traffic, LabError> {
    let more = format!(
        "[timing]\nadvertise_every_ms = {ADVERTISE_MS}\n[[monitor]]\nprotocol = \"tcp\"\nport = \"{IPERF}-{MODBUS}\"\n[[group]]\naddress = \"{}\"\nkeys = [\"group.key\"]\n",
        pmu::GROUP
    );
    let site = Site::start_with(
        &plan.binary,
        (NETWORKS, FLOWS, &more),
        plan.seed,
        &plan.stop,
    )?;
    let mut stage = Stage { plan, site, length };
    let mut traffic = Traffic::default();
    tell("frames of a measurement unit");
    traffic.rows.push(pmu::one(&mut stage)?);
    tell("a multicast stream");
    traffic.rows.extend(pmu::several(&mut stage)?);
    tell("Modbus TCP");
    traffic.rows.push(modbus::run(&mut stage)?);
    let name = "RTP of GStreamer, 50 packets a second";
    tell(name);
    match rtp::run(&mut stage, name)? {
        Ok(row) => traffic.rows.push(row),
        Err(why) => traffic.absent.push(Absent { name, why }),
    }
    for (name, is_udp) in [("iperf3 over UDP", true), ("iperf3 over TCP", false)] {
        tell(name);
        match iperf::run(&mut stage, name, is_udp)? {
            Ok(row) => traffic.rows.push(row),
            Err(why) => traffic.absent.push(Absent { name, why }),
        }
    }
    stage.site.end();
    Ok(traffic)
}

impl Stage<'_> {
    fn is_stopped(&self) -> bool {
        self.plan.stop.load(Ordering::Relaxed)
    }

    /// Has `again` done until what goes to `port` is replicated.
    fn begin(
        &mut self,
        protocol: &str,
        port: u16,
        mut again: impl FnMut(),
    ) -> Result<(), LabError> {
        self.site
            .wait("the program's packets are replicated", |site| {
                again();
                let status = site.status(0).unwrap_or_default();
                let sending = status["sending"].as_array().cloned().unwrap_or_default();
                sending.iter().any(|it| {
                    let networks = it["networks"].as_array().map_or(0, Vec::len);
                    it["protocol"] == protocol && it["port"] == port && networks == NETWORKS
                })
            })?;
        self.site.sleep(SETTLE)?;
        self.site.take();
        Ok(())
    }

    /// Has networks lose and delay while `work` is done; what has become of copies.
    fn under_faults<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, LabError>,
    ) -> Result<(T, Vec<Copied>), LabError> {
        self.site.set(SCENARIO.faults());
        let done = work(self)?;
        self.site
            .sleep(SETTLE + Duration::from_nanos(SCENARIO.longest_ns()))?;
        self.site.set(vec![Default::default(); NETWORKS]);
        Ok((done, self.site.take()))
    }
}

impl Row {
    /// What networks did with these copies.
    fn over(mut self, copies: &[Copied]) -> Self {
        self.networks = vec![(0, 0); NETWORKS];
        let mut came: BTreeMap<(u32, u32), bool> = BTreeMap::new();
        for copy in copies {
            let (all, lost) = &mut self.networks[copy.network];
            *all += 1;
            *lost += u64::from(copy.came_ns.is_none());
            *came.entry((copy.space, copy.number)).or_default() |= copy.came_ns.is_some();
        }
        self.lost_on_all = came.values().filter(|came| !**came).count() as u64;
        self
    }

    /// One that loses what networks lose all copies of, and nothing else.
    fn judged(mut self) -> Self {
        self.held = self.sent > 0 && self.lost <= self.lost_on_all && self.doubled == 0;
        self
    }

    /// One that repeats what is lost, and misses nothing.
    fn judged_as_reliable(mut self) -> Self {
        self.held = self.sent > 0 && self.lost == 0;
        self
    }

    /// The share of copies that a network lost.
    pub fn loss_of(&self, network: usize) -> f64 {
        let (all, lost) = self.networks[network];
        lost as f64 / all.max(1) as f64
    }

    /// The share of what was sent that the program missed.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }
}

impl Traffic {
    /// Whether every program had what it was to have.
    pub fn held(&self) -> bool {
        self.rows.iter().all(|row| row.held)
    }

    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            let networks = row.networks.iter().enumerate().map(|(network, (all, lost))| {
                json!({"network": NAMES[network], "copies": all, "lost": lost, "loss_percent": row.loss_of(network) * 100.0})
            });
            json!({
                "program": row.name,
                "unit": row.unit,
                "sent": row.sent,
                "lost": row.lost,
                "doubled": row.doubled,
                "iprp_percent": row.loss() * 100.0,
                "networks": networks.collect::<Vec<_>>(),
                "packets_lost_on_all": row.lost_on_all,
                "delay_of": row.delay_of,
                "delay_ns": row.delay,
                "note": row.note,
                "held": row.held,
            })
        };
        let absent = |it: &Absent| json!({"program": it.name, "why": it.why});
        json!({
            "conditions": SCENARIO.networks.iter().map(|it| it.0).collect::<Vec<_>>(),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "absent": self.absent.iter().map(absent).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(network: usize, number: u32, came: bool) -> Copied {
        Copied {
            network,
            process: 1,
            space: 2,
            number,
            left_ns: 5,
            came_ns: came.then_some(9),
        }
    }

    #[test]
    fn a_program_may_miss_what_all_networks_lost_and_one_over_tcp_nothing() {
        let copies = [
            copy(0, 1, false),
            copy(1, 1, false),
            copy(0, 2, false),
            copy(1, 2, true),
            copy(0, 3, true),
            copy(1, 3, false),
        ];
        let row = |lost: u64, doubled: u64| {
            let row = Row {
                sent: 2,
                lost,
                doubled,
                ..Row::default()
            };
            row.over(&copies)
        };
        assert_eq!(row(0, 0).networks, [(3, 2), (3, 2)]);
        assert_eq!(row(0, 0).lost_on_all, 1);
        let held = |row: Row| row.judged().held;
        assert!(held(row(0, 0)) && held(row(1, 0)));
        assert!(!held(row(2, 0)), "a copy of another one came");
        assert!(!held(row(0, 1)) && !held(Row::default()));
        assert!(row(0, 3).judged_as_reliable().held);
        assert!(!row(1, 0).judged_as_reliable().held);
    }
}
