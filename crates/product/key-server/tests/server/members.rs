//! Members, and members of another group.

use bumpless_key_server::Request;
use bumpless_keys::Member;
use bumpless_net_linux::Clock;

use crate::site::{Site, latest, wait};

#[test]
fn members_are_told_of_a_roll_at_once_and_others_are_given_nothing() {
    let site = Site::new().start();
    let (mut left, mut of_left) = site.member("left.tank", "tank");
    let (mut right, mut of_right) = site.member("right.tank", "tank");
    let (mut stranger, mut of_stranger) = site.member("left.other", "tank");
    let (mut nowhere, mut of_nowhere) = site.member("left.other", "nowhere");
    wait("both have keys, the others are refused", || {
        left.drive(&mut of_left, Clock.now());
        right.drive(&mut of_right, Clock.now());
        stranger.drive(&mut of_stranger, Clock.now());
        nowhere.drive(&mut of_nowhere, Clock.now());
        let refused = |it: &Member| it.problems().any(|(_, why)| why.contains("no member"));
        latest(&left) > 0 && latest(&right) > 0 && refused(&stranger) && refused(&nowhere)
    });
    assert_eq!((latest(&stranger), latest(&nowhere)), (0, 0));
    assert_eq!(
        left.schedule().keys().len(),
        25,
        "one that seals, 24 in advance"
    );
    let place = |it: &Member| it.schedule().place(Clock.now());
    assert_eq!(place(&left), place(&right));

    let (before, pushes) = (latest(&left), left.pushes());
    site.roll("tank");
    wait("it is told unasked", || {
        left.drive(&mut of_left, Clock.now());
        left.pushes() > pushes
    });
    assert!(latest(&left) > before);
    let unknown = site
        .ask(&Request::Roll {
            group: Some("x".into()),
        })
        .unwrap();
    let error = unknown["error"].as_str().unwrap();
    assert!(error.contains("there are: tank, other"), "{error}");
}
