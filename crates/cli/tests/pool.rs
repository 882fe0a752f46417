//! Three nodes in a ring: each is primary for one group and backup for another, with two partners.

mod support;

use support::plan::Plan;
use support::site::Site;
use support::wait_until;

const GROUPS: [(&str, [&str; 2]); 3] = [
    ("north-east", ["north", "east"]),
    ("east-west", ["east", "west"]),
    ("west-north", ["west", "north"]),
];

fn ring() -> Site {
    let mut plan = Plan::nodes(2, &["north", "east", "west"], &GROUPS);
    // A role that moves although nothing happened would be the machine's stall: leave it room.
    (plan.heartbeat_ms, plan.lease_ms, plan.start_wait_ms) = (40, 300, 700);
    for (group, _) in GROUPS {
        plan = plan.synthetic(group, 20_000, 100, "");
    }
    let mut site = Site::new(plan);
    site.start_witnesses();
    for node in ["west", "north", "east"] {
        site.start(node);
    }
    site
}

fn cycles_executed(site: &Site, node: &str) -> u64 {
    site.counter(node, "cycles_executed")
}

#[test]
fn every_node_of_a_ring_is_primary_for_one_group_and_backup_for_another() {
    let site = ring();
    for (group, [preferred, other]) in GROUPS {
        let (primary, backup, _) = site.await_redundant(group);
        assert_eq!((primary.as_str(), backup.as_str()), (preferred, other));
    }
    for node in ["north", "east", "west"] {
        let status = site.status(node).unwrap();
        assert_eq!(status["groups"].as_array().unwrap().len(), 2, "{status}");
        assert_eq!(
            status["links"].as_array().unwrap().len(),
            4,
            "two partners on two networks"
        );
    }
}

#[test]
fn when_a_node_of_a_ring_dies_only_its_groups_move() {
    let mut site = ring();
    let epochs = GROUPS.map(|(group, _)| site.await_redundant(group).2);
    let before = cycles_executed(&site, "east");
    site.kill("north");
    let higher = site.await_primary("east", "north-east");
    assert!(higher > epochs[0]);
    let resumed = site.await_event("east", "resumed", |event| {
        event["cause"]
            .as_str()
            .unwrap()
            .contains("received from the partner")
    });
    assert!(resumed["time_ns"].as_u64() > Some(0));
    // The group that the dead node was not in goes on as if nothing had been.
    let (primary, backup, same) = site.await_redundant("east-west");
    assert_eq!(
        (primary.as_str(), backup.as_str(), same),
        ("east", "west", epochs[1])
    );
    // The one that it was backup of goes on as well, and says that it is in simplex.
    let alone = site.group("west", "west-north").unwrap();
    assert_eq!(alone["role"], "primary", "{alone}");
    assert_eq!(alone["epoch"], epochs[2], "{alone}");
    assert_eq!(alone["writes_outputs"], true, "{alone}");
    assert_eq!(alone["redundancy"], "lost", "{alone}");
    wait_until("east executes cycles of both groups", || {
        cycles_executed(&site, "east") > before
    });
    // It returns as backup of both.
    site.start("north");
    assert_eq!(site.await_redundant("north-east").0, "east");
    let (primary, _, same) = site.await_redundant("west-north");
    assert_eq!((primary.as_str(), same), ("west", epochs[2]));
}

#[test]
fn a_switchover_of_one_group_moves_no_other() {
    let site = ring();
    let epochs = GROUPS.map(|(group, _)| site.await_redundant(group).2);
    let unnamed = site.ask("north", r#"{"command":"switchover"}"#).unwrap();
    let error = unnamed["error"].as_str().unwrap();
    assert!(
        error.contains("north-east") && error.contains("west-north"),
        "{error}"
    );
    let order = r#"{"command":"switchover","group":"west-north"}"#;
    let accepted = site.ask("north", order).unwrap();
    assert_eq!(accepted["schema"], "bumpless.accepted/1", "{accepted}");
    assert!(site.await_primary("north", "west-north") > epochs[2]);
    assert_eq!(site.await_redundant("west-north").0, "north");
    for (at, primary) in [(0, "north"), (1, "east")] {
        let (now, _, epoch) = site.await_redundant(GROUPS[at].0);
        assert_eq!((now.as_str(), epoch), (primary, epochs[at]));
    }
}
