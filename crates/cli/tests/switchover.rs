//! Orders to switch over that meet each other.

mod support;

use support::plan::Plan;
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
fn the_same_wish_given_again_while_it_is_carried_out_and_afterwards_is_one_switchover() {
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
