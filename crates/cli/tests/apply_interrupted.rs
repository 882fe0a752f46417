//! A change of a running pair that is interrupted: both nodes end with the same configuration, the old one
//! or the next; the real program as separate processes on loopback addresses.

mod support;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use support::change::{BOTH, Pair, application, three};
use support::plan::Plan;
use support::process::{bumpless, outcome};
use support::site::Site;
use support::{let_run, wait_for, wait_until};

#[test]
fn a_change_survives_a_restart_and_a_failover() {
    let mut pair = Pair::running(&three());
    let (primary, ..) = pair.site.await_redundant("tank");
    let new = [three()[0].clone(), application("comes", 4, 100, "")];
    pair.change(&new);
    let after = pair.await_settled();
    pair.await_cycles("comes", 3);
    pair.site.kill(&primary);
    let backup = BOTH.into_iter().find(|node| *node != primary).unwrap();
    pair.site.await_primary(backup, "tank");
    let before = pair.written("comes").len();
    pair.await_cycles("comes", 3);
    let written = pair.written("comes");
    assert!(
        written[before] >= written[before - 1],
        "{written:?}: the state is gone"
    );
    pair.site.start(&primary);
    pair.site.await_redundant("tank");
    assert_eq!(pair.await_settled(), after);
    assert_eq!(pair.names(&primary), ["stays", "comes"]);
}

#[test]
fn ctrl_c_and_the_end_of_the_wait_withdraw_what_one_node_has_prepared() {
    let pair = Pair::running(&three());
    let (fingerprint, text) = (pair.in_force(), pair.file());
    let new = pair.write("next.toml", &three()[..2]);
    for node in BOTH {
        let begun = pair.begin(&[&new, "--node", node], &format!("apply-{node}.said"));
        pair.await_prepared(node);
        assert_eq!(pair.drafts().len(), 1);
        let config = pair.site.config();
        let (said, ..) = outcome(&bumpless(&[
            "status",
            config.to_str().unwrap(),
            "--node",
            node,
        ]));
        let change = "change of the configuration: prepared here; waits until the partner has it";
        assert!(said.contains(change), "{said}");
        begun.signal(libc::SIGINT);
        let said = pair.site.path(&format!("apply-{node}.said"));
        assert_eq!(begun.wait().code(), Some(1));
        let said = fs::read_to_string(said).unwrap();
        assert!(said.contains("withdrawn"), "{said}");
        assert_eq!(pair.await_settled(), fingerprint);
        pair.assert_unchanged(&fingerprint, &text);

        let (said, error, status) = pair.apply(&[&new, "--node", node, "--wait", "1"]);
        assert_eq!(status, Some(1), "{said}{error}");
        assert!(error.contains("after 1 s"), "{error}");
        assert_eq!(pair.await_settled(), fingerprint);
        pair.assert_unchanged(&fingerprint, &text);
    }
    pair.judge("goes");
}

#[test]
fn what_apply_says_after_withdrawing_is_what_is_in_force() {
    let pair = Pair::running(&three());
    for round in 0..3 {
        let before = pair.in_force();
        let guest = application(&format!("guest{round}"), 10 + round, 100, "");
        let new = pair.write("next.toml", &[three()[0].clone(), guest]);
        let (said, error, status) = pair.apply(&[&new, "--wait", "0"]);
        let after = BOTH.map(|node| pair.configuration(node).unwrap().0);
        let made = after.iter().all(|it| *it != before);
        assert_eq!(status, Some(i32::from(!made)), "{said}{error}");
        let words = match made {
            true => "in force on left and right",
            false => "the old configuration is in force on 'left' and 'right'",
        };
        assert!(format!("{said}{error}").contains(words), "{said}{error}");
        pair.await_settled();
    }
}

#[test]
fn a_change_under_way_keeps_others_out_and_can_be_withdrawn_by_anybody() {
    let pair = Pair::running(&three());
    let (fingerprint, text) = (pair.in_force(), pair.file());
    let new = pair.write("next.toml", &three()[..2]);
    let begun = pair.begin(&[&new, "--node", "left"], "apply.said");
    pair.await_prepared("left");
    let other = pair.write("other.toml", &three()[..1]);
    for nodes in [&["--node", "left"][..], &[]] {
        let (said, error, status) = pair.apply(&[&[other.as_str()], nodes].concat());
        assert_eq!(status, Some(1), "{said}{error}");
        assert!(error.contains("another change is prepared"), "{error}");
    }
    assert!(
        pair.configuration("left").unwrap().1.is_some(),
        "it goes on"
    );
    let (said, error, status) = pair.apply(&["--withdraw", "--node", "left", "--json"]);
    assert_eq!(status, Some(0), "{said}{error}");
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told["schema"], "bumpless.apply/1");
    assert_eq!(told["withdrawn"], serde_json::json!(["left"]));
    // Who asked for it is told.
    assert_eq!(begun.wait().code(), Some(1));
    let said = fs::read_to_string(pair.site.path("apply.said")).unwrap();
    assert!(said.contains("has given the change up"), "{said}");
    assert_eq!(pair.await_settled(), fingerprint);
    pair.assert_unchanged(&fingerprint, &text);
    // Whichever has it.
    let request = format!("{{\"command\":\"apply\",\"file\":\"{new}\"}}");
    assert_eq!(
        pair.site.ask("right", &request).unwrap()["accepted"],
        "apply"
    );
    pair.await_prepared("right");
    wait_until("it can be given up", || {
        pair.apply(&["--withdraw"]).2 == Some(0)
    });
    assert_eq!(pair.await_settled(), fingerprint);
    pair.assert_unchanged(&fingerprint, &text);
}

