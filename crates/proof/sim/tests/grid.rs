//! A pair across a wide-area network with outages (`spec/wan.md`, U-100 and further).

use std::sync::Arc;

use bumpless_base::Duration;
use bumpless_sim::grid::{Grid, Judged, Kind, Options, Promised};
use bumpless_sim::sites::Obeyed;
use bumpless_sim::{Places, Routing};
use bumpless_wan::{Script, Shape, generate};

const NAMES: [&str; 4] = ["centre-1", "s02-1-1", "s01", "s01-1"];

/// A pair on a small network, three pairs in the ring; everybody is at a site of its own, far from each other.
fn options(shape: &Shape, names: [&str; 4], routing: Routing) -> Options {
    let topology = Arc::new(generate(shape).unwrap());
    let [left, right, witness, field] =
        names.map(|name| topology.find(name).unwrap_or_else(|| panic!("{name}")));
    Options {
        places: Places {
            nodes: vec![left, right],
            witness,
            field,
        },
        topology,
        routing,
        backup: None,
        heartbeat: Duration::from_millis(5),
        period: Duration::from_millis(20),
        script: None,
    }
}

fn small(routing: Routing) -> Options {
    let shape = Shape {
        backbone_pairs: 3,
        ..Shape::default()
    };
    options(&shape, NAMES, routing)
}

fn judged(grid: &Grid, seed: u64) -> Judged {
    let judged = grid.judge(seed, Obeyed::Whole, &|| false);
    judged
        .unwrap_or_else(|why| panic!("seed {seed}: {why}"))
        .expect("nobody stops it")
}

#[test]
fn outages_of_the_network_leave_one_writer_and_no_longer_gap_than_promised() {
    let (first, step) = bumpless_testing::slice();
    let mut broken = Vec::new();
    let mut promises = Vec::new();
    for routing in [Routing::Fixed, Routing::EqualCost, Routing::DAEMON] {
        let grid = Grid::new(small(routing)).unwrap();
        for seed in (first..32).step_by(step as usize) {
            let judged = judged(&grid, seed);
            promises.push(judged.promised);
            assert_eq!(judged.outage, Some(Kind::of(seed)));
            if !judged.broken.is_empty() {
                broken.push(format!("{routing:?}: {judged:?}"));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "{}:\n{}",
        broken.len(),
        broken.join("\n")
    );
    if step == 1 {
        assert!(Promised::ALL.iter().all(|it| promises.contains(it)));
    }
}

#[test]
fn over_a_second_way_nobody_notices_an_outage_of_the_network() {
    let mut lost = 0;
    for routing in [Routing::Fixed, Routing::DAEMON] {
        let grid = Grid::new(Options {
            backup: Some(1_800_000),
            ..small(routing)
        })
        .unwrap();
        for seed in 0..12 {
            let judged = judged(&grid, seed);
            assert_eq!(judged.promised, Promised::Unnoticed);
            assert!(judged.broken.is_empty(), "{judged:?}");
            assert_eq!(judged.cold_starts, 0);
            lost += judged.packets.lost();
        }
    }
    assert!(lost > 1_000, "{lost}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let run = |seed| {
        let grid = Grid::new(small(Routing::EqualCost)).unwrap();
        let judged = judged(&grid, seed);
        (judged.trace_hash, judged.packets)
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3).0, run(4).0);
}

#[test]
fn a_script_of_bumpless_wan_is_played_and_what_it_takes_is_counted() {
    let text = r#"{"schema": "bumpless.wan-script/1",
        "outages": [{"at_s": 0.5, "for_s": 1.5, "what": ["centre-1"]}, {"at_s": 0.7, "for_s": 0.1, "what": ["b01a"]}]}"#;
    let mut options = small(Routing::Fixed);
    let script = Script::from_json(text, &options.topology).unwrap();
    options.script = Some(script.steps().to_vec());
    let judged = judged(&Grid::new(options).unwrap(), 1);
    assert!(judged.broken.is_empty(), "{judged:?}");
    assert_eq!((judged.outage, judged.what.len()), (None, 0));
    assert_eq!((judged.at_ms, judged.for_ms), (3_500.0, 1_500.0));
    // One outage is at the primary's site, and the other one is on ways while that is dead.
    assert_eq!(judged.promised, Promised::Nothing);
    assert!(
        judged.packets.dead_link > 100 && judged.packets.dead_router > 0,
        "{judged:?}"
    );
    assert_eq!(
        judged.packets.queue_full + judged.packets.loss + judged.packets.no_way,
        0
    );
}

#[test]
fn the_end_of_the_primarys_site_is_a_gap_of_a_lease_and_no_longer_than_planned() {
    let text = r#"{"schema": "bumpless.wan-script/1", "outages": [{"at_s": 0.5, "for_s": 2, "what": ["centre-1"]}]}"#;
    let mut options = small(Routing::Fixed);
    let script = Script::from_json(text, &options.topology).unwrap();
    options.script = Some(script.steps().to_vec());
    let grid = Grid::new(options).unwrap();
    let judged = judged(&grid, 5);
    assert!(judged.broken.is_empty(), "{judged:?}");
    assert_eq!(judged.promised, Promised::PrimaryCut);
    for (gap, promised) in &judged.gaps_ms {
        assert!(*gap > grid.planned.lease_ms / 2.0, "{judged:?}");
        assert!(
            promised.is_some_and(|promised| *gap <= promised),
            "{judged:?}"
        );
    }
}

#[test]
fn a_lease_shorter_than_the_plan_has_it_is_found() {
    let shape = Shape {
        backbone_pairs: 3,
        backbone_us: 5_000,
        ..Shape::default()
    };
    let grid = Grid::new(Options {
        heartbeat: Duration::from_millis(1),
        ..options(&shape, NAMES, Routing::Fixed)
    })
    .unwrap();
    let breaks = |seed| {
        let judged = grid.judge(seed, Obeyed::Lease(60), &|| false).unwrap();
        judged.is_some_and(|judged| !judged.broken.is_empty())
    };
    assert!((0..8).any(breaks));
    assert!((0..8).all(|seed| judged(&grid, seed).broken.is_empty()));
}

#[test]
fn a_network_of_ten_thousand_nodes_carries_a_pair() {
    let shape = Shape {
        backbone_pairs: 96,
        loop_pairs: 6,
        chain_routers: 7,
        ..Shape::default()
    };
    let options = options(
        &shape,
        ["centre-1", "s20-6-7", "s10", "s05-1"],
        Routing::DAEMON,
    );
    assert_eq!(options.topology.nodes().len(), 10_082);
    let grid = Grid::new(options).unwrap();
    let judged = judged(&grid, 1);
    assert!(judged.broken.is_empty(), "{judged:?}");
    assert!(
        judged.packets.delivered > 1_000 && judged.packets.hops > 10 * judged.packets.delivered
    );
}

#[test]
fn it_ends_early_when_it_is_stopped() {
    let grid = Grid::new(small(Routing::Fixed)).unwrap();
    let stopped = grid.judge(0, Obeyed::Whole, &|| true).unwrap();
    assert!(stopped.is_none());
}
