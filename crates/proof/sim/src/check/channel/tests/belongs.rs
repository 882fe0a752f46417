//! Which channel may be used by whom, and on which network.

use super::*;

fn other(sequence: u32) -> Passed {
    let channel = ChannelId::new(2).expect("not 0");
    let header = DataHeader {
        channel,
        ..packet(sequence, ms(1))
    };
    data(0, header)
}

/// On network 0, channel 1 sends before channel 2, which has the earlier deadline and `networks`. The node hears its
/// partner on `before`, and then on `after`.
fn out_of_order(networks: &[usize], before: LinkSet, after: LinkSet) -> Vec<&'static str> {
    let here = ChannelTerms {
        networks: vec![0],
        ..terms(1, 10)
    };
    let there = ChannelTerms {
        networks: networks.to_vec(),
        ..terms(2, 5)
    };
    let mut bench = Bench::new(vec![here, there]);
    bench.up = before;
    assert_eq!(bench.turn(Instant::ZERO, &[], &[]), FINE);
    bench.up = after;
    bench.publish(0, 0, Instant::ZERO);
    bench.publish(1, 0, Instant::ZERO);
    bench.turn(ms(1), &[], &[data(0, packet(0, ms(1))), other(0)])
}

#[test]
fn only_a_channel_with_another_network_that_is_heard_may_leave_one_alone_that_is_not() {
    const WRONG: [&str; 1] = ["earliest first"];
    let [none, first, second] = [
        LinkSet::EMPTY,
        LinkSet::only(LinkId(0)),
        LinkSet::only(LinkId(1)),
    ];
    let all = LinkSet::first(2);
    assert_eq!(out_of_order(&[0, 1], all, all), WRONG);
    assert_eq!(out_of_order(&[0, 1], first, first), WRONG);
    assert_eq!(out_of_order(&[0, 1], none, none), WRONG, "it has none left");
    assert_eq!(out_of_order(&[0], second, second), WRONG, "it has no other");
    assert_eq!(out_of_order(&[0, 1], second, second), FINE);
    // Who was heard when it sent, within the turn, nobody knows from outside.
    assert_eq!(out_of_order(&[0, 1], all, second), FINE);
    assert_eq!(out_of_order(&[0, 1], second, all), FINE);
    assert_eq!(out_of_order(&[0, 1], none, second), FINE);
}

#[test]
fn a_channel_may_leave_a_narrow_network_alone_where_another_one_of_its_own_passes_full_packets() {
    let sent = |networks: &[usize], wide| {
        let [here, there] = [(1, 10, &[0][..]), (2, 5, networks)].map(|(id, ms, networks)| {
            let networks = networks.to_vec();
            ChannelTerms {
                networks,
                ..terms(id, ms)
            }
        });
        let mut bench = Bench::new(vec![here, there]);
        bench.wide = wide;
        assert_eq!(bench.turn(Instant::ZERO, &[], &[]), FINE);
        bench.publish(0, 0, Instant::ZERO);
        bench.publish(1, 0, Instant::ZERO);
        bench.turn(ms(1), &[], &[data(0, packet(0, ms(1))), other(0)])
    };
    let second = LinkSet::only(LinkId(1));
    assert_eq!(sent(&[0, 1], second), FINE);
    const WRONG: [&str; 1] = ["earliest first"];
    assert_eq!(sent(&[0], second), WRONG, "it has no other");
    assert_eq!(sent(&[0, 1], LinkSet::EMPTY), WRONG, "none passes them");
    assert_eq!(sent(&[0, 1], LinkSet::first(2)), WRONG, "it is not narrow");
}

#[test]
fn what_is_sent_on_a_channel_that_is_not_shared_with_that_node_is_found() {
    let sent = |of: fn(Passed) -> Passed, passed: Passed| {
        let mut bench = Bench::new(vec![terms(1, 10)]);
        bench.publish(0, 0, Instant::ZERO);
        bench.turn(ms(1), &[], &[of(passed)])
    };
    let to_itself = |passed| Passed {
        partner: 0,
        ..passed
    };
    assert_eq!(sent(|it| it, data(0, packet(0, ms(1)))), FINE);
    assert_eq!(sent(to_itself, data(0, packet(0, ms(1)))), BROKEN);
    assert_eq!(sent(|it| it, other(0)), BROKEN);
    assert_eq!(sent(to_itself, ack(9, &[(0, 2)])), BROKEN);
}

#[test]
fn what_can_be_read_at_a_node_that_is_no_candidate_is_found() {
    let mut channels = Channels::new(vec![terms(1, 10)], 3, &Tally::default());
    channels.started(2);
    let seen = Delivered {
        node: 2,
        ..Delivered::default()
    };
    let found = channels.delivered(&seen).expect_err("nobody may read it");
    assert!(found.contains("no candidate"), "{found}");
}
