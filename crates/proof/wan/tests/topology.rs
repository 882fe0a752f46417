//! The default network is the fifth paper's; others are what their shape says, or are refused with every reason.

use std::collections::HashSet;

use bumpless_wan::address::{Addresses, Pool};
use bumpless_wan::route::Ways;
use bumpless_wan::{
    Impairment, Kind, MEASURED_ROUTER_US, NodeId, Shape, Topology, TopologyFault, containerlab,
    generate,
};

fn paper() -> Topology {
    generate(&Shape::default()).unwrap()
}

fn count(topology: &Topology, wanted: impl Fn(Kind) -> bool) -> usize {
    topology
        .nodes()
        .iter()
        .filter(|node| wanted(node.kind))
        .count()
}

/// The longest of the ways with the fewest hops from a substation to this control centre.
fn longest(topology: &Topology, centre: &str) -> (usize, u64) {
    let ways = Ways::new(topology, topology.find(centre).unwrap());
    let substations = topology
        .hosts()
        .filter(|&host| topology.node(host).kind == Kind::Substation);
    substations
        .map(|host| ways.way(host).unwrap())
        .map(|way| (way.links.len(), way.delay_us(topology)))
        .max()
        .unwrap()
}

#[test]
fn the_default_network_has_the_papers_numbers() {
    let topology = paper();
    assert_eq!(count(&topology, Kind::forwards), 340);
    assert_eq!(count(&topology, |kind| kind == Kind::Substation), 260);
    assert_eq!(count(&topology, |kind| kind == Kind::Centre), 2);
    assert_eq!(topology.links().len(), 702);
    let delayed = topology
        .links()
        .iter()
        .filter(|link| link.delay_us > 0)
        .count();
    assert_eq!(delayed, 280);
    let redundant = topology.hosts().filter(|&host| {
        topology.node(host).kind == Kind::Substation && topology.links_at(host).len() == 2
    });
    assert_eq!(redundant.count(), 80);
}

#[test]
fn the_papers_way_of_23_hops_takes_2_75_ms() {
    let topology = paper();
    let ways = Ways::new(&topology, topology.find("centre-2").unwrap());
    let way = ways.way(topology.find("s10-1-1").unwrap()).unwrap();
    assert_eq!(way.links.len(), 23);
    assert_eq!(way.routers(&topology), 22);
    assert_eq!(2 * way.delay_us(&topology), 5_500);
    // The profile with a cost for each router: the round trip that the paper measured, 8.018 ms (table II).
    let measured = generate(&Shape {
        router_us: MEASURED_ROUTER_US,
        ..Shape::default()
    })
    .unwrap();
    assert_eq!(2 * way.delay_us(&measured), 8_008);
}

#[test]
fn the_longest_ways_of_the_default_network_take_3_1_ms() {
    assert_eq!(longest(&paper(), "centre-2"), (27, 3_100));
    assert_eq!(longest(&paper(), "centre-1"), (28, 3_100));
}

#[test]
fn ways_are_as_short_as_a_slow_search_finds_them() {
    let topology = generate(&Shape {
        backbone_pairs: 5,
        loop_pairs: 2,
        chain_routers: 2,
        ..Shape::default()
    })
    .unwrap();
    for to in topology.hosts() {
        let ways = Ways::new(&topology, to);
        let distances = topology.distances(to);
        let slow = slow(&topology, to);
        for from in topology.places() {
            assert_eq!(
                distances[from.index()],
                slow[from.index()],
                "{from:?} {to:?}"
            );
            let way = ways.way(from).unwrap();
            assert_eq!(Some(way.links.len() as u32), distances[from.index()]);
            let between = &way.nodes[1..way.nodes.len().max(2) - 1];
            assert!(
                between
                    .iter()
                    .all(|&node| topology.node(node).kind.forwards())
            );
        }
    }
}

/// Relaxes every link until nothing changes (Bellman and Ford); hosts but `to` are never passed through.
fn slow(topology: &Topology, to: NodeId) -> Vec<Option<u32>> {
    let mut best: Vec<Option<u32>> = vec![None; topology.nodes().len()];
    best[to.index()] = Some(0);
    loop {
        let before = best.clone();
        for link in topology.links() {
            for [one, other] in [link.ends, [link.ends[1], link.ends[0]]] {
                let passes = other == to || topology.node(other).kind.forwards();
                if let Some(far) = best[other.index()].filter(|_| passes).map(|far| far + 1) {
                    let known = best[one.index()].unwrap_or(far);
                    best[one.index()] = Some(known.min(far));
                }
            }
        }
        if best == before {
            return best;
        }
    }
}

