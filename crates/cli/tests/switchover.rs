//! Orders to switch over that meet each other.

mod support;

use std::process::{Command, Stdio};
use std::thread;

use support::plan::Plan;
use support::process::{BUMPLESS, outcome};
use support::site::Site;
use support::wait_until;

fn running() -> Site {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site
}

#[test]
fn a_node_that_is_to_be_primary_and_is_changes_nothing() {
    let site = running();
    let before = site.await_redundant("tank");
    let order = format!(r#"{{"command":"switchover","to":"{}"}}"#, before.0);
    for node in ["left", "right"] {
        let reply = site.ask(node, &order).unwrap();
        assert_eq!(reply["schema"], "bumpless.accepted/1", "{reply}");
    }
    site.await_writes(3);
    assert_eq!(site.await_redundant("tank"), before);
    let strange = r#"{"command":"switchover","to":"lfet"}"#;
    let reply = site.ask("left", strange).unwrap();
    assert!(
        reply["error"].as_str().unwrap().contains("left, right"),
        "{reply}"
    );
}

#[test]
fn the_same_order_repeated_while_served_and_afterwards_is_one_switchover() {
    let site = running();
    let (primary, backup, epoch) = site.await_redundant("tank");
    let order = format!(r#"{{"command":"switchover","to":"{backup}"}}"#);
    for _ in 0..20 {
        let reply = site.ask(&primary, &order).unwrap();
        // In the moment between the roles there is nobody to take orders.
        let error = reply["error"].as_str().unwrap_or_default();
        assert!(
            error.is_empty() || error.contains("neither primary nor backup"),
            "{reply}"
        );
    }
    wait_until("the roles have changed", || {
        site.await_redundant("tank").0 == backup
    });
    site.await_writes(3);
    // Each change of roles takes the next epoch.
    assert_eq!(site.await_redundant("tank"), (backup, primary, epoch + 1));
    site.writes().judge();
}

#[test]
fn two_nodes_ordered_at_once_switch_over_as_often_as_they_say() {
    let site = running();
    let config = site.config();
    let switch = |node: &str| {
        let mut command = Command::new(BUMPLESS);
        command.args(["switchover", config.to_str().unwrap(), "--node", node]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.unwrap()
    };
    for _ in 0..5 {
        let (primary, backup, epoch) = site.await_redundant("tank");
        let both = ["left", "right"].map(switch);
        let told = both.map(|child| thread::spawn(|| outcome(&child.wait_with_output().unwrap())));
        let told = told.map(|one| one.join().unwrap());
        let succeeded: Vec<_> = told.iter().filter(|one| one.2 == Some(0)).collect();
        assert!(!succeeded.is_empty(), "both failed: {told:?}");
        let first = format!("'{primary}' went from primary to backup");
        let second = format!("'{backup}' went from backup to primary");
        let whole = site.await_redundant("tank");
        // Each change of roles takes the next epoch.
        match whole.2 - epoch {
            // One wish; or an order that found the roles on their way was refused, since it would have been another.
            1 => {
                assert_eq!(whole.0, backup);
                for (said, why, _) in &told {
                    let came_true = said.contains(&first) || said.contains(&second);
                    assert!(came_true || why.contains("no switchover: "), "{told:?}");
                }
            }
            // One order found the roles as the other one had left them: two wishes, and whoever did not see the
            // first come true is told that it was undone.
            2 => {
                assert_eq!(whole.0, primary);
                for (said, why, _) in &told {
                    assert!(
                        said.contains("went from") || why.contains("changed back"),
                        "{told:?}"
                    );
                }
            }
            changed => panic!("{changed} changes: {told:?}"),
        }
    }
    site.writes().judge();
}
