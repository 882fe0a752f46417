//! What a server keeps on disk, and what it is without it.

use std::fs;

use bumpless_key_server::Request;
use bumpless_keys::Member;
use bumpless_net_linux::Clock;
use serde_json::Value;

use crate::site::{Site, latest, wait};

#[test]
fn what_cannot_be_kept_is_neither_given_nor_sealed_with_until_it_can_be() {
    let site = Site::new().start();
    let (mut left, mut of_left) = site.member("left.tank", "tank");
    let (mut right, mut of_right) = site.member("right.tank", "tank");
    wait("one has keys", || {
        left.drive(&mut of_left, Clock.now());
        latest(&left) > 0
    });
    let before = latest(&left);
    // Nothing can take the place of a folder that is not empty.
    let (state, aside) = (site.path("main.keys.state"), site.path("aside"));
    fs::rename(&state, &aside).unwrap();
    fs::create_dir_all(state.join("in the way")).unwrap();
    site.roll("tank");
    wait("who has none yet is told why, and status says it", || {
        left.drive(&mut of_left, Clock.now());
        right.drive(&mut of_right, Clock.now());
        let status = site.ask(&Request::Status).unwrap();
        let problem = status["problem"].as_str().unwrap_or_default();
        let told = right.problems().any(|(_, why)| why.contains("no keys"));
        assert_eq!(latest(&right), 0);
        told && problem.contains("main.keys.state")
    });
    assert_eq!(latest(&left), before, "none is given that is not kept");
    assert_eq!(left.problems().count(), 0, "who has keys goes on");
    fs::remove_dir_all(&state).unwrap();
    wait("the roll is made up for", || {
        left.drive(&mut of_left, Clock.now());
        right.drive(&mut of_right, Clock.now());
        latest(&left) > before && latest(&right) == latest(&left)
    });
    let status = site.ask(&Request::Status).unwrap();
    assert!(status["problem"].is_null() && state.is_file(), "{status}");
}

#[test]
fn a_server_with_an_earlier_copy_of_its_state_is_refused_until_its_keys_begin_anew() {
    let site = Site::new().start();
    let (mut left, mut of_left) = site.member("left.tank", "tank");
    wait("a member has keys", || {
        left.drive(&mut of_left, Clock.now());
        latest(&left) > 0
    });
    let (state, copy) = (site.path("main.keys.state"), site.path("copy"));
    let early = fs::read(&state).unwrap();
    fs::write(&copy, &early).unwrap();
    let before = latest(&left);
    site.roll("tank");
    wait("it has others", || {
        left.drive(&mut of_left, Clock.now());
        latest(&left) > before
    });
    let known: Vec<_> = left.schedule().keys().iter().map(|it| it.place).collect();
    let site = site.stop();
    // As who brings back a copy would: over the file, whose mode stays.
    fs::write(&state, &early).unwrap();
    let site = site.start();
    wait("it is refused, with the remedy", || {
        left.drive(&mut of_left, Clock.now());
        left.problems()
            .any(|(_, why)| why.contains("move its state away"))
    });
    let held = left.schedule().keys().iter().filter(|it| !it.withdrawn);
    let held: Vec<_> = held.map(|it| it.place).collect();
    assert!(held.iter().all(|place| known.contains(place)), "{held:?}");
    assert_eq!(held.last(), known.last());
    // It gives a number anew.
    site.roll("tank");
    wait("that is another key than the one here", || {
        left.drive(&mut of_left, Clock.now());
        left.problems()
            .any(|(_, why)| why.contains("is another one"))
    });
    let era = left.schedule().era();
    let site = site.stop();
    fs::rename(&state, site.path("moved away")).unwrap();
    let _site = site.start();
    wait("keys of another era are taken", || {
        left.drive(&mut of_left, Clock.now());
        left.schedule().era() > era
    });
}

#[test]
fn a_server_that_does_not_know_how_long_it_was_away_goes_on_where_its_members_are() {
    let settings = "members = [\"left.tank\"]\nlifetime_s = 1\nin_advance = 60";
    let site = Site::new().start_with(settings);
    let (mut left, mut of_left) = site.member("left.tank", "tank");
    wait("a member has keys", || {
        left.drive(&mut of_left, Clock.now());
        latest(&left) > 0
    });
    let site = site.stop();
    let state = site.path("main.keys.state");
    let mut file: Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    // The computer has been started anew, and with it the clock by which the file was kept.
    file["boot"] = "another".into();
    fs::write(&state, file.to_string()).unwrap();
    let number = |member: &Member| {
        member
            .schedule()
            .place(Clock.now())
            .map_or(0, |it| it.token)
    };
    wait("the member seals with a later key", || {
        left.drive(&mut of_left, Clock.now());
        number(&left) > 1
    });
    let (later, down) = (number(&left), left.answered());
    let site = site.start_with(settings);
    wait("the server has answered", || {
        left.drive(&mut of_left, Clock.now());
        left.answered() > down
    });
    let status = site.ask(&Request::Status).unwrap();
    let here = status["groups"][0]["number"].as_u64();
    assert!(here >= Some(later), "{here:?} {later}");
}
