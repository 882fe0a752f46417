//! Keys of groups: which seals and which open when, at servers and at members.

#[path = "group/timetable.rs"]
mod timetable;

use bumpless_base::{Duration, Instant};
use bumpless_secure::RingSuite;
use bumpless_secure::group::{
    FUTURE_MAX, Grant, GrantError, GroupKey, Issuer, KEYS_MAX, Numbers, Place, Schedule, Terms,
};
use zeroize::Zeroizing;

const START: u64 = 1_000_000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(START + ms)
}

fn terms(lifetime_ms: u64, future: usize) -> Terms {
    Terms {
        lifetime: Duration::from_millis(lifetime_ms),
        future,
    }
}

fn era(era: u64) -> Numbers {
    Numbers {
        era,
        ..Numbers::default()
    }
}

/// Keys that are all different, with identifiers that are all different.
#[derive(Default)]
struct Drawer {
    drawn: u32,
    ids: Vec<u16>,
}

impl Drawer {
    fn draw(&mut self) -> Option<GroupKey> {
        loop {
            self.drawn += 1;
            let mut bytes = Zeroizing::new([7; 32]);
            bytes[..4].copy_from_slice(&self.drawn.to_be_bytes());
            let key = GroupKey::new::<RingSuite>(bytes);
            if !self.ids.contains(&key.id()) {
                self.ids.push(key.id());
                return Some(key);
            }
        }
    }
}

/// A server that begins at 0, and has given its first keys.
fn server(terms: Terms, drawer: &mut Drawer) -> Issuer {
    let mut issuer = Issuer::new(terms, Schedule::default(), era(1));
    assert!(issuer.refill(&mut || drawer.draw(), at(0)));
    issuer
}

fn member(issuer: &Issuer, ms: u64) -> Schedule {
    let mut member = Schedule::default();
    let grant = issuer.grant(at(ms)).unwrap();
    member.take(&grant, at(ms), at(ms)).unwrap();
    member
}

fn token(schedule: &Schedule, ms: u64) -> Option<u64> {
    schedule.place(at(ms)).map(|place| place.token)
}

fn opens(schedule: &Schedule, ms: u64) -> Vec<u64> {
    let ring = schedule.ring(at(ms));
    ring.iter().map(|key| key.place.token).collect()
}

#[test]
fn members_go_on_without_a_server_until_the_stated_end_and_not_longer() {
    let issuer = server(terms(1000, 3), &mut Drawer::default());
    let mut member = member(&issuer, 0);
    // The first key is waited for by those who have others. It and three more last for a second each.
    let end = 3000 + 4 * 1000;
    assert_eq!(member.ends_at(), Some(at(end)));
    for ms in (0..end).step_by(10) {
        member.handle_timeout(at(ms));
        let expected = 1 + ms.saturating_sub(3000) / 1000;
        assert_eq!(token(&member, ms), Some(expected), "{ms}");
        assert_eq!(opens(&member, ms).first(), Some(&expected), "{ms}");
    }
    for ms in [end, end + 1, end + 100_000] {
        member.handle_timeout(at(ms));
        assert_eq!((token(&member, ms), opens(&member, ms)), (None, vec![]));
    }
}

#[test]
fn a_key_is_opened_with_from_when_it_is_known_until_a_lifetime_after_it_was_sealed_with() {
    let issuer = server(terms(1000, 3), &mut Drawer::default());
    let mut member = member(&issuer, 0);
    assert_eq!(opens(&member, 0), [1, 2, 3, 4]);
    member.handle_timeout(at(4000));
    assert_eq!(opens(&member, 4000), [2, 3, 4, 1]);
    member.handle_timeout(at(4999));
    assert_eq!(opens(&member, 4999), [2, 3, 4, 1]);
    member.handle_timeout(at(5000));
    assert_eq!(opens(&member, 5000), [3, 4, 2]);
}

