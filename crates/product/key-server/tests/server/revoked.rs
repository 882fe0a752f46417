//! Who is revoked, or no member any more.

use std::time::Instant;

use bumpless_key_server::Request;
use bumpless_keys::Member;
use bumpless_net_linux::Clock;
use bumpless_sessions::Identities;

use crate::site::{Site, latest, wait};

/// As the thread of a node does.
fn turn(member: &mut Member, identities: &mut Identities) {
    if let Some(identity) = identities.changed(Instant::now()) {
        member.judge(&identity);
    }
    member.drive(identities, Clock.now());
}

#[test]
fn a_server_that_is_revoked_is_believed_no_more_from_the_list_on() {
    let site = Site::new().start();
    let (mut left, mut of_left) = site.member("left.tank", "tank");
    let (mut right, mut of_right) = site.member("right.tank", "tank");
    wait("both have keys", || {
        turn(&mut left, &mut of_left);
        turn(&mut right, &mut of_right);
        latest(&left) > 0 && latest(&left) == latest(&right)
    });
    let before = latest(&left);
    // One of them has heard of it.
    site.revoke("main.keys", "left.tank");
    wait("the session is given up", || {
        turn(&mut left, &mut of_left);
        let told = left.problems().any(|(_, why)| why.contains("revoked"));
        told && left.server().is_none()
    });
    site.roll("tank");
    wait("the other one has further keys", || {
        turn(&mut left, &mut of_left);
        turn(&mut right, &mut of_right);
        latest(&right) > before
    });
    assert_eq!(latest(&left), before);
}

/// Lets `right.tank` have keys, stops the server, lets something become of it, starts the server with `settings`, and waits until
/// the keys are rolled without it.
fn is_noticed_by_a_server_that_was_down(become_so: impl Fn(&Site), settings: &str) {
    let site = Site::new().start();
    let (mut left, mut of_left) = site.member("left.tank", "tank");
    let (mut right, mut of_right) = site.member("right.tank", "tank");
    wait("both have keys", || {
        turn(&mut left, &mut of_left);
        turn(&mut right, &mut of_right);
        latest(&left) > 0 && latest(&left) == latest(&right)
    });
    let (before, era) = (latest(&left), left.schedule().era());
    let site = site.stop();
    become_so(&site);
    let site = site.start_with(settings);
    wait("the keys are rolled", || {
        turn(&mut left, &mut of_left);
        turn(&mut right, &mut of_right);
        latest(&left) > before
    });
    assert_eq!((latest(&right), left.schedule().era()), (before, era));
    assert_eq!(site.ask(&Request::Status).unwrap()["groups"][0]["rolls"], 1);
}

#[test]
fn who_is_revoked_while_the_server_is_down_has_none_of_the_next_keys() {
    let both = "members = [\"left.tank\", \"right.tank\"]";
    is_noticed_by_a_server_that_was_down(|site| site.revoke("right.tank", "main.keys"), both);
}

#[test]
fn who_is_no_member_any_more_has_none_of_the_next_keys() {
    is_noticed_by_a_server_that_was_down(|_| {}, "members = [\"left.tank\"]");
}
