use bumpless_base::Duration;
use bumpless_wan::route::{Ways, round_trip_us};
use bumpless_wan::{Impairment, Kind, MEASURED_ROUTER_US, Script, Shape, generate};

use super::*;
use crate::queue::{Queue, What};

const MS: u64 = 1_000_000;

/// A network with ends at all of its hosts, or at those that are named.
struct Run {
    topology: Arc<Topology>,
    network: Forwarding<u32>,
    queue: Queue,
    /// Which packet, when it was at its end or lost, and why.
    ended: Vec<(u32, u64, Option<Cause>)>,
}

impl Run {
    fn new(topology: Topology, routing: Routing, places: &[&str]) -> Self {
        let topology = Arc::new(topology);
        let named = |name: &&str| topology.find(name).unwrap();
        let places: Vec<NodeId> = match places {
            [] => topology.hosts().collect(),
            places => places.iter().map(named).collect(),
        };
        Self {
            network: Forwarding::new(&topology, routing, &places, 7),
            topology,
            queue: Queue::default(),
            ended: Vec::new(),
        }
    }

    fn send(&mut self, number: u32, ends: (usize, usize), at: u64, flow: u64) {
        let load = Load {
            ends,
            bytes: 1_000,
            flow,
        };
        let flight = self.network.enter(load, number);
        self.queue.push(at, What::Hop { flight });
    }

    fn until(&mut self, end: u64) {
        while let Some(what) = self.queue.pop(end) {
            let now = self.queue.now();
            match what {
                What::Hop { flight } => match self.network.hop(flight, now).unwrap() {
                    Hop::On(at) => self.queue.push(at, what),
                    Hop::There(number) => self.ended.push((number, now, None)),
                    Hop::Lost(number, cause) => self.ended.push((number, now, Some(cause))),
                },
                What::Converge => self.network.converge(now),
                _ => unreachable!("{what:?}"),
            }
        }
        self.queue.go_on_to(end);
    }

    /// Links that people name so die or carry again at once.
    fn change(&mut self, what: &str, cut: bool) {
        let links = bumpless_wan::ends_of(&self.topology, what).unwrap();
        let step = match cut {
            true => Step {
                cut: links,
                ..Step::default()
            },
            false => Step {
                heal: links,
                ..Step::default()
            },
        };
        let now = self.queue.now();
        for after in self.network.take(&step, now).into_iter().flatten() {
            self.queue.push(now + after, What::Converge);
        }
    }

    /// How long a packet takes from the first to the second place, if it is not lost.
    fn takes(&mut self, flow: u64) -> Result<u64, Cause> {
        let now = self.queue.now();
        self.send(0, (0, 1), now, flow);
        self.until(now + 500 * MS);
        let (_, at, cause) = self.ended.pop().unwrap();
        cause.map_or(Ok(at - now), Err)
    }
}

fn small(router_us: u32) -> Topology {
    generate(&Shape {
        backbone_pairs: 3,
        loop_pairs: 2,
        chain_routers: 1,
        router_us,
        ..Shape::default()
    })
    .unwrap()
}

fn papers(router_us: u32) -> Topology {
    generate(&Shape {
        router_us,
        ..Shape::default()
    })
    .unwrap()
}

#[test]
fn between_every_two_ends_a_packet_takes_what_its_way_says() {
    let mut run = Run::new(small(MEASURED_ROUTER_US), Routing::Fixed, &[]);
    let hosts: Vec<_> = run.topology.hosts().collect();
    let pairs: Vec<_> = (0..hosts.len())
        .flat_map(|from| (0..hosts.len()).map(move |to| (from, to)))
        .collect();
    for (number, &ends) in (0..).zip(&pairs) {
        run.send(number, ends, MS, 0);
    }
    run.until(1_000 * MS);
    assert_eq!(run.ended.len(), pairs.len());
    let mut took = vec![0; pairs.len()];
    for &(number, at, cause) in &run.ended {
        assert_eq!(cause, None);
        took[number as usize] = at - MS;
    }
    for (&(from, to), took_ns) in pairs.iter().zip(&took) {
        let back = took[to * hosts.len() + from];
        let round_trip = round_trip_us(&run.topology, hosts[from], hosts[to]).unwrap();
        assert_eq!((took_ns + back), round_trip * 1_000, "{from} and {to}");
        let way = Ways::new(&run.topology, hosts[to])
            .way(hosts[from])
            .unwrap();
        assert_eq!(*took_ns, way.delay_us(&run.topology) * 1_000);
    }
    let counts = run.network.counts;
    assert_eq!(
        (counts.entered, counts.delivered, counts.lost()),
        (289, 289, 0)
    );
}

