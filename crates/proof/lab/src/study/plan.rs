//! What is measured, when each outage begins and ends, and over which ways: all of it drawn from one seed beforehand.

use bumpless_base::{Duration, Random, random::mix64};
use bumpless_wan::emulation::Line;
use bumpless_wan::route::{Way, Ways};
use bumpless_wan::{Kind, NodeId, Topology};

use super::transport::Transport;

/// Messages each second (fifth paper, V-A: one every 50 ms).
const MESSAGES_EACH_SECOND: usize = 20;
/// The round trip of the paper's way, microseconds: substations are chosen for being near it.
const PAPER_ROUND_TRIP_US: u64 = 5500;

/// Its links.
const PAPER_HOPS: usize = 23;

/// What a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// TCP over the network, without an outage (table II).
    Network,
    /// TCP over a backup, without an outage (table II).
    Backup(Line),
    /// An outage of the network, with such a backup.
    Outage(&'static Transport, Line),
}

impl Case {
    /// Which line the backup is like.
    pub const fn line(self) -> Line {
        match self {
            Self::Network => Line::Ethernet,
            Self::Backup(line) | Self::Outage(_, line) => line,
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// What it is about.
    pub case: Case,
    /// Its number among those of its case, from 1.
    pub number: u32,
    /// How many messages it has.
    pub messages: usize,
    /// The first message leaves so long after the connection is there.
    pub after: Duration,
    /// When the network's way dies, from the first message on, and how long it is dead.
    pub outage: Option<(Duration, Duration)>,
}

/// Every run, in the order in which they begin: the first ones of all cases before the second ones.
pub fn jobs(cases: &[Case], runs: u32, seconds: u64, seed: u64) -> Vec<Job> {
    let all = (1..=runs).flat_map(|number| cases.iter().map(move |&case| (case, number)));
    all.enumerate()
        .map(|(place, (case, number))| {
            let mut random = Random::new(mix64(seed ^ mix64(place as u64 + 1)));
            // Of a minute, at random after 15 to 30 s, for 15 to 30 s.
            let quarter = Duration::from_millis(seconds * 250);
            let mut drawn = || quarter + Duration::from_nanos(random.below(quarter.as_nanos()));
            let outage = (drawn(), drawn());
            let spread = Duration::from_millis(1000 / MESSAGES_EACH_SECOND as u64);
            Job {
                case,
                number,
                messages: seconds as usize * MESSAGES_EACH_SECOND,
                after: spread + Duration::from_nanos(random.below(spread.as_nanos())),
                outage: matches!(case, Case::Outage(..)).then_some(outage),
            }
        })
        .collect()
}

/// A substation at which runs are made, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The substation.
    pub node: NodeId,
    /// A link on its way, in both directions, that nobody else's has.
    pub cut: usize,
    /// What a packet takes there and back, microseconds.
    pub round_trip_us: u64,
}

/// The centre that messages come from, and at most `count` substations whose ways to it are cut without touching each other's;
/// those whose round trips are nearest the paper's come first.
pub fn sites(topology: &Topology, count: usize) -> Option<(NodeId, Vec<Site>)> {
    let centres = topology.hosts().filter(|&host| {
        topology.node(host).kind == Kind::Centre && topology.links_at(host).len() == 1
    });
    let centre = centres.last()?;
    let ways = Ways::new(topology, centre);
    let mut found: Vec<(Site, [Way; 2])> = topology
        .hosts()
        .filter(|&host| topology.node(host).kind == Kind::Substation)
        .filter_map(|host| site(topology, &ways, (centre, host)))
        .collect();
    found.sort_by_key(|(it, [there, _])| {
        let hops = there.links.len().abs_diff(PAPER_HOPS);
        (it.round_trip_us.abs_diff(PAPER_ROUND_TRIP_US), hops)
    });
    let mut chosen: Vec<(Site, [Way; 2])> = Vec::new();
    for (site, ways) in found {
        let on = |ways: &[Way; 2], link| ways.iter().any(|way| way.links.contains(&link));
        let apart =
            |(other, theirs): &(Site, [Way; 2])| !on(theirs, site.cut) && !on(&ways, other.cut);
        if chosen.len() < count && chosen.iter().all(apart) {
            chosen.push((site, ways));
        }
    }
    let sites: Vec<_> = chosen.into_iter().map(|(site, _)| site).collect();
    (!sites.is_empty()).then_some((centre, sites))
}

/// A substation with one link, if the link before its router is on its ways in both directions.
fn site(
    topology: &Topology,
    to_centre: &Ways<'_>,
    (centre, node): (NodeId, NodeId),
) -> Option<(Site, [Way; 2])> {
    if topology.links_at(node).len() != 1 {
        return None;
    }
    let there = Ways::new(topology, node).way(centre)?;
    let back = to_centre.way(node)?;
    let cut = *there.links.get(there.links.len().checked_sub(2)?)?;
    let ends = topology.links()[cut].ends;
    let between_routers = ends.iter().all(|&end| topology.node(end).kind.forwards());
    let site = Site {
        node,
        cut,
        round_trip_us: there.delay_us(topology) + back.delay_us(topology),
    };
    (between_routers && back.links.contains(&cut)).then_some((site, [there, back]))
}

#[cfg(test)]
mod tests {
    use bumpless_wan::{Shape, generate};

    use super::*;
    use crate::study::transport;

    #[test]
    fn outages_begin_and_end_when_the_papers_do_and_are_the_same_for_a_seed() {
        let transport = transport::named("tcp").unwrap();
        let cases = [Case::Network, Case::Outage(transport, Line::Lte)];
        let all = jobs(&cases, 50, 60, 7);
        assert_eq!(all.len(), 100);
        assert_eq!(all, jobs(&cases, 50, 60, 7));
        assert_ne!(all, jobs(&cases, 50, 60, 8));
        let quarter = Duration::from_secs(15);
        for job in &all {
            assert_eq!(job.messages, 1200);
            assert_eq!(job.outage.is_some(), job.case != Case::Network);
            for took in job.outage.iter().flat_map(|&(at, lasts)| [at, lasts]) {
                assert!(took >= quarter && took <= quarter + quarter, "{took:?}");
            }
        }
        let firsts = all.iter().filter(|job| job.number == 1).count();
        assert_eq!((firsts, all[1].number, all[2].number), (2, 1, 2));
    }

    #[test]
    fn the_first_site_is_the_papers_and_no_cut_touches_another_ones_way() {
        let topology = generate(&Shape::default()).unwrap();
        let (centre, sites) = sites(&topology, 20).unwrap();
        assert_eq!(topology.node(centre).name, "centre-2");
        assert_eq!(topology.node(sites[0].node).name, "s10-1-1");
        assert_eq!(sites[0].round_trip_us, 5500);
        assert_eq!(sites.len(), 20);
        for one in &sites {
            assert!(one.round_trip_us.abs_diff(5500) <= 1200, "{one:?}");
            for other in sites.iter().filter(|it| it.node != one.node) {
                let ways = [
                    Ways::new(&topology, other.node).way(centre).unwrap(),
                    Ways::new(&topology, centre).way(other.node).unwrap(),
                ];
                assert!(ways.iter().all(|way| !way.links.contains(&one.cut)));
            }
        }
        let small = generate(&Shape {
            backbone_pairs: 3,
            ..Shape::default()
        });
        assert!(super::sites(&small.unwrap(), 4).unwrap().1.len() == 4);
    }
}
