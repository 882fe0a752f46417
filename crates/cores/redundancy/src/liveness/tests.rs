use super::*;
use bumpless_base::{LinkId, NodeId};

fn heartbeat(sent_at: u64, echo_sent_at: u64, echo_delay: u32) -> HeartbeatHeader {
    HeartbeatHeader {
        pair: 1,
        fingerprint: 2,
        from: NodeId(0),
        to: NodeId(1),
        link: LinkId(0),
        session: 3,
        challenge: 4,
        echo_session: 5,
        echo_challenge: 6,
        sent_at,
        echo_sent_at,
        echo_delay,
        lease_echo: 0,
        next: 0,
        full_echo: 0,
        padded: false,
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn a_link_works_only_in_both_directions() {
    let timing = Timing::default();
    let mut link = LinkState::default();
    assert!(!link.works(&timing, at(100)));
    assert!(link.hear(&heartbeat(1, 0, 0), true, at(100)));
    assert!(!link.works(&timing, at(100)), "it does not hear us");
    link.hear(&heartbeat(2, at(101).as_nanos(), 0), true, at(102));
    assert!(link.works(&timing, at(108)) && !link.works(&timing, at(109)));
}

#[test]
fn a_partner_that_hears_us_no_more_is_noticed_although_it_is_heard() {
    let timing = Timing::default();
    let mut link = LinkState::default();
    for ms in 100..200 {
        link.hear(&heartbeat(ms, at(99).as_nanos(), 0), true, at(ms));
    }
    assert!(!link.works(&timing, at(199)));
}

#[test]
fn copies_and_stragglers_are_no_sign_of_life() {
    let timing = Timing::default();
    let mut link = LinkState::default();
    link.hear(&heartbeat(7, at(99).as_nanos(), 0), true, at(100));
    for ms in 101..110 {
        assert!(!link.hear(&heartbeat(7, at(ms).as_nanos(), 0), true, at(ms)));
        assert!(!link.hear(&heartbeat(6, at(ms).as_nanos(), 0), true, at(ms)));
    }
    assert!(!link.works(&timing, at(110)));
}

#[test]
fn an_echo_from_the_future_is_not_believed() {
    let mut link = LinkState::default();
    link.hear(&heartbeat(1, at(500).as_nanos(), 0), true, at(100));
    assert!(!link.works(&Timing::default(), at(100)));
    assert_eq!(link.round_trip(), None);
}

#[test]
fn the_round_trip_leaves_out_what_the_partner_held() {
    let mut link = LinkState::default();
    for n in 1..100 {
        link.hear(
            &heartbeat(n, at(10 * n).as_nanos(), 1_500),
            true,
            at(10 * n + 2),
        );
    }
    assert_eq!(link.round_trip(), Some(Duration::from_micros(500)));
}