#[test]
fn who_lives_long_has_long_overlaps_but_no_longer_than_half_a_minute() {
    let day = 86_400_000;
    let issuer = server(terms(day, 2), &mut Drawer::default());
    let mut member = member(&issuer, 0);
    let rolled = 3000 + day;
    for (ms, expected) in [(rolled + 29_999, true), (rolled + 30_000, false)] {
        member.handle_timeout(at(ms));
        assert_eq!(opens(&member, ms).contains(&1), expected, "{ms}");
    }
}

#[test]
fn a_roll_is_told_before_it_is_sealed_with_and_what_is_replaced_opens_nothing_after_it() {
    let mut drawer = Drawer::default();
    let mut issuer = server(terms(60_000, 2), &mut drawer);
    let mut told = member(&issuer, 0);
    let mut untold = told.clone();
    told.handle_timeout(at(10_000));
    untold.handle_timeout(at(10_000));
    assert!(issuer.roll(&mut || drawer.draw(), at(10_000)));
    let grant = issuer.grant(at(10_000)).unwrap();
    told.take(&grant, at(10_000), at(10_000)).unwrap();
    let fresh = member(&issuer, 10_000);
    // Both open what the other seals until the moment comes.
    assert_eq!(token(&told, 10_499), Some(1));
    assert_eq!(token(&fresh, 10_499), Some(1));
    assert!(opens(&told, 10_999).contains(&2), "a moment longer");
    for schedule in [&mut told, &mut fresh.clone()] {
        schedule.handle_timeout(at(10_500));
        assert_eq!(token(schedule, 10_500), Some(4));
        assert!(opens(schedule, 10_500).contains(&1));
    }
    // Whoever was not told has nothing in common with them within a second.
    told.handle_timeout(at(11_000));
    untold.handle_timeout(at(11_000));
    assert_eq!(opens(&told, 11_000), [4, 5]);
    assert_eq!(opens(&untold, 11_000), [1, 2, 3]);
    assert!(!opens(&fresh, 11_000).contains(&1));
}

#[test]
fn a_member_never_goes_back_to_an_earlier_key() {
    let issuer = server(terms(1000, 4), &mut Drawer::default());
    let early = issuer.grant(at(0)).unwrap();
    let mut member = member(&issuer, 0);
    member.handle_timeout(at(5100));
    assert_eq!(token(&member, 5100), Some(3));
    // A server says what held long ago.
    member.take(&early, at(5100), at(5100)).unwrap();
    assert_eq!(token(&member, 5100), Some(3));
    assert!(opens(&member, 5100).contains(&1) && opens(&member, 5100).contains(&5));
}

#[test]
fn a_server_that_was_down_goes_on_where_it_would_be_or_where_its_members_are() {
    let mut drawer = Drawer::default();
    let issuer = server(terms(1000, 9), &mut drawer);
    let (stored, numbers) = (issuer.grant(at(0)).unwrap(), issuer.numbers());
    let terms = issuer.terms();
    let mut member = member(&issuer, 0);
    member.handle_timeout(at(6500));
    let known = Issuer::restore(terms, &stored, numbers, Some(at(0)), at(6500)).unwrap();
    assert_eq!(known.schedule().place(at(6500)), member.place(at(6500)));
    // The computer was started anew, and its clock with it.
    let mut unknown = Issuer::restore(terms, &stored, numbers, None, at(6500)).unwrap();
    unknown.refill(&mut || drawer.draw(), at(6500));
    assert_eq!(token(unknown.schedule(), 6500), Some(1));
    let place = member.place(at(6500)).unwrap();
    assert!(unknown.catch_up(place, at(6600)));
    assert!(!unknown.catch_up(place, at(6600)), "it is there");
    assert_eq!(unknown.schedule().place(at(6600)), Some(place));
    let last = unknown.numbers().last;
    assert!(unknown.refill(&mut || drawer.draw(), at(6600)));
    assert_eq!(unknown.numbers().last, last + 3, "numbers go on");
    // Later nobody rushes it through its keys.
    let ahead = unknown.schedule().keys().last().unwrap().place;
    assert!(!unknown.catch_up(ahead, at(6600 + 60_000)));
    let (mut sure, invented) = (known, Place { era: 1, token: 999 });
    assert!(!sure.catch_up(place, at(6600)) && !unknown.catch_up(invented, at(6600)));
}

