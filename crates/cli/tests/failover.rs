//! What a pair promises when a node, a witness or everything goes and comes back: the real program
//! as separate processes on loopback addresses.

mod support;

use support::plan::Plan;
use support::site::Site;
use support::{let_run, modbus, wait_until};

/// Period of the application under test.
const PERIOD_MS: u32 = 50;

/// A tank pair on two networks, everything but the nodes running. The plant takes any epoch, so
/// that every late or second writer shows.
fn site() -> Site {
    let mut site = Site::new(Plan::pair(2).tank(PERIOD_MS, ""));
    site.start_surroundings();
    site
}

fn running() -> Site {
    let mut site = site();
    site.start("left");
    site.start("right");
    site
}

/// Waits until the application of `node` has gone on from a state of `epoch` that the partner sent.
fn await_resumed(site: &Site, node: &str, epoch: u64) {
    let source = format!("of epoch {epoch}, received from the partner");
    site.await_event(node, "resumed", |event| {
        event["cause"].as_str().unwrap().contains(&source)
    });
}

#[test]
fn a_pair_becomes_redundant_whichever_node_starts_first() {
    for [first, second] in [["left", "right"], ["right", "left"]] {
        let mut site = site();
        site.start(first);
        // Long enough for the first to become primary alone.
        let epoch = site.await_primary(first, "tank");
        site.await_write_in(epoch);
        site.start(second);
        let (primary, _, same) = site.await_redundant("tank");
        assert_eq!(
            (primary.as_str(), same),
            (first, epoch),
            "the one that was there stays"
        );
        site.await_writes(3);
        site.writes().judge();
    }
}

#[test]
fn of_two_nodes_that_start_together_the_preferred_one_is_primary() {
    let mut site = site();
    site.start("right");
    site.start("left");
    let (primary, ..) = site.await_redundant("tank");
    assert_eq!(primary, "left");
}

#[test]
fn a_killed_primary_is_replaced_from_its_state_and_returns_as_backup() {
    let mut site = running();
    let (mut primary, mut backup, mut epoch) = site.await_redundant("tank");
    for _ in 0..2 {
        site.await_writes(3);
        site.kill(&primary);
        let higher = site.await_primary(&backup, "tank");
        assert!(higher > epoch, "{higher} after {epoch}");
        await_resumed(&site, &backup, epoch);
        site.await_write_in(higher);
        // The machine stays as it was: the socket and lock of the killed process are still there.
        site.start(&primary);
        let (now_primary, now_backup, now_epoch) = site.await_redundant("tank");
        assert_eq!(now_primary, backup, "the returning node takes nothing");
        (primary, backup, epoch) = (now_primary, now_backup, now_epoch);
    }
    site.await_writes(3);
    site.writes().judge();
}

