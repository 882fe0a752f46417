use bumpless_base::{ChannelId, Duration, Instant, LinkId, LinkSet, TransferOutcome};
use bumpless_wire::{AckHeader, DataHeader, WireVersion, packet_count};

use super::*;
use crate::check::Delivered;

mod belongs;
mod kept;

const SESSION: u32 = 7;
const PIECE: u16 = 100;

fn terms(id: u16, deadline_ms: u64) -> ChannelTerms {
    ChannelTerms {
        id: ChannelId::new(id).expect("not 0"),
        nodes: [0, 1],
        max_size: 1000,
        deadline: Duration::from_millis(deadline_ms),
        expiry: Duration::from_millis(50),
        networks: vec![0, 1],
        replicated: true,
        keeps: false,
        version: WireVersion::V2,
        payload_size: PIECE,
        in_flight_max: 4,
        packet_time: Duration::from_micros(10),
        pacing: Duration::ZERO,
        first_round_trip: Duration::from_millis(1),
    }
}

fn ms(at: u64) -> Instant {
    Instant::from_nanos(at * 1_000_000)
}

/// A packet of channel 1's first state, published at 0.
fn packet(sequence: u32, at: Instant) -> DataHeader {
    DataHeader {
        version: WireVersion::V2,
        tag: SESSION,
        channel: ChannelId::new(1).expect("not 0"),
        link: LinkId(0),
        retransmission: false,
        short: false,
        cycle: 9,
        sequence,
        total_size: 250,
        expiry: Duration::from_millis(50) - at.since(Instant::ZERO),
        force_ack: None,
    }
}

fn data(network: usize, header: DataHeader) -> Passed {
    let left = header.total_size - header.sequence * u32::from(PIECE);
    Passed {
        network,
        partner: 1,
        message: Message::Data(header, left.min(u32::from(PIECE)) as usize),
    }
}

fn ack(cycle: u32, blocks: &[(u32, u32)]) -> Passed {
    let header = AckHeader {
        version: WireVersion::V2,
        tag: SESSION,
        channel: ChannelId::new(1).expect("not 0"),
        link: None,
        retransmission: false,
        cycle,
        trigger: None,
        received: Some(blocks.iter().map(|(low, high)| high - low + 1).sum()),
    };
    Passed {
        network: 0,
        partner: 1,
        message: Message::Ack(header, blocks.to_vec()),
    }
}

/// Node 0 and what is told of its states.
struct Bench {
    channels: Channels,
    up: LinkSet,
    wide: LinkSet,
    safe: Option<u64>,
    failed: Option<u64>,
}

impl Bench {
    fn new(terms: Vec<ChannelTerms>) -> Self {
        let mut channels = Channels::new(terms, 2, &Tally::default());
        channels.started(0);
        channels.started(1);
        let mut bench = Self {
            channels,
            up: LinkSet::first(2),
            wide: LinkSet::first(2),
            safe: None,
            failed: None,
        };
        assert_eq!(bench.turn(Instant::ZERO, &[], &[]), [""; 0]);
        bench
    }

    fn publish(&mut self, application: usize, ticket: u64, at: Instant) {
        let state = State {
            ticket,
            at,
            len: 250,
            digest: 100 + ticket,
        };
        self.channels.published(0, application, state);
    }

    /// The invariants that a turn breaks.
    fn turn(&mut self, at: Instant, taken: &[Passed], sent: &[Passed]) -> Vec<&'static str> {
        let mut found = Vec::new();
        let (safe, failed) = (self.safe, self.failed);
        let turn = TransferTurn {
            node: 0,
            received: at,
            acted: at,
            taken,
            sent,
            round_trip: Duration::ZERO,
            networks: Networks {
                up: self.up,
                wide: self.wide.intersection(self.up),
            },
            sessions: &[Some(SESSION); 2],
            answer: &|_, ticket| {
                if Some(ticket) <= safe {
                    TransferOutcome::Safe
                } else if Some(ticket) <= failed {
                    TransferOutcome::Failed
                } else {
                    TransferOutcome::Pending
                }
            },
            at: at.as_nanos(),
        };
        self.channels.turn(&turn, &mut found);
        found.iter().map(|violation| violation.invariant).collect()
    }

    /// Sends the three packets of a first state on network 0.
    fn started() -> Self {
        let mut bench = Self::new(vec![terms(1, 10)]);
        bench.publish(0, 0, Instant::ZERO);
        let sent: Vec<_> = (0..3).map(|n| data(0, packet(n, ms(1)))).collect();
        assert_eq!(bench.turn(ms(1), &[], &sent), [""; 0]);
        bench
    }
}

