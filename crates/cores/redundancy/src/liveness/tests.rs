use super::*;
use alloc::vec::Vec;
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

/// A link on which a heartbeat leaves and is answered each 10 ms, every tenth of full length.
struct Echoed {
    link: LinkState,
    ms: u64,
    reported: Vec<bool>,
}

impl Echoed {
    fn new() -> Self {
        let mut link = LinkState::default();
        link.set_up(true);
        Self {
            link,
            ms: 100,
            reported: Vec::new(),
        }
    }

    /// Goes on for `ms`; `short` and `full` ones pass.
    fn run(&mut self, ms: u64, (short, full): (bool, bool)) {
        let until = self.ms + ms;
        while self.ms < until {
            self.ms += 10;
            let padded = self.ms.is_multiple_of(100);
            self.link.sent(padded);
            let passes = if padded { full } else { short };
            if passes {
                let sent = at(self.ms).as_nanos();
                let mut answer = heartbeat(self.ms, sent, 0);
                answer.full_echo = if padded { sent } else { 0 };
                self.link.hear(&answer, true, at(self.ms + 1));
            }
            self.reported.extend(self.link.narrow_changed());
        }
    }

    fn outage(&mut self, ms: u64) {
        self.link.set_up(false);
        self.run(ms, (false, false));
        self.link.set_up(true);
    }
}

const ALL: (bool, bool) = (true, true);
const SHORT: (bool, bool) = (true, false);

#[test]
fn a_narrow_link_is_narrow_until_full_length_passes_whatever_happens_meanwhile() {
    let mut it = Echoed::new();
    it.run(1_000, ALL);
    it.run(1_000, SHORT);
    assert_eq!(it.reported, [true]);
    // Most of the short ones are lost, too; it is down; the partner begins anew.
    it.run(3_000, (false, false));
    it.run(1_000, SHORT);
    it.outage(5_000);
    it.run(1_000, SHORT);
    it.link.forget_session();
    it.run(1_000, SHORT);
    assert_eq!(it.reported, [true]);
    it.run(100, ALL);
    assert_eq!(it.reported, [true, false]);
}

#[test]
fn a_link_that_comes_back_narrow_is_known_as_soon_as_any_other() {
    let mut it = Echoed::new();
    it.run(1_000, ALL);
    it.outage(20_000);
    it.run(800, SHORT);
    assert_eq!(it.reported, [true]);
}

#[test]
fn a_narrow_link_is_found_however_often_it_is_down_for_a_moment() {
    let mut it = Echoed::new();
    it.run(1_000, ALL);
    for _ in 0..6 {
        it.run(500, SHORT);
        it.outage(60);
    }
    assert_eq!(it.reported, [true]);
}

#[test]
fn a_link_that_is_down_for_a_moment_again_and_again_is_not_narrow() {
    let mut it = Echoed::new();
    for _ in 0..50 {
        it.run(200, ALL);
        // What is lost until it is called down, a long one among it, and after that.
        it.run(100, (false, false));
        it.outage(60);
    }
    assert_eq!(it.reported, []);
}

#[test]
fn a_link_that_loses_everything_alike_is_not_narrow() {
    let mut it = Echoed::new();
    it.run(1_000, ALL);
    it.run(2_000, (false, false));
    it.run(100, ALL);
    it.outage(1_000);
    it.run(100, ALL);
    assert_eq!(it.reported, []);
}
