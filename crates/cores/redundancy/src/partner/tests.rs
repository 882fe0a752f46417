use super::*;
use crate::setup::Setup;
use alloc::vec;
use bumpless_wire::{MAX_HEARTBEAT_LEN, Packet, parse};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn setup(node: u8) -> Setup {
    Setup {
        pair: 1,
        fingerprint: 2,
        node: NodeId(node),
        timing: Timing::default(),
        partners: vec![PartnerSetup {
            node: NodeId(1 - node),
            links: LinkSet::first(2),
        }],
        references: vec![],
        groups: vec![],
    }
}

/// A node's view of its only partner.
struct End {
    setup: Setup,
    partner: Partner,
    change: Change,
    /// It has a role.
    established: bool,
    out: Outbox,
}

impl End {
    fn new(node: u8) -> Self {
        let (setup, own) = (setup(node), 100 + u64::from(node));
        let partner = Partner::new(PeerId(0), setup.partners[0], (own, 0), own, at(0));
        let change = Change::new(setup.fingerprint, node == 0);
        Self {
            setup,
            partner,
            change,
            established: false,
            out: Outbox::new(16),
        }
    }
    fn open(&mut self, follows: bool, now: Instant) {
        let own = (&self.setup.timing, follows);
        self.partner
            .open_round(own, &mut self.change, now, core::iter::empty());
    }
    /// The heartbeats of a round opened at `now`, one for each link.
    fn round(&mut self, now: Instant) -> [[u8; MAX_HEARTBEAT_LEN]; 2] {
        self.open(false, now);
        let mut copies = [[0; MAX_HEARTBEAT_LEN]; 2];
        for copy in &mut copies {
            self.partner.poll_transmit(&self.setup, now, copy).unwrap();
        }
        copies
    }
    fn hear(&mut self, link: u8, bytes: &[u8; MAX_HEARTBEAT_LEN], now: Instant) -> Heard {
        let Ok(Packet::Heartbeat(heartbeat)) = parse(&bytes[..bumpless_wire::heartbeat_len(0)])
        else {
            unreachable!()
        };
        self.partner.hear(
            LinkId(link),
            &heartbeat,
            (&self.setup.timing, &mut self.change, self.established),
            now,
            &mut self.out,
        )
    }
}

fn acquainted() -> (End, End) {
    let (mut a, mut b) = (End::new(0), End::new(1));
    for ms in 1..6 {
        let (from_a, from_b) = (a.round(at(ms)), b.round(at(ms)));
        b.hear(0, &from_a[0], at(ms));
        a.hear(0, &from_b[0], at(ms));
    }
    (a, b)
}

#[test]
fn statements_are_taken_in_the_order_of_sending_whatever_the_link() {
    let (mut a, mut b) = acquainted();
    let (older, newer) = (b.round(at(10)), b.round(at(11)));
    assert!(a.hear(0, &newer[0], at(12)).entries);
    assert!(
        !a.hear(1, &older[1], at(13)).entries,
        "older, on another link"
    );
    assert!(!a.hear(1, &newer[1], at(14)).entries, "a copy");
    let later = b.round(at(12));
    assert!(a.hear(1, &later[1], at(15)).entries);
}

#[test]
fn who_follows_answers_a_newer_round_unless_its_own_last_is_young() {
    let (mut a, mut b) = acquainted();
    let timing = a.setup.timing;
    let us = |us| at(0) + Duration::from_micros(us);
    a.open(true, us(20_000));
    assert_eq!(a.partner.next_round(&timing), us(22_250));
    // As a primary in a hurry sends them, then the copy of one that was heard, then a straggler.
    let (early, older) = (b.round(us(20_500)), b.round(us(21_000)));
    let news = b.round(us(21_500));
    a.hear(0, &early[0], us(21_749));
    assert_eq!(a.partner.next_round(&timing), us(22_250));
    a.hear(1, &early[1], us(21_760));
    assert_eq!(a.partner.next_round(&timing), us(22_250));
    a.hear(0, &news[0], us(21_770));
    assert_eq!(a.partner.next_round(&timing), us(21_770));
    a.open(true, us(21_770));
    a.hear(1, &older[1], us(23_770));
    assert_eq!(a.partner.next_round(&timing), us(24_020));
    let last = b.round(us(23_500));
    a.open(false, us(24_020));
    a.hear(0, &last[0], us(26_000));
    assert_eq!(
        a.partner.next_round(&timing),
        us(26_020),
        "it does not follow"
    );
}

