use super::*;
use WitnessKind::{Acquire, AcquireLone, Observe, Release, Renew, RenewSimplex, Yield};
use proptest::prelude::*;
use std::vec::Vec;

const LEASE: u64 = 10_000;

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn request(node: u8, kind: WitnessKind, epoch: u32) -> WitnessRequest {
    WitnessRequest {
        pair: 1,
        group: 2,
        node: NodeId(node),
        candidates: 2,
        session: 100 + u64::from(node),
        kind,
        epoch: Epoch(epoch),
        lease_us: LEASE as u32,
        sent_at: 0,
        token: 6,
        witness_session: 0,
    }
}

/// A witness whose quiet period of 20 ms and 20 us is over at 100 ms.
fn witness() -> Witness {
    let setup = WitnessSetup {
        max_lease: Duration::from_millis(20),
        drift_ppm: 1000,
        capacity: 2,
    };
    Witness::new(setup, 1, Instant::ZERO).unwrap()
}

/// Sent at once and to this incarnation of the witness.
fn ask(witness: &mut Witness, us: u64, request: WitnessRequest) -> WitnessReply {
    let request = WitnessRequest {
        sent_at: at(us).as_nanos(),
        witness_session: witness.session(),
        ..request
    };
    witness.handle_request(&request, at(us)).unwrap()
}

/// A witness that has leased the role to node 0 in epoch 2 and heard at 100 ms that all is well.
fn held() -> Witness {
    let mut w = witness();
    assert!(ask(&mut w, 99_000, request(0, AcquireLone, 2)).granted);
    assert!(ask(&mut w, 100_000, request(0, Renew, 2)).granted);
    w
}

#[test]
fn a_role_is_leased_to_one_node_until_its_lease_and_the_drift_have_passed() {
    let mut w = held();
    let refused = ask(&mut w, 101_000, request(1, Acquire, 3));
    assert!(!refused.granted);
    assert_eq!(
        (refused.holder, refused.epoch, refused.holder_silent_us),
        (0, Epoch(2), 1000)
    );
    assert_eq!(
        refused.retry_after_us, 9_011,
        "10 ms and 1000 ppm after 100 ms, and a grain"
    );
    assert!(!ask(&mut w, 110_009, request(1, Acquire, 3)).granted);
    assert!(ask(&mut w, 110_010, request(1, Acquire, 3)).granted);
    assert!(
        !ask(&mut w, 110_020, request(0, Renew, 2)).granted,
        "its time is over"
    );
}

#[test]
fn renewing_extends_the_promise() {
    let mut w = held();
    for us in (102_000..200_000).step_by(2_000) {
        assert!(ask(&mut w, us, request(0, Renew, 2)).granted);
        assert!(!ask(&mut w, us + 1000, request(1, Acquire, 9)).granted);
    }
}

#[test]
fn after_its_own_start_it_grants_nobody_a_role_and_believes_who_renews() {
    let mut w = witness();
    assert!(!ask(&mut w, 10_000, request(1, Acquire, 3)).granted);
    assert!(ask(&mut w, 11_000, request(0, Renew, 2)).granted);
    assert!(!ask(&mut w, 20_900, request(1, Acquire, 3)).granted);
    assert!(!ask(&mut w, 20_900, request(1, Renew, 3)).granted);
    assert!(ask(&mut w, 21_011, request(1, Acquire, 3)).granted);
}

#[test]
fn a_released_role_is_granted_at_once_whatever_late_renewal_comes() {
    let mut w = held();
    assert!(
        !ask(&mut w, 100_500, request(1, Release, 2)).granted,
        "not its to give"
    );
    assert!(ask(&mut w, 101_000, request(0, Release, 2)).granted);
    assert!(!ask(&mut w, 101_100, request(0, Renew, 2)).granted);
    assert!(ask(&mut w, 101_200, request(1, Renew, 3)).granted);
}

#[test]
fn no_epoch_is_granted_to_two_incarnations() {
    let mut w = held();
    let reborn = WitnessRequest {
        session: 555,
        ..request(0, Acquire, 2)
    };
    let refused = ask(&mut w, 200_000, reborn);
    assert!(!refused.granted);
    assert_eq!(refused.epoch, Epoch(2));
    assert!(
        ask(
            &mut w,
            200_000,
            WitnessRequest {
                epoch: Epoch(4),
                ..reborn
            }
        )
        .granted
    );
}