#[test]
fn a_follower_that_leads_goes_on_without_a_gap_and_who_led_before_is_believed_no_more() {
    let mut drawer = Drawer::default();
    let leader = server(terms(1000, 3), &mut drawer);
    let (mut member, follower) = (member(&leader, 0), member(&leader, 0));
    let before = opens(&member, 3500);
    let mut heir = Issuer::new(leader.terms(), follower, era(2));
    heir.refill(&mut || drawer.draw(), at(3500));
    let grant = heir.grant(at(3500)).unwrap();
    member.take(&grant, at(3500), at(3500)).unwrap();
    assert_eq!(token(&member, 3500), Some(before[0]));
    assert!(before.iter().all(|it| opens(&member, 3500).contains(it)));
    let late = leader.grant(at(3600)).unwrap();
    let refused = member.take(&late, at(3600), at(3600));
    assert_eq!(refused, Err(GrantError::Earlier { said: 1, here: 2 }));
    assert_eq!(member.era(), 2);
}

#[test]
fn a_server_with_an_earlier_copy_of_its_state_is_believed_no_more() {
    let mut drawer = Drawer::default();
    let mut issuer = server(terms(60_000, 2), &mut drawer);
    let (stored, numbers) = (issuer.grant(at(0)).unwrap(), issuer.numbers());
    let mut copy = Issuer::restore(issuer.terms(), &stored, numbers, Some(at(0)), at(0)).unwrap();
    issuer.roll(&mut || drawer.draw(), at(1000));
    let mut member = member(&issuer, 1000);
    let known = member.clone();
    let behind = copy.grant(at(2000)).unwrap();
    let refused = member.take(&behind, at(2000), at(2000));
    assert_eq!(refused, Err(GrantError::Behind { said: 3, here: 5 }));
    // It gives the numbers anew, to other keys.
    copy.roll(&mut || drawer.draw(), at(2000));
    let anew = copy.grant(at(2000)).unwrap();
    let refused = member.take(&anew, at(2000), at(2000));
    let place = Place { era: 1, token: 4 };
    assert_eq!(refused, Err(GrantError::OtherKey(place)));
    assert!(known.keys().ends_with(member.keys()) && member.keys().len() == 2);
    // In an era of its own it is believed.
    let mut new = Issuer::new(issuer.terms(), Schedule::default(), era(2));
    new.refill(&mut || drawer.draw(), at(2000));
    let grant = new.grant(at(2000)).unwrap();
    assert_eq!(member.take(&grant, at(2000), at(2000)), Ok(()));
}

#[test]
fn a_server_that_has_lost_everything_lets_members_come_one_after_the_other() {
    let mut drawer = Drawer::default();
    let lost = server(terms(60_000, 2), &mut drawer);
    let (mut one, mut other) = (member(&lost, 0), member(&lost, 0));
    let mut new = Issuer::new(lost.terms(), Schedule::default(), era(9));
    new.refill(&mut || drawer.draw(), at(10_000));
    for schedule in [&mut one, &mut other] {
        schedule.handle_timeout(at(10_000));
    }
    let take = |schedule: &mut Schedule, ms| {
        schedule
            .take(&new.grant(at(ms)).unwrap(), at(ms), at(ms))
            .unwrap();
    };
    take(&mut one, 10_000);
    for ms in (10_000..15_000).step_by(50) {
        if ms == 12_900 {
            take(&mut other, ms);
        }
        for (one, other) in [(&one, &other), (&other, &one)] {
            let id = one.sealing(at(ms)).unwrap().key.id();
            let ring = other.ring(at(ms));
            assert!(ring.iter().any(|key| key.key.id() == id), "{ms}");
        }
        one.handle_timeout(at(ms));
        other.handle_timeout(at(ms));
    }
    assert_eq!(one.era(), 9);
    assert_eq!(one.place(at(14_000)).unwrap().era, 9);
}

