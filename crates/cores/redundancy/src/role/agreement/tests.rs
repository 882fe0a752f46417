use super::*;
use bumpless_base::{Duration, NodeId};
use bumpless_wire::WitnessKind;
use proptest::prelude::*;
use std::vec;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn reply(sent: Instant, granted: bool, epoch: u32) -> WitnessReply {
    WitnessReply {
        pair: 1,
        group: 2,
        node: NodeId(0),
        kind: WitnessKind::Renew,
        granted,
        old: false,
        holder: 0,
        epoch: Epoch(epoch),
        echo_sent_at: sent.as_nanos(),
        holder_silent_us: 0,
        retry_after_us: 0,
        witness_session: 9,
        token: 0,
    }
}

fn witnesses(n: u8) -> Agreement {
    let members = (0..n).map(|r| (ReferenceId(r), ReferenceKind::Witness));
    Agreement::new(members.collect(), Instant::ZERO)
}

fn answer(agreement: &mut Agreement, reference: u8, sent: Instant, now: Instant) -> bool {
    let (reference, reply) = (ReferenceId(reference), reply(sent, true, 1));
    agreement.take_reply(
        reference,
        &reply,
        true,
        Instant::ZERO,
        &Timing::default(),
        now,
    )
}

#[test]
fn requests_are_brought_forward_to_a_round_within_the_rate_limit() {
    let (mut agreement, timing) = (witnesses(3), Timing::default());
    let limit = timing.rate_limit();
    let asked = [(at(100), at(110)), (at(104), at(103)), (at(105), at(115))];
    for (reference, (requested_at, next_request)) in (0..).map(ReferenceId).zip(asked) {
        let lease = agreement.lease_mut(reference);
        (lease.requested_at, lease.next_request) = (requested_at, next_request);
    }
    agreement.ask_at_round(at(105), &timing, |_| Duration::ZERO);
    let next = [0, 1, 2].map(|r| agreement.lease(ReferenceId(r)).next_request);
    assert_eq!(next, [at(105), at(103), at(105) + limit]);
}

#[test]
fn a_lease_counts_from_when_it_was_asked_for() {
    let mut agreement = witnesses(1);
    assert!(answer(&mut agreement, 0, at(100), at(108)));
    assert_eq!(agreement.lease(ReferenceId(0)).until, at(110));
}

#[test]
fn answers_from_the_future_of_the_past_or_twice_are_not_taken() {
    let mut agreement = witnesses(1);
    assert!(!answer(&mut agreement, 0, at(101), at(100)));
    assert!(answer(&mut agreement, 0, at(100), at(102)));
    assert!(!answer(&mut agreement, 0, at(100), at(103)));
    assert!(!answer(&mut agreement, 0, at(99), at(103)));
}

#[test]
fn a_lease_asked_for_before_it_was_renounced_grants_nothing() {
    let mut agreement = witnesses(1);
    agreement.renounce();
    let (timing, reply) = (Timing::default(), reply(at(100), true, 1));
    assert!(agreement.take_reply(ReferenceId(0), &reply, true, at(100), &timing, at(101)));
    assert_eq!(agreement.lease(ReferenceId(0)).until, Instant::ZERO);
}

#[test]
fn until_the_backup_accepts_both_reference_points_are_needed() {
    let (mut agreement, timing) = (witnesses(2), Timing::default());
    answer(&mut agreement, 0, at(100), at(100));
    agreement.begin_by_promise(None, &timing, at(100));
    assert_eq!(agreement.mask(), ReferenceSet::only(ReferenceId(0)));
    // The first falls silent, the second answers.
    answer(&mut agreement, 1, at(200), at(200));
    assert_eq!(
        agreement.propose(true, &timing, at(200)),
        Some(ReferenceId(1))
    );
    let both = [ReferenceId(0), ReferenceId(1)].into_iter().collect();
    assert_eq!(agreement.mask(), both);
    assert_eq!(
        agreement.lease_until(both),
        at(110),
        "the first one's lease still counts"
    );
    let (_, version) = agreement.stated(true);
    assert!(!agreement.hear_view(Some((ReferenceId(0), version.wrapping_sub(1)))));
    assert!(agreement.hear_view(Some((ReferenceId(1), version))));
    assert_eq!(agreement.lease_until(agreement.mask()), at(210));
}

