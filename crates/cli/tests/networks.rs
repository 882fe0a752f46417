//! What a pair promises about its networks: any number of them, of either IP version, absent, cut and
//! mended, with either distribution and either wire version.

mod support;

use bumpless_testing::skip;
use support::addresses::{absent, ipv6_ports};
use support::hosts::{Hosts, pair_on_hosts, with_hosts};
use support::plan::Plan;
use support::site::Site;
use support::wait_until;

/// Size of a state of many packets.
const LARGE: u64 = 200_000;

fn start(plan: Plan) -> Site {
    let mut site = Site::new(plan);
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site
}

/// Kills the primary; the backup goes on from its state.
fn fail_over(site: &mut Site, level: &str) {
    let (primary, backup, epoch) = site.await_redundancy("tank", level);
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    let resumed = site.await_event(&backup, "resumed", |_| true);
    let cause = resumed["cause"].as_str().unwrap();
    assert!(cause.contains("received from the partner"), "{cause}");
    site.start(&primary);
    site.await_redundancy("tank", level);
}

fn link_is_up(site: &Site, node: &str, network: &str) -> bool {
    let status = site.status(node).unwrap();
    let links = status["links"].as_array().unwrap();
    let link = links
        .iter()
        .find(|link| link["network"] == network)
        .unwrap();
    link["up"] == true
}

fn one_dead_link_does_not_stop_the_other() {
    for (dead, alive) in [(1, 0), (0, 1)] {
        let mut plan = Plan::pair(2).tank(50, "");
        // One network never existed for the right node: its card is not there.
        let nowhere = absent(2);
        plan.nodes[1].addresses[dead].1 = nowhere;
        let [dead, alive] = [dead, alive].map(|network| plan.networks[network].clone());
        let mut site = start(plan);
        let (primary, ..) = site.await_redundancy("tank", "degraded");
        let group = site.group(&primary, "tank").unwrap();
        let cause = format!("network {dead} to the partner is down");
        assert_eq!(group["cause"], cause, "{group}");
        for node in ["left", "right"] {
            assert!(link_is_up(&site, node, &alive) && !link_is_up(&site, node, &dead));
        }
        let weaknesses = site.status("right").unwrap()["weaknesses"].to_string();
        assert!(
            weaknesses.contains(&nowhere.ip().to_string()),
            "{weaknesses}"
        );
        site.await_writes(5);
        fail_over(&mut site, "degraded");
        site.await_writes(5);
        site.writes().judge();
    }
}

fn a_pair_on_one_network_alone_fails_over_and_says_that_it_is_weak() {
    let mut site = start(Plan::pair(1).tank(50, ""));
    fail_over(&mut site, "ok");
    let weaknesses = site.status("left").unwrap()["weaknesses"].to_string();
    assert!(weaknesses.contains("network"), "{weaknesses}");
    site.writes().judge();
}

fn of_three_networks_any_one_suffices() {
    let mut plan = Plan::pair(3).tank(50, "");
    plan.nodes[0].addresses[0].1 = absent(3);
    plan.nodes[1].addresses[1].1 = absent(4);
    let mut site = start(plan);
    fail_over(&mut site, "degraded");
    assert!(link_is_up(&site, "left", "C") && link_is_up(&site, "right", "C"));
    site.await_writes(3);
    site.writes().judge();
}

fn three_networks_are_used_together() {
    let site = start(Plan::pair(3).tank(50, ""));
    let (primary, backup, _) = site.await_redundant("tank");
    site.await_writes(5);
    for node in [&primary, &backup] {
        for network in ["A", "B", "C"] {
            assert!(link_is_up(&site, node, network), "{node} {network}");
        }
    }
    // Each state goes out on each of the three.
    let status = site.status(&primary).unwrap();
    let counters = &status["counters"];
    let (first, safe) = (
        counters["packets_first"].as_u64(),
        counters["states_safe"].as_u64(),
    );
    assert!(first.unwrap() >= 3 * safe.unwrap(), "{counters}");
}