#[test]
fn promises_count_from_the_first_copy_of_the_newest_heartbeat() {
    let (mut a, mut b) = acquainted();
    let (older, newer) = (b.round(at(10)), b.round(at(11)));
    a.hear(0, &newer[0], at(12));
    a.hear(1, &older[1], at(13));
    a.hear(1, &newer[1], at(14));
    assert_eq!(a.partner.latest_heard_at(), Some(at(12)));
    let said = a.round(at(15));
    let Ok(Packet::Heartbeat(heartbeat)) = parse(&said[0][..bumpless_wire::heartbeat_len(0)])
    else {
        unreachable!()
    };
    assert_eq!(heartbeat.lease_echo, at(11).as_nanos());
}

#[test]
fn the_copies_of_a_round_say_the_same_about_leases() {
    let (mut a, mut b) = acquainted();
    a.open(false, at(20));
    let mut first = [0; MAX_HEARTBEAT_LEN];
    a.partner.poll_transmit(&a.setup, at(20), &mut first);
    let news = b.round(at(21));
    a.hear(0, &news[0], at(21));
    let mut second = [0; MAX_HEARTBEAT_LEN];
    a.partner.poll_transmit(&a.setup, at(22), &mut second);
    let echo = |bytes: &[u8]| match parse(&bytes[..bumpless_wire::heartbeat_len(0)]) {
        Ok(Packet::Heartbeat(heartbeat)) => (heartbeat.sent_at, heartbeat.lease_echo),
        _ => unreachable!(),
    };
    assert_eq!(echo(&first), echo(&second));
}

#[test]
fn rounds_that_were_missed_are_not_made_up_for() {
    let mut a = End::new(0);
    let timing = a.setup.timing;
    a.round(at(10));
    assert_eq!(a.partner.next_round(&timing), at(12));
    a.round(at(100));
    assert_eq!(a.partner.next_round(&timing), at(102));
    a.partner.hurry();
    let soon = at(100) + timing.rate_limit();
    assert_eq!(a.partner.next_round(&timing), soon);
}

#[test]
fn a_lost_partner_was_there_last_when_it_sent_its_newest_heartbeat() {
    // One that knows this node's session and has heard nothing of it on this link answers nothing.
    let (mut a, mut b) = (End::new(0), End::new(1));
    for ms in 1_000..1_006 {
        let (from_a, from_b) = (a.round(at(ms)), b.round(at(ms)));
        b.hear(0, &from_a[0], at(ms));
        a.hear(1, &from_b[1], at(ms));
    }
    assert_eq!(a.partner.last_there(), None);

    let (mut a, mut b) = acquainted();
    assert_eq!(a.partner.last_there(), None, "it is there");
    // Deaf, it still sends; the heartbeat is long on its way.
    let deaf = b.round(at(100));
    a.hear(0, &deaf[0], at(6_000));
    let timing = a.setup.timing;
    a.partner
        .check_links(&timing, Instant::ZERO, at(6_100), &mut a.out);
    // Its answer of 5 ms was to what had left at 4 ms.
    let last = a.partner.last_there().unwrap();
    assert!((at(98)..=at(100)).contains(&last), "{last:?}");
    // A later process that has not answered yet says nothing else.
    a.partner.forget_session();
    assert_eq!(a.partner.last_there(), Some(last));
}

#[test]
fn a_partner_that_hears_on_one_link_only_is_dated_by_that_links_answers() {
    let (mut a, mut b) = acquainted();
    // Of a later process nothing is known before it has answered.
    a.partner.forget_session();
    for ms in 100..200 {
        let (from_a, from_b) = (a.round(at(ms)), b.round(at(ms)));
        b.hear(0, &from_a[0], at(ms));
        // What comes on the other link comes first.
        a.hear(1, &from_b[1], at(ms));
        a.hear(0, &from_b[0], at(ms));
    }
    let timing = a.setup.timing;
    a.partner
        .check_links(&timing, Instant::ZERO, at(300), &mut a.out);
    let last = a.partner.last_there().unwrap();
    assert!((at(196)..=at(199)).contains(&last), "{last:?}");
}