#[test]
fn a_choice_that_this_node_does_not_reach_is_not_accepted() {
    let (mut agreement, timing) = (witnesses(2), Timing::default());
    let choice = Some((ReferenceId(1), 5));
    assert!(!agreement.hear_choice(choice, &timing, at(100)));
    assert_eq!(
        agreement.needed(),
        [ReferenceId(0), ReferenceId(1)].into_iter().collect()
    );
    answer(&mut agreement, 1, at(100), at(100));
    assert!(agreement.hear_choice(choice, &timing, at(100)));
    assert_eq!(agreement.needed(), ReferenceSet::only(ReferenceId(1)));
    assert!(
        !agreement.hear_choice(choice, &timing, at(100)),
        "nothing changed"
    );
}

#[test]
fn a_witness_is_proposed_in_place_of_an_address() {
    let members = vec![
        (ReferenceId(0), ReferenceKind::Ping),
        (ReferenceId(1), ReferenceKind::Witness),
    ];
    let (mut agreement, timing) = (Agreement::new(members, Instant::ZERO), Timing::default());
    agreement.begin_by_promise(Some((ReferenceId(0), 1)), &timing, at(100));
    agreement.take_echo(ReferenceId(0), at(100), Instant::ZERO, &timing, at(100));
    assert_eq!(agreement.propose(true, &timing, at(100)), None);
    answer(&mut agreement, 1, at(100), at(100));
    assert_eq!(
        agreement.propose(true, &timing, at(100)),
        Some(ReferenceId(1))
    );
}

proptest! {
    /// Primary and backup exchange choice and view over a link that loses and delays (but, like
    /// heartbeats, never takes an older statement after a newer one). Whatever the order, what the
    /// backup needs and what the primary needs have a reference point in common.
    #[test]
    fn view_and_mask_always_have_a_member_in_common(
        steps in proptest::collection::vec((0u8..6, 0u8..3), 1..300),
    ) {
        let timing = Timing { start_wait: Duration::ZERO, ..Timing::default() };
        let (mut primary, mut backup) = (witnesses(3), witnesses(3));
        primary.begin_by_promise(None, &timing, at(1));
        let (mut to_backup, mut to_primary) = (None, None);
        for (now, (step, reference)) in (1..).zip(steps) {
            let now = at(now * 4);
            match step {
                0 => { answer(&mut primary, reference, now, now); }
                1 => { answer(&mut backup, reference, now, now); }
                2 => { primary.propose(reference != 0, &timing, now); }
                3 => to_backup = Some(primary.stated(true)),
                4 => to_primary = Some(backup.stated(false)),
                _ if reference == 0 => {
                    let choice = to_backup.map(|(r, version)| (ReferenceId(r), version));
                    backup.hear_choice(choice, &timing, now);
                }
                _ => {
                    let view = to_primary.filter(|(r, _)| *r != NO_REFERENCE);
                    primary.hear_view(view.map(|(r, version)| (ReferenceId(r), version)));
                }
            }
            let common = backup.needed().iter().any(|r| primary.mask().contains(r));
            prop_assert!(common, "{:?} {:?}", backup.needed(), primary.mask());
        }
    }
}

#[test]
fn the_version_of_a_choice_wraps_and_only_the_latest_settles_it() {
    let (mut agreement, timing) = (witnesses(2), Timing::default());
    answer(&mut agreement, 0, at(100), at(100));
    agreement.version = u16::MAX - 1;
    agreement.begin_by_promise(None, &timing, at(100));
    assert_eq!(agreement.stated(true), (0, u16::MAX));
    // Each silent for the other's turn: every proposal crosses or follows the wrap.
    let mut now = at(100);
    for round in 0u16..4 {
        now += timing.start_wait;
        let next = u8::from(round % 2 == 0);
        answer(&mut agreement, next, now, now);
        let before = agreement.stated(true);
        assert_eq!(
            agreement.propose(true, &timing, now),
            Some(ReferenceId(next))
        );
        assert_eq!(agreement.stated(true), (next, round));
        let old = Some((ReferenceId(before.0), before.1));
        assert!(!agreement.hear_view(old), "accepted too late");
        let mut backup = witnesses(2);
        answer(&mut backup, next, now, now);
        assert!(backup.hear_choice(Some((ReferenceId(next), round)), &timing, now));
        let (reference, version) = backup.stated(false);
        assert!(agreement.hear_view(Some((ReferenceId(reference), version))));
        assert!(agreement.is_settled());
    }
}