#[test]
fn an_ordered_switchover_goes_through_the_socket_of_either_node() {
    let site = running();
    let (primary, backup, epoch) = site.await_redundant("tank");
    let asked = site
        .ask(&primary, r#"{"command":"switchover","group":"tank"}"#)
        .unwrap();
    assert_eq!(asked["schema"], "bumpless.accepted/1", "{asked}");
    let second = site.await_primary(&backup, "tank");
    assert!(second > epoch);
    let (now, ..) = site.await_redundant("tank");
    assert_eq!(now, backup);
    // The first node is the backup by this time, and may be asked all the same.
    let asked = site.ask(&primary, r#"{"command":"switchover"}"#).unwrap();
    assert_eq!(asked["schema"], "bumpless.accepted/1", "{asked}");
    let third = site.await_primary(&primary, "tank");
    assert!(third > second);
    site.await_write_in(third);
    await_resumed(&site, &primary, second);
    site.writes().judge();
    let cause = site.await_event(&primary, "role", |role| role["to"] == "primary")["cause"].clone();
    assert_eq!(cause, "the partner handed over");
}

#[test]
fn an_interrupted_primary_hands_over_before_it_ends() {
    let mut site = running();
    let (primary, backup, epoch) = site.await_redundant("tank");
    site.await_writes(2);
    site.interrupt(&primary);
    // It has ended; the partner must have taken over by agreement, not because it noticed silence.
    let role = site.await_event(&backup, "role", |role| role["to"] == "primary");
    assert_eq!(role["cause"], "the partner handed over", "{role}");
    assert!(role["epoch"].as_u64().unwrap() > epoch);
    assert_eq!(site.events_of(&primary, "stopping").len(), 1);
    assert!(!site.socket(&primary).exists());
    site.await_write_in(epoch + 1);
    site.writes().judge();
}

#[test]
fn an_interrupted_pair_leaves_nothing_that_hurts_the_next_start() {
    let mut site = running();
    for _ in 0..2 {
        site.await_redundant("tank");
        site.await_writes(2);
        site.interrupt_all();
        for node in ["left", "right"] {
            assert!(!site.socket(node).exists(), "{node} left its socket behind");
        }
        site.start("left");
        site.start("right");
    }
    let (.., epoch) = site.await_redundant("tank");
    site.await_write_in(epoch);
    let epochs: Vec<_> = site.writes().accepted().map(|write| write.epoch).collect();
    assert!(
        epochs.is_sorted(),
        "epochs went back over a restart of the whole pair"
    );
}

#[test]
fn a_pair_killed_as_a_whole_starts_again_above_its_last_epoch() {
    let mut site = running();
    let (.., before) = site.await_redundant("tank");
    site.await_write_in(before);
    site.kill("left");
    site.kill("right");
    site.start("right");
    site.start("left");
    let (.., after) = site.await_redundant("tank");
    assert!(after > before, "{after} is not above {before}");
}

#[test]
fn restarted_witnesses_disturb_nobody_and_serve_the_next_failover() {
    let mut site = running();
    let (primary, backup, epoch) = site.await_redundant("tank");
    for number in [0, 1] {
        site.kill_witness(number);
        let_run(150);
        site.start_witness(number);
        site.await_redundant("tank");
    }
    let (now, _, same) = site.await_redundant("tank");
    assert_eq!(
        (now, same),
        (primary.clone(), epoch),
        "somebody else became primary"
    );
    site.await_writes(3);
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    site.await_write_in(higher);
    site.writes().judge();
}

/// The number of the witness that both nodes name as agreed; `not` excludes one.
fn await_agreed(site: &Site, not: Option<usize>) -> usize {
    support::wait_for("an agreed reference point", || {
        let named = |node| {
            let group = site.group(node, "tank")?;
            let name = group["reference"].as_str()?.to_owned();
            name.strip_prefix('w')?.parse::<usize>().ok()
        };
        let (one, other) = (named("left")?, named("right")?);
        (one == other && Some(one) != not).then_some(one)
    })
}

#[test]
fn when_the_agreed_witness_goes_the_other_serves_the_next_failover() {
    let mut site = running();
    let (primary, backup, epoch) = site.await_redundant("tank");
    let agreed = await_agreed(&site, None);
    site.kill_witness(agreed);
    let other = await_agreed(&site, Some(agreed));
    assert_eq!(other, 1 - agreed);
    // Missing is said, by name.
    let cause = format!("reference point w{agreed} does not answer");
    let (now, ..) = site.await_redundancy("tank", "degraded");
    assert_eq!(now, primary, "the loss of a witness moved the role");
    let group = site.group(&primary, "tank").unwrap();
    assert_eq!(group["cause"], cause, "{group}");
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    await_resumed(&site, &backup, epoch);
    site.await_write_in(higher);
    site.writes().judge();
}

#[test]
fn a_primary_killed_while_one_witness_is_gone_is_replaced_at_once() {
    let mut site = running();
    let (primary, backup, epoch) = site.await_redundant("tank");
    let agreed = await_agreed(&site, None);
    site.kill_witness(1 - agreed);
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    await_resumed(&site, &backup, epoch);
    site.await_write_in(higher);
    site.writes().judge();
}

#[test]
fn a_primary_killed_with_its_witness_is_replaced_when_that_returns() {
    let mut site = running();
    let (primary, backup, epoch) = site.await_redundant("tank");
    let agreed = await_agreed(&site, None);
    site.kill_witness(agreed);
    site.kill(&primary);
    // Two faults at once: nobody may take over unproven, and the reason is said.
    let cause = format!("reference point w{agreed} does not answer");
    site.await_event(&backup, "cannot_take_over", |event| event["cause"] == cause);
    assert_ne!(site.group(&backup, "tank").unwrap()["role"], "primary");
    site.start_witness(agreed);
    let higher = site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    site.await_write_in(higher);
    site.writes().judge_epochs();
}

#[test]
fn a_pair_started_against_a_plant_with_a_high_epoch_goes_above_it() {
    const HIGH: u32 = 100_000;
    let mut site = Site::new(Plan::pair(2).tank(PERIOD_MS, ""));
    site.start_witnesses();
    site.start_plant(&["--check-epoch"]);
    assert_eq!(modbus::write_outputs(site.plan.plant, HIGH, 1), 0x10);
    site.start("left");
    site.start("right");
    site.await_write_in(u64::from(HIGH) + 1);
    let (.., epoch) = site.await_redundant("tank");
    assert!(epoch > u64::from(HIGH), "{epoch}");
    site.await_writes(3);
}

#[test]
fn a_primary_that_was_frozen_writes_nothing_more_and_returns_as_backup() {
    let mut site = Site::new(Plan::pair(2).tank(PERIOD_MS, ""));
    site.start_witnesses();
    site.start_plant(&["--check-epoch"]);
    site.start("left");
    site.start("right");
    let (primary, backup, epoch) = site.await_redundant("tank");
    site.await_write_in(epoch);
    site.node(&primary).signal(libc::SIGSTOP);
    let higher = site.await_primary(&backup, "tank");
    site.await_write_in(higher);
    let frozen_writes = || {
        site.writes()
            .0
            .iter()
            .filter(|write| write.epoch == epoch)
            .count()
    };
    let before = frozen_writes();
    site.node(&primary).signal(libc::SIGCONT);
    wait_until("the frozen one is backup", || {
        site.group(&primary, "tank")
            .is_some_and(|group| group["role"] == "backup")
    });
    let (now, _, same) = site.await_redundant("tank");
    assert_eq!(
        (now, same),
        (backup, higher),
        "waking up disturbed the new primary"
    );
    site.await_writes(3);
    let after = site
        .writes()
        .0
        .iter()
        .filter(|write| write.epoch == epoch)
        .count();
    assert_eq!(
        after, before,
        "the frozen primary wrote after it had been replaced"
    );
    site.writes().judge();
}