fn a_pair_on_ipv6_fails_over() {
    let Some(ports) = ipv6_ports(6) else {
        skip("needs IPv6 on the loopback interface");
    };
    let mut plan = Plan::pair(2).tank(50, "");
    let mut ports = ports.into_iter();
    for node in &mut plan.nodes {
        node.addresses
            .iter_mut()
            .for_each(|(_, address)| *address = ports.next().unwrap());
    }
    plan.witnesses
        .iter_mut()
        .for_each(|(_, address)| *address = ports.next().unwrap());
    let mut site = start(plan);
    fail_over(&mut site, "ok");
    site.await_writes(3);
    site.writes().judge();
}

fn spread_states_share_the_networks_and_survive_a_failover() {
    let plan = Plan::pair(2).synthetic("tank", LARGE, 200, "distribution = \"spread\"");
    let mut site = start(plan);
    let (primary, ..) = site.await_redundant("tank");
    wait_until("ten states are safe", || {
        site.counter(&primary, "states_safe") >= 10
    });
    let status = site.status(&primary).unwrap();
    let count = |name: &str| status["counters"][name].as_u64().unwrap() as f64;
    // With every packet on one network only, a state takes its own number of packets.
    let per_state = count("packets_first") / count("states_published");
    let packets = (LARGE as f64 / 1403.0).ceil();
    assert!(
        per_state < packets * 1.2,
        "{per_state} packets for a state of {packets}"
    );
    fail_over(&mut site, "ok");
}

fn replicated_states_go_over_every_network_and_the_first_copy_counts() {
    let plan = Plan::pair(2).synthetic("tank", LARGE, 200, "distribution = \"replicate\"");
    let mut site = start(plan);
    let (primary, backup, _) = site.await_redundant("tank");
    wait_until("ten states are safe", || {
        site.counter(&primary, "states_safe") >= 10
    });
    wait_until("ten states came", || {
        site.counter(&backup, "states_delivered") >= 10
    });
    let copies = ["discard_duplicate", "discard_old_cycle"].map(|name| site.counter(&backup, name));
    assert!(
        copies.iter().sum::<u64>() > 0,
        "no second copy came: {copies:?}"
    );
    fail_over(&mut site, "ok");
}

fn wire_version_1_carries_states_and_a_failover_and_is_called_weak() {
    let mut plan = Plan::pair(2).tank(50, "").synthetic("tank", LARGE, 200, "");
    plan.transfer = "wire_version = 1".into();
    let mut site = start(plan);
    fail_over(&mut site, "ok");
    let weaknesses = site.status("left").unwrap()["weaknesses"].to_string();
    assert!(weaknesses.contains("ersion 1"), "{weaknesses}");
    site.await_writes(3);
    site.writes().judge();
}

/// A pair on hosts of its own; the plant takes any epoch, so that only the lease keeps order.
fn start_on_hosts(hosts: Hosts, period_ms: u32, field: &str) -> Site {
    let mut site = Site::new(pair_on_hosts().tank(period_ms, field)).on(hosts);
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site
}

fn cutting_one_network_fails_no_transfer_and_makes_none_late() {
    with_hosts(|hosts| {
        // A deadline of 150 ms: what is late by that much is not the machine's doing.
        let site = start_on_hosts(hosts, 300, "");
        let (primary, backup, epoch) = site.await_redundant("tank");
        for network in ["A", "B"] {
            site.await_writes(3);
            site.hosts().cut(network);
            site.await_status("the network is down", &primary, |status| {
                status["groups"][0]["redundancy"] == "degraded"
            });
            site.await_writes(4);
            site.hosts().mend(network);
            site.await_redundant("tank");
        }
        let status = site.status(&primary).unwrap();
        assert_eq!(status["applications"][0]["transfers_failed"], 0, "{status}");
        assert_eq!(status["groups"][0]["epoch"], epoch, "the role moved");
        assert_eq!(site.events_of(&primary, "behind").len(), 0);
        assert_eq!(site.events_of(&backup, "overdue").len(), 0);
        site.writes().judge();
    });
}

