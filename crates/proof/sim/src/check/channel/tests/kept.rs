//! What a channel keeps that is unsent (T-54).

use super::*;

/// A packet of transfer cycle `cycle`, whose state was published at `published`.
fn packet_of(cycle: u32, sequence: u32, published: Instant, at: Instant) -> Passed {
    let expiry = Duration::from_millis(50) - at.since(published);
    let header = DataHeader {
        cycle,
        expiry,
        ..packet(sequence, at)
    };
    data(0, header)
}

/// The whole state.
fn all_of(cycle: u32, published: Instant, at: Instant) -> Vec<Passed> {
    let packets = 0..3;
    packets
        .map(|sequence| packet_of(cycle, sequence, published, at))
        .collect()
}

/// State 0 has left in cycle 9, and so many others were published after it, at 1, 2, 3 ms.
fn waiting(others: u64) -> Bench {
    let mut bench = Bench::new(vec![ChannelTerms {
        keeps: true,
        ..terms(1, 40)
    }]);
    bench.publish(0, 0, ms(0));
    assert_eq!(bench.turn(ms(0), &[], &all_of(9, ms(0), ms(0))), FINE);
    (1..=others).for_each(|ticket| bench.publish(0, ticket, ms(ticket)));
    bench
}

#[test]
fn the_oldest_that_is_kept_begins_and_a_later_one_in_its_place_is_found() {
    for (published, expected) in [(1, &FINE[..]), (2, &BROKEN)] {
        let mut bench = waiting(2);
        bench.safe = Some(0);
        let begins = [packet_of(10, 0, ms(published), ms(5))];
        let taken = [ack(9, &[(0, 2)])];
        assert_eq!(bench.turn(ms(5), &taken, &begins), expected, "{published}");
    }
}

#[test]
fn of_three_that_wait_only_the_last_may_take_the_place_of_one() {
    for (published, expected) in [(2, &FINE[..]), (3, &FINE), (1, &BROKEN)] {
        let mut bench = waiting(3);
        bench.safe = Some(0);
        let taken = [ack(9, &[(0, 2)])];
        let sent = all_of(10, ms(1), ms(5));
        assert_eq!(bench.turn(ms(5), &taken, &sent), FINE);
        bench.safe = Some(1);
        let begins = [packet_of(11, 0, ms(published), ms(6))];
        let taken = [ack(10, &[(0, 2)])];
        assert_eq!(bench.turn(ms(6), &taken, &begins), expected, "{published}");
    }
}