#[test]
fn the_papers_way_of_23_hops_takes_its_profile_to_the_microsecond() {
    for (router_us, round_trip) in [(0, 5_500_000), (MEASURED_ROUTER_US, 8_008_000)] {
        let mut run = Run::new(papers(router_us), Routing::Fixed, &["centre-2", "s10-1-1"]);
        let there = run.takes(0).unwrap();
        assert_eq!(run.network.counts.hops, 23);
        let now = run.queue.now();
        run.send(1, (1, 0), now, 0);
        run.until(now + 100 * MS);
        assert_eq!(there + run.ended[0].1 - now, round_trip);
    }
}

#[test]
fn a_link_that_dies_takes_what_is_on_it_and_a_router_what_is_at_it() {
    let way = ["centre-2", "s10-1-1"];
    let topology = papers(0);
    let [from, to] = way.map(|name| topology.find(name).unwrap());
    let nodes = Ways::new(&topology, to).way(from).unwrap().nodes;
    let name = |at: usize| topology.node(nodes[at]).name.clone();
    // On its way over one of the links of 250 us, when that dies and carries again.
    let between = (0..nodes.len() - 1)
        .map(|at| format!("{}:{}", name(at), name(at + 1)))
        .find(|what| {
            bumpless_wan::ends_of(&topology, what)
                .is_ok_and(|links| topology.links()[links[0]].delay_us == 250)
        });
    let (link, router) = (between.unwrap(), name(10));
    for (what, cause) in [(&link, Cause::DeadLink), (&router, Cause::DeadRouter)] {
        let mut run = Run::new(topology.clone(), Routing::Fixed, &way);
        // One every 10 us: many are under way at any moment.
        for number in 0..1_000 {
            run.send(number, (0, 1), u64::from(number) * 10_000, 0);
        }
        run.until(5 * MS);
        run.change(what, true);
        run.until(5 * MS + 1_000);
        run.change(what, false);
        run.until(100 * MS);
        let lost: Vec<_> = run.ended.iter().filter(|it| it.2.is_some()).collect();
        assert!(lost.iter().all(|it| it.2 == Some(cause)), "{lost:?}");
        // A link of 250 us has 25 of them, and a router is between such links or at one.
        assert!((20..=60).contains(&lost.len()), "{}", lost.len());
        let counts = run.network.counts;
        assert_eq!(counts.lost(), lost.len() as u64);
        assert_eq!(counts.entered, counts.delivered + counts.lost());
        assert_eq!(run.ended.len(), 1_000);
    }
}

#[test]
fn nobody_is_told_of_an_outage_and_packets_are_lost_until_it_ends() {
    for routing in [Routing::Fixed, Routing::EqualCost] {
        let mut run = Run::new(papers(0), routing, &["s05", "s10-1-1"]);
        let before = run.takes(1).unwrap();
        // The only router at this substation.
        run.change("c10-1-1", true);
        assert_eq!(run.takes(1), Err(Cause::DeadRouter));
        run.until(60_000 * MS);
        assert_eq!(run.takes(1), Err(Cause::DeadRouter));
        run.change("c10-1-1", false);
        assert_eq!(run.takes(1), Ok(before));
    }
}

#[test]
fn every_substation_reaches_both_centres_and_is_reached() {
    let topology = papers(0);
    let hosts: Vec<_> = topology.hosts().collect();
    let is_centre = |at: &usize| topology.node(hosts[*at]).kind == Kind::Centre;
    let (centres, substations): (Vec<_>, Vec<_>) = (0..hosts.len()).partition(is_centre);
    assert_eq!((centres.len(), substations.len()), (2, 260));
    for routing in [Routing::Fixed, Routing::EqualCost, Routing::DAEMON] {
        let mut run = Run::new(topology.clone(), routing, &[]);
        for &centre in &centres {
            for &substation in &substations {
                run.send(0, (centre, substation), 0, 0);
                run.send(1, (substation, centre), 0, 0);
            }
        }
        run.until(1_000 * MS);
        assert_eq!(run.network.counts.delivered, 1_040);
        let there = |number| run.ended.iter().filter(|it| it.0 == number).count();
        assert_eq!((there(0), there(1)), (520, 520));
    }
}