fn why_the_kernel_does_not_send_on_a_network_is_told_until_it_does() {
    with_hosts(|hosts| {
        let mut plan = pair_on_hosts().tank(50, "");
        plan = plan.synthetic("tank", LARGE, 200, "commit = \"async\"");
        let mut site = Site::new(plan).on(hosts);
        site.start_surroundings();
        site.start("left");
        site.start("right");
        let (primary, ..) = site.await_redundant("tank");
        let told = |status: &serde_json::Value| {
            let weaknesses = status["weaknesses"].as_array().unwrap().iter();
            let mut told = weaknesses.filter_map(|text| text.as_str());
            told.any(|text| text.contains("network 'B'") && text.contains("check the mtu setting"))
        };
        site.hosts().shorten_b(&primary, 1280);
        let status = site.await_status("it tells of the MTU", &primary, told);
        let link = &status["links"][1];
        assert!(link["send_failures"].as_u64() > Some(0), "{link}");
        assert!(
            link["last_send_failure"]["cause"]
                .as_str()
                .unwrap()
                .contains("MTU"),
            "{link}"
        );
        assert_eq!(status["links"][0]["send_failures"], 0);
        let config = site.config();
        let arguments = ["status", config.to_str().unwrap(), "--node", &primary];
        let (words, ..) = site
            .hosts()
            .at(&primary, || support::process::said(&arguments));
        assert!(words.contains("not taken by the kernel"), "{words}");
        site.hosts().shorten_b(&primary, 1500);
        site.await_status("it is mended", &primary, |status| !told(status));
    });
}

fn two_writers_after_link_loss() {
    with_hosts(|hosts| {
        let mut site = start_on_hosts(hosts, 50, "");
        for _ in 0..3 {
            let (.., epoch) = site.await_redundant("tank");
            site.await_writes(3);
            // Both nodes live, both reach witnesses and plant, and neither hears the other.
            site.hosts().cut("A");
            site.hosts().cut("B");
            for node in ["left", "right"] {
                site.await_status("the partner is silent", node, |status| {
                    status["groups"][0]["partner_heard"] == false
                });
            }
            site.await_writes(20);
            let writing = ["left", "right"].map(|node| {
                let group = site.group(node, "tank").unwrap();
                group["role"] == "primary" && group["writes_outputs"] == true
            });
            assert_ne!(writing, [true, true], "two primaries after epoch {epoch}");
            site.hosts().mend("A");
            site.hosts().mend("B");
            site.await_redundant("tank");
        }
        site.writes().judge_epochs();
        site.interrupt_all();
    });
}

fn an_isolated_primary_stops_writing_before_the_backup_starts() {
    with_hosts(|hosts| {
        let site = start_on_hosts(hosts, 50, "");
        let (primary, backup, _) = site.await_redundant("tank");
        site.await_writes(3);
        // The primary still reaches the plant, but nobody who could tell it that it may write.
        site.hosts().part_from_witnesses(&primary);
        site.hosts().cut("A");
        site.hosts().cut("B");
        let higher = site.await_primary(&backup, "tank");
        site.await_write_in(higher);
        site.await_status("it holds its outputs", &primary, |status| {
            status["groups"][0]["writes_outputs"] == false
        });
        site.hosts().join_with_witnesses(&primary);
        site.hosts().mend("A");
        site.hosts().mend("B");
        let (now, ..) = site.await_redundant("tank");
        assert_eq!(now, backup);
        // Cycles that it still wrote by its lease are unknown to the backup (F-15).
        site.writes().judge_epochs();
    });
}