const FINE: [&str; 0] = [];
const BROKEN: [&str; 1] = ["channel"];

#[test]
fn a_state_is_safe_when_its_acknowledgements_cover_it_and_not_before() {
    let mut bench = Bench::started();
    bench.safe = Some(0);
    assert_eq!(bench.turn(ms(2), &[ack(9, &[(0, 1)])], &[]), BROKEN);

    let mut bench = Bench::started();
    bench.safe = Some(0);
    let of_another_cycle = ack(8, &[(0, 2)]);
    assert_eq!(bench.turn(ms(2), &[of_another_cycle], &[]), BROKEN);

    let mut bench = Bench::started();
    bench.safe = Some(0);
    assert_eq!(
        bench.turn(ms(11), &[ack(9, &[(0, 2)])], &[]),
        BROKEN,
        "late"
    );

    let mut bench = Bench::started();
    assert_eq!(
        bench.turn(ms(2), &[ack(9, &[(0, 2)])], &[]),
        BROKEN,
        "not told"
    );

    let mut bench = Bench::started();
    assert_eq!(bench.turn(ms(2), &[ack(9, &[(0, 0), (2, 2)])], &[]), FINE);
    bench.safe = Some(0);
    assert_eq!(bench.turn(ms(3), &[ack(9, &[(0, 2)])], &[]), FINE);
}

#[test]
fn every_state_is_answered_in_time_and_given_up_only_for_want_of_it() {
    let mut bench = Bench::started();
    assert_eq!(bench.turn(ms(11), &[], &[]), BROKEN);

    let mut bench = Bench::started();
    bench.failed = Some(0);
    assert_eq!(bench.turn(ms(4), &[], &[]), BROKEN);

    let mut bench = Bench::started();
    bench.failed = Some(0);
    assert_eq!(bench.turn(ms(10), &[], &[]), FINE);
}

/// T-7 gives up what can no longer come in time when it comes to send, and tells that in the next turn:
/// what acknowledges the state in that very turn comes too late to save it.
#[test]
fn a_state_given_up_may_be_acknowledged_in_the_turn_that_tells_so() {
    let too_little_time = ms(9) + Duration::from_micros(975);
    let then = ms(9) + Duration::from_micros(990);
    let all = [ack(9, &[(0, 2)])];
    let told = |doubted: bool, safe: Option<u64>, failed: Option<u64>| {
        let mut bench = Bench::started();
        if doubted {
            assert_eq!(bench.turn(too_little_time, &[], &[]), FINE);
        }
        (bench.safe, bench.failed) = (safe, failed);
        bench.turn(then, &all, &[])
    };
    assert_eq!(told(true, None, Some(0)), FINE);
    assert_eq!(told(true, Some(0), None), FINE);
    assert_eq!(told(true, None, None), BROKEN, "nothing is told");
    assert_eq!(told(false, None, Some(0)), BROKEN, "nobody looked before");
    assert_eq!(told(false, Some(0), None), FINE);
}

#[test]
fn packets_that_do_not_say_what_was_published_are_found() {
    let wrong = |change: fn(&mut DataHeader)| {
        let mut bench = Bench::new(vec![terms(1, 10)]);
        bench.publish(0, 0, Instant::ZERO);
        let mut header = packet(0, ms(1));
        change(&mut header);
        bench.turn(ms(1), &[], &[data(0, header)])
    };
    assert_eq!(wrong(|_| {}), FINE);
    assert_eq!(wrong(|header| header.sequence = 1), BROKEN);
    assert_eq!(wrong(|header| header.total_size = 249), BROKEN);
    assert_eq!(wrong(|header| header.tag = 8), BROKEN);
    assert_eq!(wrong(|header| header.retransmission = true), BROKEN);
    assert_eq!(
        wrong(|header| header.expiry = Duration::from_millis(50)),
        BROKEN
    );
}

#[test]
fn cycles_count_up_and_a_started_one_is_not_left_for_a_later_state() {
    let mut bench = Bench::started();
    bench.publish(0, 1, ms(2));
    let mut next = packet(0, ms(1));
    next.cycle = 10;
    next.expiry = Duration::from_millis(49);
    assert_eq!(bench.turn(ms(3), &[], &[data(0, next)]), BROKEN);

    let mut bench = Bench::started();
    bench.safe = Some(0);
    assert_eq!(bench.turn(ms(2), &[ack(9, &[(0, 2)])], &[]), FINE);
    bench.publish(0, 1, ms(2));
    assert_eq!(bench.turn(ms(3), &[], &[data(0, next)]), FINE);

    let mut bench = Bench::started();
    bench.safe = Some(0);
    assert_eq!(bench.turn(ms(2), &[ack(9, &[(0, 2)])], &[]), FINE);
    bench.publish(0, 1, ms(2));
    next.cycle = 11;
    assert_eq!(bench.turn(ms(3), &[], &[data(0, next)]), BROKEN);
}