#[test]
fn every_substation_reaches_both_control_centres() {
    let topology = paper();
    for centre in ["centre-1", "centre-2"] {
        let distances = topology.distances(topology.find(centre).unwrap());
        assert!(distances.iter().all(Option::is_some), "{centre}");
    }
}

#[test]
fn a_network_told_in_a_file_is_the_same_one() {
    let topology = paper();
    assert_eq!(Topology::from_json(&topology.to_json()).unwrap(), topology);
}

#[test]
fn what_links_lose_and_carry_stands_in_the_file_and_is_judged() {
    let topology = paper();
    let text = topology.to_json();
    let impaired = |fields: &str| {
        let with = format!("\"delay_us\": 250,{fields}");
        Topology::from_json(&text.replacen("\"delay_us\": 250", &with, 1))
    };
    let read = impaired(r#""loss_percent": 0.5, "rate_mbit": 10"#).unwrap();
    let link = read
        .links()
        .iter()
        .find(|link| link.delay_us == 250)
        .unwrap();
    let expected = Impairment {
        loss_millionths: 5_000,
        rate_mbit: Some(10),
    };
    assert_eq!(link.impairment, expected);
    let again = Topology::from_json(&read.to_json()).unwrap();
    assert_eq!(again, read);
    assert_eq!(impaired(r#""loss_percent": 0"#).unwrap(), topology);
    for (told, millionths) in [
        ("0.0001", 1),
        ("0.0003", 3),
        ("33.3333", 333_333),
        ("100", 1_000_000),
    ] {
        let read = impaired(&format!(r#""loss_percent": {told}"#)).unwrap();
        let mut losses = read.links().iter().map(|it| it.impairment.loss_millionths);
        assert_eq!(losses.find(|it| *it > 0), Some(millionths));
        assert_eq!(Topology::from_json(&read.to_json()).unwrap(), read);
    }
    let addresses = Addresses::new(&read, Pool::V4).unwrap();
    assert_eq!(addresses, Addresses::new(&topology, Pool::V4).unwrap());
    let script = containerlab::delays(&read, "grid");
    assert_eq!(
        script.matches("--loss 0.5 --rate 10000\n").count(),
        2,
        "each end"
    );
    for wrong in [
        r#""loss_percent": 100.1"#,
        r#""loss_percent": -1"#,
        r#""loss_percent": 0.00001"#,
        r#""loss_percent": 0.00015"#,
        r#""rate_mbit": 0"#,
        r#""rate_mbit": 30001"#,
    ] {
        let faults = impaired(wrong).unwrap_err();
        assert!(
            matches!(faults[..], [TopologyFault::Impairment(_, _)]),
            "{wrong}: {faults:?}"
        );
    }
    let both = impaired(r#""loss_percent": 101, "rate_mbit": 0"#).unwrap_err()[0].to_string();
    assert!(
        both.contains("loss_percent") && both.contains("rate_mbit"),
        "{both}"
    );
}

#[test]
fn everything_wrong_with_a_file_is_told_at_once() {
    let text = r#"{"schema":"bumpless.wan-topology/1","router_us":0,"nodes":[
        {"name":"a","kind":"substation"},{"name":"a","kind":"centre"},{"name":"b c","kind":"substation"}],
        "links":[{"ends":["a","x"],"delay_us":1}]}"#;
    let faults = Topology::from_json(text).unwrap_err();
    assert!(
        faults.contains(&TopologyFault::Twice("a".to_owned())),
        "{faults:?}"
    );
    assert!(
        faults.contains(&TopologyFault::Name("b c".to_owned())),
        "{faults:?}"
    );
    assert!(
        faults.contains(&TopologyFault::Unknown(0, "x".to_owned())),
        "{faults:?}"
    );
    // The same where links and nodes are no such things, each with its number.
    let worse = text
        .replace(r#"{"ends":["a","x"],"delay_us":1}"#, r#"{"ends":["a","a"],"delay_us":1},{"ends":["a"],"delay_us":1},{"ends":["b","a"],"delay_us":"soon"},{"ends":["x","a"],"delay_us":1}"#);
    let said = |text: &str| {
        let faults = Topology::from_json(text).unwrap_err();
        let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
        all.join("\n")
    };
    let told = said(&worse);
    for part in [
        "link 2: ",
        "link 3: ",
        "link 4 ends at \"x\"",
        "two nodes are called a",
        "a is linked to itself",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let worst = worse.replace(r#""kind":"centre""#, r#""kind":"castle""#);
    let told = said(&worst);
    assert!(
        told.contains("node 2: ") && told.contains("castle") && told.contains("link 2: "),
        "{told}"
    );
    assert!(!told.contains("no node is called"), "{told}");
    let sound = r#"{"schema":"bumpless.wan-topology/1","router_us":0,"nodes":[
        {"name":"a","kind":"substation"},{"name":"b","kind":"centre"}],
        "links":[{"ends":["a","b"],"delay_us":1}]}"#;
    assert!(Topology::from_json(sound).is_ok());
    for (once, twice) in [
        (r#""delay_us":1"#, r#""delay_us":1,"delay_us":9000"#),
        (r#""kind":"centre""#, r#""kind":"centre","kind":"centre""#),
    ] {
        let told = said(&sound.replace(once, twice));
        assert!(told.contains("duplicate field"), "{told}");
    }
    let other = text.replace("topology/1", "topology/9");
    assert!(
        Topology::from_json(&other).unwrap_err()[0]
            .to_string()
            .contains("topology/9")
    );
}

#[test]
fn a_network_in_two_parts_is_refused_with_two_names() {
    let text = r#"{"schema":"bumpless.wan-topology/1","router_us":0,"nodes":[
        {"name":"one","kind":{"router":"access"}},{"name":"two","kind":{"router":"access"}},{"name":"three","kind":"centre"}],
        "links":[{"ends":["one","three"],"delay_us":1}]}"#;
    let said = Topology::from_json(text).unwrap_err()[0].to_string();
    assert!(said.contains("one") && said.contains("two"), "{said}");
}

#[test]
fn everything_wrong_with_a_shape_is_told_at_once() {
    let shape = Shape {
        backbone_pairs: 2,
        loop_pairs: 0,
        chain_routers: 1,
        centres: 3,
        ..Shape::default()
    };
    assert_eq!(generate(&shape).unwrap_err().len(), 3);
    let huge = Shape {
        chain_routers: usize::MAX,
        ..Shape::default()
    };
    assert_eq!(generate(&huge).unwrap_err().len(), 1);
}

#[test]
fn no_address_is_given_twice_and_a_small_pool_is_refused() {
    let topology = paper();
    for pool in [Pool::V4, Pool::V6] {
        let addresses = Addresses::new(&topology, pool).unwrap();
        let links = (0..topology.links().len()).flat_map(|link| addresses.link(link));
        let hosts = topology.hosts().map(|host| addresses.host(host).unwrap());
        let all: Vec<_> = links.chain(hosts).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }
    let small = Addresses::new(&topology, "10.64.0.0/22".parse().unwrap()).unwrap_err();
    assert_eq!(small.needed, 2 * 702 + 262);
    assert!(small.to_string().contains("at most 21 bits"), "{small}");
    assert!(Addresses::new(&topology, "10.64.0.0/21".parse().unwrap()).is_ok());
}

#[test]
fn what_is_no_pool_is_refused_with_the_reason() {
    for (text, reason) in [
        ("10.64.0.0", "no '/'"),
        ("10.64.0/16", "no address"),
        ("10.64.0.0/x", "no number"),
        ("10.64.0.0/33", "fewer bits"),
        ("10.64.0.1/16", "behind the prefix"),
        ("fd00::1/64", "behind the prefix"),
    ] {
        let said = text.parse::<Pool>().unwrap_err();
        assert!(said.contains(reason), "{said}");
    }
    for text in ["0.0.0.0/0", "::/0", "10.0.0.1/32", "fd00::1/128"] {
        assert!(text.parse::<Pool>().is_ok(), "{text}");
    }
}

#[test]
fn an_export_names_every_link_once_and_every_delay_on_both_ends() {
    let topology = paper();
    let addresses = Addresses::new(&topology, Pool::V4).unwrap();
    let file = containerlab::file(&topology, &addresses, "grid");
    assert_eq!(file.matches("endpoints:").count(), 702);
    let ends: Vec<&str> = file
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- endpoints: ["))
        .flat_map(|line| line.trim_end_matches(']').split(", "))
        .collect();
    assert_eq!(ends.iter().collect::<HashSet<_>>().len(), 2 * 702);
    let delays = containerlab::delays(&topology, "grid");
    assert_eq!(delays.matches("netem set").count(), 2 * 280);
}