#[test]
fn ten_thousand_nodes_forward_with_tables_towards_the_ends_alone() {
    let topology = generate(&Shape {
        backbone_pairs: 96,
        loop_pairs: 6,
        chain_routers: 7,
        ..Shape::default()
    })
    .unwrap();
    assert_eq!(topology.nodes().len(), 10_082);
    let places = ["centre-1", "centre-2", "s33", "s66-3-6"];
    let mut run = Run::new(topology, Routing::DAEMON, &places);
    for from in 0..4 {
        for to in 0..4 {
            run.send(0, (from, to), 0, 0);
        }
    }
    run.until(1_000 * MS);
    assert_eq!(run.network.counts.delivered, 16);
    run.change("b10a", true);
    run.until(10_000 * MS);
    assert_eq!(run.network.counts.converged, 1);
    assert_eq!(run.takes(0).map(|_| ()), Ok(()));
}

/// Two hosts, and this many routers between them that are as near.
fn side_by_side(routers: u32) -> Topology {
    let node = |name: String, kind| bumpless_wan::Node { name, kind };
    let backbone = || Kind::Router(bumpless_wan::Layer::Backbone);
    let mut nodes: Vec<_> = ["left", "right"]
        .map(|name| node(name.to_owned(), Kind::Substation))
        .into();
    nodes.extend(["l", "r"].map(|name| node(name.to_owned(), backbone())));
    nodes.extend((0..routers).map(|number| node(format!("m{number}"), backbone())));
    let link = |one: u32, other: u32, delay_us| bumpless_wan::Link {
        ends: [NodeId(one), NodeId(other)],
        delay_us,
        impairment: Impairment::default(),
    };
    let mut links = vec![link(0, 2, 10), link(3, 1, 10)];
    for middle in 0..routers {
        // Told apart by what they take.
        links.push(link(2, 4 + middle, 100 + middle));
        links.push(link(4 + middle, 3, 100));
    }
    Topology::new(nodes, links, 0).unwrap()
}

#[test]
fn flows_spread_over_ways_of_equal_cost_and_each_keeps_its_own() {
    let ends = ["left", "right"];
    let mut run = Run::new(side_by_side(4), Routing::EqualCost, &ends);
    let mut by_way = [0; 4];
    for flow in 0..400 {
        let took = run.takes(flow).unwrap();
        assert_eq!(run.takes(flow), Ok(took), "flow {flow}");
        by_way[(took / 1_000 - 220) as usize] += 1;
    }
    assert!(
        by_way.iter().all(|count| (70..=130).contains(count)),
        "{by_way:?}"
    );
    let mut run = Run::new(side_by_side(4), Routing::Fixed, &ends);
    assert!((0..50).all(|flow| run.takes(flow) == Ok(220_000)));
}

#[test]
fn routing_daemons_find_another_way_after_their_time_and_return_after_it() {
    let routing = Routing::Daemon {
        failure: Duration::from_millis(1_000),
        healing: Duration::from_millis(2_000),
    };
    let mut run = Run::new(side_by_side(2), routing, &["left", "right"]);
    let (first, second) = (Ok(220_000), Ok(221_000));
    assert_eq!(run.takes(0), first);
    run.change("m0", true);
    assert_eq!(run.takes(0), Err(Cause::DeadRouter));
    let cut = 500 * MS;
    run.until(cut + 999 * MS);
    assert_eq!(run.network.counts.converged, 0);
    run.until(cut + 1_000 * MS);
    assert_eq!((run.takes(0), run.network.counts.converged), (second, 1));
    let healed = run.queue.now();
    run.change("m0", false);
    run.until(healed + 1_400 * MS);
    assert_eq!(run.takes(0), second);
    run.until(healed + 2_000 * MS);
    assert_eq!((run.takes(0), run.network.counts.converged), (first, 2));
    // What is over sooner than they look is not found out.
    run.change("m0:l", true);
    let now = run.queue.now();
    run.until(now + 900 * MS);
    run.change("m0:l", false);
    run.until(now + 10_000 * MS);
    assert_eq!((run.takes(0), run.network.counts.converged), (first, 2));
    // Of a host's link nobody is told, and without any way there is none.
    run.change("right:r", true);
    run.until(20_000 * MS);
    assert_eq!(run.takes(0), Err(Cause::DeadLink));
    run.change("right:r", false);
    run.change("l:m0", true);
    run.change("l:m1", true);
    run.until(30_000 * MS);
    assert_eq!(run.takes(0), Err(Cause::NoWay));
}