#[test]
fn a_change_ordered_without_the_partner_waits_and_is_then_withdrawn() {
    let mut pair = Pair::running(&three());
    let (fingerprint, text) = (pair.in_force(), pair.file());
    pair.site.interrupt("right");
    pair.site.await_primary("left", "tank");
    let new = pair.write("next.toml", &three()[..2]);
    let (said, error, status) = pair.apply(&[&new, "--wait", "1"]);
    assert_eq!(status, Some(1), "{said}{error}");
    assert!(error.contains("The other node must run"), "{error}");
    wait_until("it is withdrawn", || {
        pair.configuration("left") == Some((fingerprint.clone(), None))
    });
    assert_eq!(pair.drafts(), Vec::<PathBuf>::new());
    pair.site.start("right");
    pair.site.await_redundant("tank");
    pair.assert_unchanged(&fingerprint, &text);
}

/// A pair with the tank, whose plant sees each write.
fn with_tank() -> Pair {
    let mut plan = Plan::pair(2).tank(50, "");
    plan.applications.push(application("goes", 2, 50, ""));
    Pair::start(plan, false)
}

#[test]
fn a_node_killed_while_it_is_prepared_has_it_prepared_when_it_is_back() {
    for node in BOTH {
        let mut pair = with_tank();
        let before = pair.in_force();
        let tank = pair.site.plan.applications[0].clone();
        let new = pair.write("next.toml", &[tank, application("comes", 3, 50, "")]);
        // Nobody who waits, so that nobody withdraws.
        let request = format!("{{\"command\":\"apply\",\"file\":\"{new}\"}}");
        let accepted = pair.site.ask(node, &request).unwrap();
        assert_eq!(accepted["schema"], "bumpless.accepted/1", "{accepted}");
        pair.await_prepared(node);
        pair.site.kill(node);
        pair.site.start(node);
        pair.site.await_redundant("tank");
        pair.await_prepared(node);
        assert_eq!(pair.configuration(node).unwrap().0, before);
        // Whoever asks for the same again has both go on with it.
        let (said, error, status) = pair.apply(&[&new]);
        assert_eq!(status, Some(0), "{said}{error}");
        assert_ne!(pair.await_settled(), before);
        pair.site.await_redundant("tank");
        assert_eq!(pair.names(node), ["tank", "comes"]);
        assert_eq!(pair.drafts(), Vec::<PathBuf>::new());
        pair.site.await_writes(3);
        pair.site.writes().judge();
    }
}

/// What happens to a node in the middle of a change.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// It is killed, and started again.
    Killed,
    /// It ends in order, and is started again.
    Ended,
    /// It stands still for longer than its partner waits.
    Frozen,
}

impl Blow {
    fn strike(self, site: &mut Site, node: &str) {
        match self {
            Self::Killed => site.kill(node),
            Self::Ended => site.interrupt(node),
            Self::Frozen => {
                site.node(node).signal(libc::SIGSTOP);
                let_run(400);
                return site.node(node).signal(libc::SIGCONT);
            }
        }
        site.start(node);
    }
}

/// Strikes `node` so many milliseconds after a change to `applications` was asked for; both must end alike.
fn struck_in_a_change(
    pair: &mut Pair,
    (blow, node, delay_ms): (Blow, &str, u64),
    applications: &[String],
) {
    let (before, text) = (pair.in_force(), pair.file());
    let new = pair.write("next.toml", applications);
    let begun = pair.begin(&[&new, "--wait", "5"], "apply.said");
    let_run(delay_ms);
    blow.strike(&mut pair.site, node);
    let status = begun.wait();
    pair.site.await_redundant("tank");
    let after = wait_for("an end of the change", || {
        if !pair.drafts().is_empty() {
            // It resumed what the other one was never asked for.
            pair.apply(&["--withdraw", "--node", node]);
        }
        let [left, right] = BOTH.map(|node| pair.configuration(node));
        let (left, right) = (left?, right?);
        let ended = left == right && left.1.is_none() && pair.drafts().is_empty();
        ended.then_some(left.0)
    });
    let made = after != before;
    let said = fs::read_to_string(pair.site.path("apply.said")).unwrap();
    fs::remove_file(pair.site.path("apply.said")).unwrap();
    println!("{node} {blow:?} after {delay_ms} ms, made: {made}; {said}");
    let next = fs::read_to_string(&new).unwrap();
    assert_eq!(pair.file(), if made { next } else { text });
    assert!(made || !status.success(), "what was done is undone");
    assert!(
        !made || !said.contains("given the change up"),
        "it was made"
    );
    pair.site.await_writes(2);
    pair.site.writes().judge();
}

/// Strikes each node at `moments`, so many milliseconds apart.
fn struck_at_every_moment(blow: Blow, moments: u64, apart_ms: u64) {
    let mut pair = with_tank();
    let tank = pair.site.plan.applications[0].clone();
    for round in 0..2 * moments {
        let guest = format!("guest{round}");
        let guest = application(&guest, 10 + round as u32, 50, "");
        let node = BOTH[(round % 2) as usize];
        let strike = (blow, node, round / 2 * apart_ms);
        struck_in_a_change(&mut pair, strike, &[tank.clone(), guest]);
    }
}

// The moments are spread over the time that a change takes, and some more.

#[test]
fn after_a_kill_in_a_change_both_nodes_have_the_same_configuration() {
    struck_at_every_moment(Blow::Killed, 8, 9);
}

#[test]
fn whichever_node_ends_in_a_change_both_end_with_the_same_configuration() {
    struck_at_every_moment(Blow::Ended, 4, 15);
}

#[test]
fn after_a_freeze_in_a_change_both_nodes_have_the_same_configuration() {
    struck_at_every_moment(Blow::Frozen, 4, 15);
}
