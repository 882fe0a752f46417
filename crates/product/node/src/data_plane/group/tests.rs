use bumpless_config::Config;
use bumpless_mailbox::{ApplicationMailbox, StateLife};

use super::*;
use crate::build::build_cores;
use crate::data_plane::inbound::Cores;
use crate::wiring::Wiring;

const PAIR: &str = r#"
[pair]
name = "group"
[[network]]
name = "A"
bandwidth_mbit = 1000
[[node]]
name = "left"
addresses = { A = "10.0.1.1:4700" }
[[node]]
name = "right"
addresses = { A = "10.0.1.2:4700" }
[[group]]
name = "pair"
nodes = ["left", "right"]
without_reference = true
[[application]]
name = "only"
group = "pair"
kind = "synthetic"
channel = 1
period_ms = 10
size = "1 kB"
"#;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// The cores of node "left", its only group with two applications of different periods, and their mailboxes.
fn group_of_two() -> (Cores, GroupRuntime, [Arc<ApplicationMailbox>; 2]) {
    let config = Config::parse(PAIR, "test").expect("a sound configuration");
    let wiring = Wiring::new(&config, config.node("left").expect("it is configured"));
    let (cores, _) = build_cores(&config, &wiring, 1, at(1)).expect("a sound setup");
    let dirty = Arc::new(DirtySet::new(2));
    // The one with the longer period is not the first.
    let periods = [10, 1000].map(Duration::from_millis);
    let mailbox = |member| Arc::new(ApplicationMailbox::marking(Arc::clone(&dirty), member));
    let mailboxes = [mailbox(0), mailbox(1)];
    let member = |(mailbox, period): (&Arc<ApplicationMailbox>, Duration)| Member {
        mailbox: Arc::clone(mailbox),
        times: MemberTimes {
            period,
            hot_restart: Duration::from_secs(5),
        },
        counts: Counts::Yes,
    };
    let applications = (mailboxes.iter().zip(periods).map(member).collect(), 2);
    let (gate, peer) = (Arc::default(), PeerId(0));
    let group = GroupRuntime::new(GroupId(0), peer, gate, dirty, applications);
    (cores, group, mailboxes)
}

#[test]
fn after_a_hand_over_a_state_counts_for_the_application_that_it_is_of() {
    let (mut cores, mut group, mailboxes) = group_of_two();
    let redundancy = &mut cores.redundancy;
    mailboxes[0].note_published(0, StateLife::until(at(50)));
    mailboxes[1].note_published(0, StateLife::until(at(2000)));
    group.role_changed(Role::Primary, false, redundancy, at(2));
    mailboxes.iter().for_each(|it| it.note_decided(at(2)));
    group.role_changed(Role::Backup, true, redundancy, at(20));
    assert_eq!(group.members.freshness(MemberPlace(0)), Some(at(50)));
    assert_eq!(group.members.freshness(MemberPlace(1)), Some(at(2000)));
    group.note_received(MemberPlace(0), (at(70), at(30)), redundancy, at(30));
    assert_eq!(group.members.holding(true).fresh_until, Some(at(70)));
}

#[test]
fn a_hand_over_that_begins_in_the_turn_of_a_new_role_goes_on() {
    let (mut cores, mut group, mailboxes) = group_of_two();
    let redundancy = &mut cores.redundancy;
    group.role_changed(Role::Primary, false, redundancy, at(2));
    group.begin_hand_over();
    assert!(!group.drive_hand_over(redundancy, at(2)));
    group.publish(redundancy, at(2));
    assert!(group.handing_over && group.gate.handing_over());
    assert!(group.drive_hand_over(redundancy, at(3)));
    assert!(mailboxes.iter().all(|mailbox| mailbox.paused()));
}

#[test]
fn what_was_in_doubt_is_so_after_a_role_in_which_one_made_no_state() {
    let (mut cores, mut group, mailboxes) = group_of_two();
    let redundancy = &mut cores.redundancy;
    let surely = |group: &GroupRuntime| {
        let holding = group.members.holding(true);
        assert!(holding.some_usable_until.is_some());
        (holding.fresh_until, holding.usable_until)
    };
    for member in [0, 1].map(MemberPlace) {
        group.note_received(member, (at(70), at(10)), redundancy, at(10));
    }
    assert_eq!(surely(&group), (Some(at(70)), Some(at(5010))));
    // The first application has made a state in this role, the second has not.
    group.role_changed(Role::Primary, false, redundancy, at(20));
    mailboxes[0].note_decided(at(20));
    group.role_changed(Role::Starting, false, redundancy, at(30));
    assert_eq!(surely(&group), (None, None));
    // A state that comes from a primary is not in doubt, whatever was.
    group.note_received(MemberPlace(0), (at(90), at(35)), redundancy, at(35));
    assert_eq!(surely(&group), (None, None));
    group.note_received(MemberPlace(1), (at(90), at(35)), redundancy, at(35));
    assert_eq!(surely(&group), (Some(at(90)), Some(at(5035))));
}

#[test]
fn relief_is_asked_for_once_the_backup_could_have_told_the_same() {
    let (mut cores, mut group, mailboxes) = group_of_two();
    let redundancy = &mut cores.redundancy;
    group.role_changed(Role::Primary, false, redundancy, at(1));
    mailboxes[0].set_fit(false);
    group.collect(redundancy, at(2));
    // One device of both nodes may be silent to the partner up to a check of its later.
    group.collect(redundancy, at(2 + 300 + 100));
    assert!(group.unfit);
    assert_eq!(group.relieved_at, None);
    let due = at(2 + 300 + 100 + 21);
    group.collect(redundancy, due);
    assert_eq!(group.relieved_at, Some(due));
}
