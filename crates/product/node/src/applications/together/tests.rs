use bumpless_base::Role;
use bumpless_mailbox::StateLife;

use super::*;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// Applications with these periods, ms, whose deadlines are half of them, and whose states expire after three.
fn together(periods: &[u64]) -> Together {
    let participant = |period: &u64| {
        let times = (ms(*period), ms(period / 2), ms(period * 3));
        Participant::new(format!("of {period}"), times, Arc::default())
    };
    Together::new(periods.iter().map(participant).collect(), ms(26))
}

#[test]
fn who_has_a_longer_period_stands_still_first() {
    let together = together(&[10, 100, 50, 100]);
    let turns = || -> Vec<_> { (0..4).map(|at| together.is_turn(at)).collect() };
    let periods: Vec<_> = together.participants.iter().map(|it| it.period).collect();
    assert_eq!(periods, [100, 100, 50, 10].map(ms));
    assert_eq!(turns(), [true, true, false, false]);
    assert!(together.rendezvous.arrive());
    assert_eq!(turns(), [true, true, false, false]);
    assert!(together.rendezvous.arrive());
    assert_eq!(turns(), [true, true, true, false]);
    assert!(together.rendezvous.arrive());
    assert_eq!(turns(), [true; 4]);
}

#[test]
fn only_who_is_to_stand_still_is_called_and_all_are_when_it_is_off() {
    let together = together(&[10, 100]);
    let called = || -> Vec<_> {
        let participants = together.participants.iter();
        participants.map(|it| it.mailbox.is_called()).collect()
    };
    together.begin();
    assert_eq!(called(), [true, false]);
    together.call_off(|| "a reason".into());
    together.call_off(|| "another".into());
    assert_eq!(called(), [true, true], "to give back what they have");
    assert!(together.is_off());
    assert_eq!(together.why_not(), "a reason");
}

#[test]
fn nobody_stands_still_longer_than_the_others_need() {
    let together = together(&[10, 100, 50]);
    let until = |number| together.until(number, at(1), None, at(0));
    // The cycles and transfers of 50 and 10 ms, and a conversion within a period of 100 ms.
    assert_eq!(until(0), at(50 + 25 + 10 + 5 + 100));
    assert_eq!(until(1), at(10 + 5 + 100));
    assert_eq!(until(2), at(100));
}

#[test]
fn a_primary_goes_on_while_its_backup_can_take_over_from_its_next_state() {
    let together = together(&[10, 100]);
    let until = |fresh, next| together.until(0, at(next), Some(at(fresh)), at(0));
    // A state with a deadline of 50 ms, and a failover of 26.
    assert_eq!(until(150, 40), at(150 - 50 - 26));
    assert_eq!(
        until(60, 40),
        at(40),
        "until its next cycle it does no harm"
    );
    assert_eq!(until(900, 40), at(10 + 5 + 100));
    // It was published 10 ms after the cycle had begun, and the next one will be.
    let later = together.until(0, at(140), Some(at(350)), at(200));
    assert_eq!(later, at(350 - 50 - 26 - 10));
}

#[test]
fn who_waits_goes_on_when_something_moves_and_when_the_time_is_over() {
    for moved in [true, false] {
        let together = together(&[10, 10]);
        assert!(together.rendezvous.arrive());
        together.participants[0].here.store(true, Ordering::Release);
        let awaited = |it| matches!(it, Stage::Gathering(_));
        let until = if moved {
            Instant::FAR_FUTURE
        } else {
            Clock.now()
        };
        assert_eq!(together.stand_still(awaited, until, &|| moved), Stage::Off);
        let why = together.why_not();
        match moved {
            true => assert!(why.contains("role"), "{why}"),
            false => assert!(why.contains("'of 10' has not ended a cycle"), "{why}"),
        }
    }
}

/// who stands still and waits for another one is not to blame.
#[test]
fn only_who_did_not_come_is_named() {
    let together = together(&[100, 50, 10]);
    for participant in &together.participants[..2] {
        participant.here.store(true, Ordering::Release);
    }
    together.call_off_late();
    let why = together.why_not();
    assert!(why.starts_with("'of 10' has not ended a cycle"), "{why}");
    for name in ["'of 100'", "'of 50'"] {
        assert!(!why.contains(name), "{name}: {why}");
    }
}

#[test]
fn of_those_who_stand_still_only_who_is_not_ready_is_named() {
    for ready in [1, 2] {
        let together = together(&[100, 10]);
        for participant in &together.participants {
            participant.here.store(true, Ordering::Release);
        }
        for participant in &together.participants[..ready] {
            participant.ready.store(true, Ordering::Release);
        }
        together.call_off_late();
        let why = together.why_not();
        let expected = match ready {
            1 => "'of 10' has not taken over its state within",
            _ => "the last of them was not ready within",
        };
        assert!(why.starts_with(expected), "{why}");
    }
}

/// what the backup lacks nobody can take over from.
#[test]
fn a_primary_whose_newest_state_is_not_at_the_backup_waits_for_nobody() {
    let gate = PublishedPermit::default();
    let mailbox = ApplicationMailbox::default();
    let expects = |backup| gate.publish(None, backup, false);
    expects(true);
    mailbox.note_published(0, StateLife::until(at(90)));
    assert_eq!(fresh_until(&gate, &mailbox), None, "it is no primary");
    gate.set_role(Role::Primary, at(1));
    mailbox.settle(0, false);
    assert_eq!(fresh_until(&gate, &mailbox), Some(Instant::ZERO));
    expects(false);
    assert_eq!(fresh_until(&gate, &mailbox), Some(at(90)), "there is none");
    expects(true);
    mailbox.settle(0, true);
    assert_eq!(fresh_until(&gate, &mailbox), Some(at(90)));
}

#[test]
fn what_is_agreed_on_is_done_however_late_it_is() {
    let together = together(&[10]);
    assert!(together.rendezvous.arrive() && together.rendezvous.agree());
    let stage = together.stand_still(|it| matches!(it, Stage::Trying(_)), at(0), &|| true);
    assert_eq!(stage, Stage::Agreed);
    together.call_off_late();
    assert!(!together.is_off());
}