#[test]
fn leases_that_are_too_long_or_empty_are_refused_and_counted() {
    let mut w = witness();
    for lease_us in [0, 20_021, u32::MAX] {
        let long = WitnessRequest {
            lease_us,
            ..request(0, Acquire, 2)
        };
        assert!(!ask(&mut w, 100_000, long).granted);
    }
    assert_eq!(w.groups(), 0);
    assert!(ask(&mut w, 100_000, request(0, AcquireLone, 2)).granted);
    let too_long = WitnessRequest {
        lease_us: u32::MAX,
        ..request(0, Renew, 2)
    };
    assert!(!ask(&mut w, 101_000, too_long).granted);
    // Of no length, as what asks for no lease is.
    let observes = WitnessRequest {
        lease_us: 0,
        ..request(0, Observe, 2)
    };
    assert!(ask(&mut w, 101_000, observes).granted);
    assert_eq!(w.counters().get(Counter::WitnessLeaseRefused), 4);
}

#[test]
fn a_full_table_refuses_new_groups_counts_it_and_serves_the_old_ones() {
    let mut w = witness();
    for group in 0..10 {
        let r = WitnessRequest {
            group,
            ..request(0, AcquireLone, 2)
        };
        assert_eq!(ask(&mut w, 100_000, r).granted, group < 2);
    }
    assert_eq!(w.groups(), 2);
    assert_eq!(w.counters().get(Counter::WitnessTableFull), 8);
    let old = WitnessRequest {
        group: 1,
        ..request(0, Renew, 2)
    };
    assert!(ask(&mut w, 101_000, old).granted);
}

#[test]
fn observing_changes_nothing() {
    let mut w = witness();
    assert!(ask(&mut w, 100_000, request(1, Observe, 99)).granted);
    assert_eq!(w.groups(), 0);
    let mut w = held();
    let seen = ask(&mut w, 101_000, request(1, Observe, 99));
    assert_eq!((seen.holder, seen.epoch), (0, Epoch(2)));
    assert_eq!(
        ask(&mut w, 120_000, request(1, Observe, 99)).holder,
        NO_HOLDER
    );
}

/// As [`ask`], but sent at `sent` to the incarnation `session`, and late.
fn ask_late(w: &mut Witness, us: u64, sent: u64, session: u64, r: WitnessRequest) -> WitnessReply {
    let request = WitnessRequest {
        sent_at: at(sent).as_nanos(),
        witness_session: session,
        ..r
    };
    w.handle_request(&request, at(us)).unwrap()
}

#[test]
fn while_its_holder_is_in_simplex_the_role_goes_to_a_lone_start_only() {
    let mut w = held();
    let reply = ask(&mut w, 101_000, request(0, RenewSimplex, 2));
    assert!(reply.granted && reply.old);
    // Long after the promise has run out.
    let refused = ask(&mut w, 500_000, request(1, Acquire, 3));
    assert!(!refused.granted && refused.old && refused.holder == NO_HOLDER);
    assert!(ask(&mut w, 500_100, request(1, Observe, 3)).old);
    let granted = ask(&mut w, 500_200, request(1, AcquireLone, 3));
    assert!(granted.granted && granted.old, "what others hold stays old");
    assert!(!ask(&mut w, 600_000, request(0, Acquire, 4)).granted);
    ask(&mut w, 600_100, request(1, Renew, 3));
    assert!(ask(&mut w, 700_000, request(0, Acquire, 4)).granted);
}

/// Whether another node than the holder hears that what it has is old.
fn is_marked(w: &mut Witness, us: u64) -> bool {
    ask(w, us, request(1, Observe, 0)).old
}

#[test]
fn the_holder_that_lapsed_gets_its_role_back_and_the_mark_stays() {
    let mut w = held();
    ask(&mut w, 101_000, request(0, RenewSimplex, 2));
    let reply = ask(&mut w, 300_000, request(0, Acquire, 2));
    assert!(
        reply.granted && !reply.old,
        "what the holder has is the newest"
    );
    assert!(is_marked(&mut w, 300_050));
    ask(&mut w, 300_100, request(0, Renew, 2));
    assert!(ask(&mut w, 400_000, request(0, Acquire, 2)).granted);
    assert!(!is_marked(&mut w, 400_100));
}

#[test]
fn a_holder_that_yields_stays_on_record_and_can_be_replaced_at_once() {
    let mut w = held();
    ask(&mut w, 101_000, request(0, RenewSimplex, 2));
    assert!(!ask(&mut w, 101_100, request(1, Acquire, 3)).granted);
    assert!(ask(&mut w, 101_200, request(0, Yield, 2)).granted);
    assert!(!is_marked(&mut w, 101_300));
    let mut back = w.clone();
    assert!(
        ask(&mut back, 101_400, request(0, Acquire, 2)).granted,
        "its own epoch"
    );
    assert!(ask(&mut w, 101_400, request(1, Acquire, 3)).granted);
    assert!(!ask(&mut w, 101_500, request(0, Acquire, 2)).granted);
    assert!(
        !ask(&mut w, 101_600, request(0, Yield, 2)).granted,
        "the role is another's"
    );
}