#[test]
fn waiting_without_a_probe_and_passing_over_a_lost_packet_are_found() {
    let mut bench = Bench::started();
    assert_eq!(bench.turn(ms(3), &[], &[]), FINE);
    assert_eq!(bench.turn(ms(4), &[], &[]), BROKEN);

    let mut bench = Bench::started();
    let probe = |sequence| {
        let mut header = packet(sequence, ms(8));
        header.retransmission = true;
        data(0, header)
    };
    let gap = [ack(9, &[(0, 0), (2, 2)])];
    assert_eq!(bench.turn(ms(8), &gap, &[probe(2)]), BROKEN);

    let mut bench = Bench::started();
    assert_eq!(bench.turn(ms(8), &gap, &[probe(1)]), FINE);
}

#[test]
fn a_partner_heard_on_no_network_may_be_probed_rarely_until_it_is() {
    let mut bench = Bench::started();
    bench.up = LinkSet::EMPTY;
    assert_eq!(bench.turn(ms(2), &[], &[]), FINE);
    assert_eq!(bench.turn(ms(7), &[], &[]), FINE);
    bench.up = LinkSet::only(LinkId(1));
    assert_eq!(bench.turn(ms(8), &[], &[]), FINE, "as soon as it can");
    assert_eq!(bench.turn(ms(9), &[], &[]), BROKEN);
}

#[test]
fn who_asks_more_slowly_before_twelve_questions_had_no_answer_is_found() {
    let after = |questions: u64| {
        let mut bench = Bench::new(vec![terms(1, 100)]);
        bench.publish(0, 0, Instant::ZERO);
        let sent: Vec<_> = (0..3).map(|n| data(0, packet(n, ms(1)))).collect();
        assert_eq!(bench.turn(ms(1), &[], &sent), FINE);
        for question in 2..2 + questions {
            let mut header = packet(2, ms(question));
            header.retransmission = true;
            assert_eq!(bench.turn(ms(question), &[], &[data(0, header)]), FINE);
        }
        bench.turn(ms(5 + questions), &[], &[])
    };
    assert_eq!(after(11), BROKEN);
    assert_eq!(after(12), FINE);
}

#[test]
fn packets_beyond_the_in_flight_limit_are_found() {
    let mut bench = Bench::new(vec![terms(1, 10), terms(2, 10)]);
    bench.publish(0, 0, Instant::ZERO);
    bench.publish(1, 0, Instant::ZERO);
    let other = |sequence| DataHeader {
        channel: ChannelId::new(2).expect("not 0"),
        ..packet(sequence, ms(1))
    };
    let mut sent: Vec<_> = (0..3).map(|n| data(0, packet(n, ms(1)))).collect();
    sent.push(data(0, other(0)));
    assert_eq!(bench.turn(ms(1), &[], &sent), FINE);
    assert_eq!(bench.turn(ms(1), &[], &[data(0, other(1))]), ["bounded"]);
}

/// Channel 2's deadline is earlier than channel 1's.
#[test]
fn a_packet_that_leaves_before_one_with_an_earlier_deadline_is_found() {
    let bench = || {
        let mut bench = Bench::new(vec![terms(1, 10), terms(2, 5)]);
        bench.publish(0, 0, Instant::ZERO);
        bench.publish(1, 0, Instant::ZERO);
        bench
    };
    let other = |sequence| DataHeader {
        channel: ChannelId::new(2).expect("not 0"),
        ..packet(sequence, ms(1))
    };
    let one = data(0, packet(0, ms(1)));
    assert_eq!(
        bench().turn(ms(1), &[], std::slice::from_ref(&one)),
        ["earliest first"]
    );
    let mut sent: Vec<_> = (0..3).map(|n| data(0, other(n))).collect();
    sent.push(one);
    assert_eq!(bench().turn(ms(1), &[], &sent), FINE);
    // On the other network channel 2 has everything to send, and channel 1 goes first.
    let mut elsewhere = packet(0, ms(1));
    elsewhere.link = LinkId(1);
    sent.push(data(1, elsewhere));
    assert_eq!(bench().turn(ms(1), &[], &sent), ["earliest first"]);
}