/// The primary loses its way to the plant, the backup has it.
fn is_relieved(hosts: Hosts, on_failure: &str) {
    // Only a plant out of reach takes this long to answer; one on a busy machine does not.
    let field = format!("on_failure = \"{on_failure}\"\ntimeout_ms = 150");
    let mut site = Site::new(pair_on_hosts().tank(300, &field)).on(hosts);
    site.start_witnesses();
    // Its network keeps what was on its way, and delivers it when it is mended.
    site.start_plant(&["--check-epoch"]);
    site.start("left");
    site.start("right");
    let (primary, backup, epoch) = site.await_redundant("tank");
    site.await_writes(3);
    site.hosts().part_from_plant(&primary);
    let higher = site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    site.await_write_in(higher);
    let role = site.await_event(&backup, "role", |role| role["to"] == "primary");
    assert_eq!(role["cause"], "the partner handed over", "{role}");
    site.hosts().join_with_plant(&primary);
    assert_eq!(site.await_redundant("tank").0, backup);
    let writes = site.writes();
    writes.judge();
    // The one request that had no answer yet; nothing was asked for after it.
    let refused = writes.0.iter().filter(|write| !write.accepted);
    assert!(refused.count() <= 1, "{writes:?}");
}

fn a_primary_that_cannot_reach_the_plant_is_relieved_by_the_backup() {
    with_hosts(|hosts| is_relieved(hosts, "hold"));
}

fn a_primary_that_stopped_for_its_plant_is_relieved_by_the_backup() {
    with_hosts(|hosts| is_relieved(hosts, "fail"));
}

fn two_nodes_of_the_same_name_both_say_so_and_neither_writes() {
    with_hosts(|hosts| {
        let mut site = start_on_hosts(hosts, 50, "");
        site.await_redundant("tank");
        site.await_writes(3);
        // A second machine has been set up as the left one, and each hears the right one.
        let text = std::fs::read_to_string(site.config()).unwrap();
        let config = site.path("twin.toml");
        std::fs::write(&config, text.replace("left.sock", "twin.sock")).unwrap();
        site.hosts().put_twin_on_b();
        site.start_as("twin", "left", &config);
        for node in ["left", "twin"] {
            site.await_event(node, "duplicate_node", |_| true);
            site.await_status("it does not write", node, |status| {
                let group = &status["groups"][0];
                let cause = group["cause"].as_str().unwrap();
                group["writes_outputs"] == false && cause.contains("uses this node's name")
            });
        }
        site.interrupt("twin");
        site.hosts().put_left_on_b();
        let (.., epoch) = site.await_redundant("tank");
        site.await_write_in(epoch);
        site.writes().judge_epochs();
    });
}

fn a_primary_that_is_heard_by_the_witness_but_deaf_to_it_is_replaced() {
    with_hosts(|hosts| {
        let site = start_on_hosts(hosts, 50, "");
        let (primary, backup, _) = site.await_redundant("tank");
        site.await_writes(3);
        site.hosts().keep_from_hearing_witnesses(&primary);
        site.hosts().cut("A");
        site.hosts().cut("B");
        let higher = site.await_primary(&backup, "tank");
        site.await_write_in(higher);
        site.writes().judge_epochs();
    });
}

bumpless_testing::tests![
    one_dead_link_does_not_stop_the_other,
    a_pair_on_one_network_alone_fails_over_and_says_that_it_is_weak,
    of_three_networks_any_one_suffices,
    three_networks_are_used_together,
    a_pair_on_ipv6_fails_over,
    spread_states_share_the_networks_and_survive_a_failover,
    replicated_states_go_over_every_network_and_the_first_copy_counts,
    wire_version_1_carries_states_and_a_failover_and_is_called_weak,
    cutting_one_network_fails_no_transfer_and_makes_none_late,
    why_the_kernel_does_not_send_on_a_network_is_told_until_it_does,
    two_writers_after_link_loss,
    an_isolated_primary_stops_writing_before_the_backup_starts,
    a_primary_that_cannot_reach_the_plant_is_relieved_by_the_backup,
    a_primary_that_stopped_for_its_plant_is_relieved_by_the_backup,
    two_nodes_of_the_same_name_both_say_so_and_neither_writes,
    a_primary_that_is_heard_by_the_witness_but_deaf_to_it_is_replaced,
];