#[test]
fn what_contradicts_itself_is_refused_and_changes_nothing() {
    let mut drawer = Drawer::default();
    let issuer = server(terms(1000, 3), &mut drawer);
    let (good, known) = (issuer.grant(at(0)).unwrap(), member(&issuer, 0));
    let bend = |bend: &dyn Fn(&mut Grant)| {
        let mut grant = good.clone();
        bend(&mut grant);
        let mut member = known.clone();
        let taken = member.take(&grant, at(10), at(10));
        assert!(taken.is_err() && member.keys() == known.keys(), "{grant:?}");
        taken.unwrap_err()
    };
    let far = Duration::MAX;
    for malformed in [
        &(|it: &mut Grant| it.keys.clear()) as &dyn Fn(&mut Grant),
        &|it| it.keys.reverse(),
        &|it| it.keys[1].place = it.keys[0].place,
        &|it| it.keys[1].place.era = 0,
        &|it| it.keys[1].seals_in = Duration::ZERO,
        &|it| it.keys[1].seals_in = it.keys[1].seals_for,
        &|it| it.keys[1].seals_for = it.keys[1].opens_for + Duration::from_nanos(1),
        &|it| it.keys[3].opens_for = far,
        &|it| it.withdrawn_for = far,
        &|it| {
            for token in 5..100 {
                let mut key = it.keys[3].clone();
                key.place.token = token;
                key.key = GroupKey::new::<RingSuite>(Zeroizing::new([token as u8; 32]));
                it.keys.push(key);
            }
        },
    ] {
        assert_eq!(bend(malformed), GrantError::Malformed);
    }
    let id = good.keys[0].key.id();
    let twice = bend(&|it| it.keys[2].key = it.keys[0].key.clone());
    assert_eq!(twice, GrantError::SameIdentifier(id));
}

#[test]
fn no_more_keys_are_given_than_are_taken() {
    let mut drawer = Drawer::default();
    let mut issuer = server(terms(1000, usize::MAX), &mut drawer);
    assert_eq!(issuer.schedule().keys().len(), FUTURE_MAX + 1);
    for ms in (0..20_000).step_by(250) {
        issuer.refill(&mut || drawer.draw(), at(ms));
        if ms % 5000 == 2500 {
            issuer.roll(&mut || drawer.draw(), at(ms));
        }
        let grant = issuer.grant(at(ms)).unwrap();
        assert!(grant.keys.len() <= KEYS_MAX, "{}", grant.keys.len());
        assert!(Schedule::default().take(&grant, at(ms), at(ms)).is_ok());
    }
}

#[test]
fn without_new_keys_the_old_ones_stay_as_they_are() {
    let mut drawer = Drawer::default();
    let mut issuer = server(terms(1000, 2), &mut drawer);
    let before = issuer.schedule().clone();
    assert!(!issuer.roll(&mut || None, at(100)));
    assert!(!issuer.refill(&mut || None, at(100)));
    assert_eq!(issuer.schedule().keys(), before.keys());
}

#[test]
fn no_key_is_shown() {
    let issuer = server(terms(1000, 2), &mut Drawer::default());
    let shown = format!("{issuer:?} {:?}", issuer.grant(at(0)));
    let bytes = issuer.schedule().keys()[0].key.bytes().clone();
    let (list, hex) = (
        format!("{:?}", &bytes[..8]),
        bytes.map(|it| format!("{it:02x}")).concat(),
    );
    assert!(
        !shown.contains(list.trim_matches(['[', ']'])) && !shown.contains(&hex),
        "{shown}"
    );
}