/// Node 0 receives the packets and is asked what it has.
fn receive(sequences: &[u32], sent: &[Passed]) -> (Channels, Vec<&'static str>) {
    let mut bench = Bench::new(vec![terms(1, 10)]);
    let taken: Vec<_> = sequences
        .iter()
        .map(|&n| data(0, packet(n, ms(1))))
        .collect();
    let found = bench.turn(ms(2), &taken, sent);
    (bench.channels, found)
}

#[test]
fn acknowledgements_that_are_missing_or_say_something_else_are_found() {
    assert_eq!(receive(&[0], &[]).1, FINE);
    assert_eq!(receive(&[0, 2], &[]).1, BROKEN);
    assert_eq!(receive(&[0, 2], &[ack(9, &[(0, 0), (2, 2)])]).1, FINE);
    assert_eq!(receive(&[0, 2], &[ack(9, &[(0, 1)])]).1, BROKEN);
    assert_eq!(receive(&[0, 2], &[ack(8, &[(0, 0), (2, 2)])]).1, BROKEN);
    assert_eq!(packet_count(250, PIECE), 3);
}

#[test]
fn what_has_come_whole_must_be_shown_and_nothing_else() {
    let seen = |cycle| Delivered {
        transfer_cycle: cycle,
        expires_at: ms(51),
        ..Delivered::default()
    };
    let whole = || {
        let mut channels = receive(&[2, 0, 1], &[ack(9, &[(0, 2)])]).0;
        partner_begins(&mut channels);
        channels
    };
    assert!(whole().delivered(&seen(9)).is_ok());
    assert!(whole().delivered(&seen(8)).is_err());
    let later = Delivered {
        expires_at: ms(52),
        ..seen(9)
    };
    assert!(whole().delivered(&later).is_err());
    let mut shown = whole();
    assert!(shown.looked(0).is_err());
    assert!(shown.delivered(&seen(9)).is_ok() && shown.looked(0).is_ok());
    let mut part = receive(&[0, 1], &[]).0;
    assert!(part.looked(0).is_ok() && part.delivered(&seen(9)).is_err());
}

/// Node 1 begins transfer cycle 9 to node 0.
fn partner_begins(channels: &mut Channels) {
    let state = State {
        ticket: 1,
        at: Instant::ZERO,
        len: 250,
        digest: 0,
    };
    channels.published(1, 0, state);
    let first = Passed {
        partner: 0,
        ..data(0, packet(0, ms(1)))
    };
    let mut found = Vec::new();
    let turn = TransferTurn {
        node: 1,
        received: ms(1),
        acted: ms(1),
        taken: &[],
        sent: &[first],
        round_trip: Duration::ZERO,
        networks: Networks {
            up: LinkSet::first(2),
            wide: LinkSet::first(2),
        },
        sessions: &[Some(SESSION)],
        answer: &|_, _| TransferOutcome::Pending,
        at: 0,
    };
    channels.turn(&turn, &mut found);
    assert_eq!(found, []);
}

#[test]
fn a_cycle_that_nobody_began_is_found() {
    let mut channels = receive(&[2, 0, 1], &[ack(9, &[(0, 2)])]).0;
    let seen = Delivered {
        transfer_cycle: 9,
        expires_at: ms(51),
        ..Delivered::default()
    };
    let found = channels.delivered(&seen).expect_err("nobody sent it");
    assert!(found.contains("node 1 has not begun"), "{found}");
}

#[test]
fn another_state_than_its_cycle_carries_is_found() {
    let mut channels = Bench::started().channels;
    let mut found = Vec::new();
    let taken: Vec<_> = (0..3)
        .map(|n| Passed {
            partner: 0,
            ..data(0, packet(n, ms(1)))
        })
        .collect();
    for taken in [&[][..], &taken[..]] {
        channels.turn(
            &TransferTurn {
                node: 1,
                received: ms(2),
                acted: ms(2),
                taken,
                sent: &[],
                round_trip: Duration::ZERO,
                networks: Networks {
                    up: LinkSet::first(2),
                    wide: LinkSet::first(2),
                },
                sessions: &[Some(SESSION); 2],
                answer: &|_, _| TransferOutcome::Pending,
                at: 0,
            },
            &mut found,
        );
    }
    let seen = |digest| Delivered {
        node: 1,
        transfer_cycle: 9,
        expires_at: ms(51),
        digest,
        ..Delivered::default()
    };
    assert!(channels.delivered(&seen(101)).is_err());
}