#[test]
fn a_yield_that_was_overtaken_neither_ends_a_promise_nor_clears_the_mark() {
    let mut w = held();
    let session = w.session();
    ask(&mut w, 105_000, request(0, RenewSimplex, 2));
    let late = ask_late(&mut w, 106_000, 104_000, session, request(0, Yield, 2));
    assert!(!late.granted && is_marked(&mut w, 106_100));
    assert!(
        !ask(&mut w, 106_200, request(1, AcquireLone, 3)).granted,
        "promised"
    );
}

#[test]
fn a_request_that_was_overtaken_neither_sets_nor_clears_the_mark() {
    let mut w = held();
    let session = w.session();
    ask(&mut w, 105_000, request(0, RenewSimplex, 2));
    ask_late(&mut w, 106_000, 104_000, session, request(0, Renew, 2));
    assert!(is_marked(&mut w, 106_100));
    ask(&mut w, 107_000, request(0, Renew, 2));
    assert!(!is_marked(&mut w, 107_100));
    ask_late(
        &mut w,
        108_000,
        105_000,
        session,
        request(0, RenewSimplex, 2),
    );
    assert!(!is_marked(&mut w, 108_100));
}

#[test]
fn a_restarted_witness_believes_only_what_was_sent_since() {
    let mut w = witness();
    assert!(is_marked(&mut w, 30_000));
    assert!(
        !ask(&mut w, 31_000, request(1, Acquire, 3)).granted,
        "nothing is known"
    );
    let earlier = w.session() ^ 1;
    ask_late(&mut w, 32_000, 9_000, earlier, request(0, Renew, 2));
    assert!(is_marked(&mut w, 32_100));
    assert!(ask_late(&mut w, 33_000, 32_500, earlier, request(0, Renew, 2)).granted);
    assert!(
        !ask(&mut w, 60_000, request(1, Acquire, 3)).granted,
        "still nothing"
    );
    ask(&mut w, 61_000, request(0, Renew, 2));
    assert!(!is_marked(&mut w, 61_100));
    assert!(ask(&mut w, 90_000, request(1, Acquire, 3)).granted);
}

#[test]
fn a_release_says_that_all_is_safe_and_a_late_one_ends_no_later_tenure() {
    let mut w = held();
    let session = w.session();
    ask(&mut w, 101_000, request(0, RenewSimplex, 2));
    assert!(!ask(&mut w, 102_000, request(0, Release, 3)).old);
    assert!(ask(&mut w, 103_000, request(1, Acquire, 3)).granted);
    ask(&mut w, 104_000, request(1, Release, 4));
    assert!(ask(&mut w, 105_000, request(0, Renew, 4)).granted);
    let late = ask_late(&mut w, 106_000, 102_500, session, request(0, Release, 3));
    assert!(!late.granted);
    assert!(
        !ask(&mut w, 107_000, request(1, Acquire, 5)).granted,
        "node 0 holds it"
    );
}

#[test]
fn a_lease_as_long_as_the_longest_may_cover_the_drift_of_the_node() {
    let mut w = witness();
    let asked = |lease_us| WitnessRequest {
        lease_us,
        ..request(0, AcquireLone, 2)
    };
    assert!(!ask(&mut w, 100_000, asked(20_021)).granted);
    assert!(ask(&mut w, 100_000, asked(20_020)).granted);
    // 20.02 ms and a thousandth, so the quiet period lasts as long.
    assert!(!ask(&mut w, 120_040, request(1, AcquireLone, 3)).granted);
    assert!(ask(&mut w, 120_041, request(1, AcquireLone, 3)).granted);
    let mut young = witness();
    assert!(!ask(&mut young, 20_040, asked(20_020)).granted);
    assert!(ask(&mut young, 20_041, asked(20_020)).granted);
}

proptest! {
    /// The slow twin keeps every promise ever made as an interval; no two of different
    /// incarnations overlap unless the first was given back, and recorded epochs only grow.
    #[test]
    fn promises_of_different_holders_never_overlap(
        steps in proptest::collection::vec((0u8..3, 0u8..6, 0u32..12, 0u64..6_000), 0..300),
    ) {
        let mut w = witness();
        let (mut now, mut highest) = (21_000, Epoch(0));
        let mut promises: Vec<(u8, u64)> = Vec::new();
        for (node, kind, epoch, later) in steps {
            now += later;
            let kind = [Renew, Acquire, Release, Observe, RenewSimplex, AcquireLone][usize::from(kind)];
            let reply = ask(&mut w, now, request(node, kind, epoch));
            prop_assert!(reply.epoch >= highest);
            highest = reply.epoch;
            match kind {
                kind if kind.is_lease() && reply.granted => {
                    prop_assert!(promises.iter().all(|&(n, end)| n == node || end <= now));
                    prop_assert_eq!(reply.epoch, Epoch(epoch));
                    promises.push((node, now + LEASE));
                }
                Release if reply.granted => promises.retain(|&(n, _)| n != node),
                _ => {}
            }
        }
    }
}