#[test]
fn a_rate_spaces_packets_out_and_what_finds_no_room_is_counted() {
    let text = r#"{"schema": "bumpless.wan-script/1", "impairments":
        [{"at_s": 1, "for_s": 9, "what": ["l:m0"], "rate_mbit": 1}]}"#;
    let mut run = Run::new(side_by_side(1), Routing::Fixed, &["left", "right"]);
    let script = Script::from_json(text, &run.topology).unwrap();
    run.until(1_000 * MS);
    run.network.take(&script.steps()[0], 1_000 * MS);
    for number in 0..100 {
        run.send(number, (0, 1), 1_000 * MS, 0);
    }
    run.until(3_000 * MS);
    // 1,042 bytes take 8.336 ms, and ten frames of 1,514 bytes wait: 121.12 ms.
    let there: Vec<_> = run
        .ended
        .iter()
        .filter(|it| it.2.is_none())
        .map(|it| it.1)
        .collect();
    let expected: Vec<_> = (1..=15)
        .map(|it| 1_000 * MS + 220_000 + it * 8_336_000)
        .collect();
    assert_eq!(there, expected);
    assert_eq!(run.network.counts.queue_full, 85);
    // The other direction has a queue of its own, and what is impaired no longer carries at once.
    let now = run.queue.now();
    run.send(0, (1, 0), now, 0);
    run.until(now + 100 * MS);
    assert_eq!(run.ended.last().unwrap().1, now + 220_000 + 8_336_000);
    run.network.take(&script.steps()[1], 10_000 * MS);
    assert_eq!(run.takes(0), Ok(220_000));
}

#[test]
fn a_link_that_loses_some_at_random_loses_that_share_and_counts_it() {
    let mut nodes = side_by_side(1);
    let links = nodes.links().iter().map(|link| bumpless_wan::Link {
        impairment: Impairment {
            loss_millionths: if link.delay_us == 10 { 50_000 } else { 0 },
            rate_mbit: None,
        },
        ..*link
    });
    nodes = Topology::new(nodes.nodes().to_vec(), links.collect(), 0).unwrap();
    let mut run = Run::new(nodes, Routing::Fixed, &["left", "right"]);
    for number in 0..10_000 {
        run.send(number, (0, 1), u64::from(number) * 10_000, 0);
    }
    run.until(1_000 * MS);
    let lost = run.network.counts.loss;
    // 1 - 0.95^2 of them: 975, and four standard deviations.
    assert!((855..=1_095).contains(&lost), "{lost}");
    assert_eq!(run.network.counts.delivered, 10_000 - lost);
    // What is under way goes through slots that are used again.
    assert!(run.network.room() < 10_001);
    let room = run.network.room();
    for number in 0..10_000 {
        run.send(number, (0, 1), 1_000 * MS + u64::from(number) * 10_000, 0);
        run.until(1_000 * MS + u64::from(number) * 10_000);
    }
    assert_eq!(run.network.room(), room);
}

#[test]
fn what_routers_find_out_of_one_link_tells_them_nothing_of_another() {
    let mut run = Run::new(side_by_side(3), Routing::DAEMON, &["left", "right"]);
    run.change("m0", true);
    run.until(1_000 * MS);
    run.change("m1", true);
    run.until(1_860 * MS);
    assert_eq!(run.network.counts.converged, 1);
    // Of the second one they do not know yet.
    assert_eq!(run.takes(0), Err(Cause::DeadRouter));
    run.until(2_860 * MS);
    assert_eq!(
        (run.takes(0), run.network.counts.converged),
        (Ok(222_000), 2)
    );
}
