//! Each reason to acknowledge, alone.

mod world;

use bumpless_base::{ChannelId, Counter, LinkId};
use bumpless_transfer::ReceiverEvent;
use bumpless_wire::{DataHeader, MAX_ACK_LEN, Packet, WireVersion, parse};
use world::*;

/// A receiver of two channels over two links, with its acknowledgements in plain form.
struct Bench(World);

/// Channel, trigger as (link, number), blocks.
type Said = (u16, Option<(u8, u32)>, Vec<(u32, u32)>);

impl Bench {
    fn new(in_flight_max: u32) -> Self {
        let plan = Plan::links(2).with(|p| {
            p.in_flight_max = in_flight_max;
            p.channels = vec![p.channels[0]; 2];
        });
        Self(plan.build())
    }

    fn header(sequence: u32, packets: u32) -> DataHeader {
        DataHeader {
            version: WireVersion::V2,
            tag: TAG,
            channel: id(0),
            link: LinkId(0),
            retransmission: false,
            short: false,
            cycle: 1,
            sequence,
            total_size: packets * 1000,
            expiry: ms(100),
            force_ack: None,
        }
    }

    fn take(&mut self, header: DataHeader) {
        let world = &mut self.0;
        let link = header.link;
        world
            .receiver
            .handle_data(PEER, link, &header, &[0; 1000], world.now);
    }

    /// Packets of a state of ten on a link.
    fn arrive(&mut self, link: u8, sequences: impl IntoIterator<Item = u32>) {
        for sequence in sequences {
            let link = LinkId(link);
            self.take(DataHeader {
                link,
                ..Self::header(sequence, 10)
            });
        }
    }

    fn said(&mut self) -> Vec<Said> {
        let (mut out, mut said) = ([0; MAX_ACK_LEN], Vec::new());
        while let Some(transmit) = self.0.receiver.poll_ack(&mut out) {
            let Ok(Packet::Ack(ack)) = parse(&out[..transmit.len]) else {
                panic!("not an acknowledgement");
            };
            let trigger = ack.link.map(|l| l.0).zip(ack.trigger);
            said.push((ack.channel.get(), trigger, ack.blocks().collect()));
        }
        said
    }
}

#[test]
fn packets_in_order_are_not_acknowledged_one_by_one() {
    let mut bench = Bench::new(512);
    bench.arrive(0, 0..9);
    assert_eq!(bench.said(), []);
}

#[test]
fn the_last_packet_is_whatever_is_missing_and_also_when_repeated() {
    let mut bench = Bench::new(512);
    bench.arrive(0, [0, 1, 3, 4, 5, 6, 7, 8]);
    bench.said();
    bench.arrive(0, [9]);
    assert_eq!(bench.said(), [(1, Some((0, 9)), vec![(0, 1), (3, 9)])]);
    bench.arrive(1, [2]);
    assert_eq!(bench.said(), [(1, Some((1, 2)), vec![(0, 9)])]);
    bench.arrive(1, [8]);
    assert_eq!(bench.said(), []);
    bench.arrive(1, [9]);
    assert_eq!(bench.said(), [(1, Some((1, 9)), vec![(0, 9)])]);
}

#[test]
fn a_gap_is_and_again_when_the_other_link_passes_over_it() {
    let mut bench = Bench::new(512);
    bench.arrive(0, [0, 1, 3]);
    assert_eq!(bench.said(), [(1, Some((0, 3)), vec![(0, 1), (3, 3)])]);
    bench.arrive(0, [4, 5]);
    bench.arrive(1, [0, 1]);
    assert_eq!(bench.said(), []);
    bench.arrive(1, [3]);
    assert_eq!(bench.said(), [(1, Some((1, 3)), vec![(0, 1), (3, 5)])]);
}

#[test]
fn each_link_that_shows_a_loss_is_named_though_both_do_so_at_once() {
    let mut bench = Bench::new(512);
    bench.arrive(0, [0, 2]);
    bench.arrive(1, [0, 2]);
    let blocks = vec![(0, 0), (2, 2)];
    let expected = [(1, Some((0, 2)), blocks.clone()), (1, Some((1, 2)), blocks)];
    assert_eq!(bench.said(), expected);
}

#[test]
fn a_packet_sent_again_is() {
    let mut bench = Bench::new(512);
    bench.arrive(0, [0, 2, 4]);
    bench.said();
    bench.arrive(0, [1]);
    assert_eq!(bench.said(), [(1, Some((0, 1)), vec![(0, 2), (4, 4)])]);
    let mut marked = Bench::header(5, 10);
    marked.retransmission = true;
    bench.take(marked);
    assert_eq!(bench.said(), [(1, Some((0, 5)), vec![(0, 2), (4, 5)])]);
}

#[test]
fn a_forced_channel_is_if_anything_is_known_of_it() {
    let mut bench = Bench::new(512);
    let force = |sequence, id: u16| DataHeader {
        force_ack: ChannelId::new(id),
        ..Bench::header(sequence, 10)
    };
    bench.take(force(0, 2));
    bench.take(force(1, 77));
    assert_eq!(bench.said(), []);
    bench.take(force(2, 1));
    assert_eq!(bench.said(), [(1, Some((0, 2)), vec![(0, 2)])]);
    bench.take(DataHeader {
        channel: id(1),
        ..force(0, 1)
    });
    assert_eq!(bench.said(), [(1, None, vec![(0, 2)])]);
}

#[test]
fn every_fifth_of_the_in_flight_limit_is_over_all_channels_of_the_peer() {
    let mut bench = Bench::new(25);
    for sequence in 0..3 {
        bench.take(Bench::header(sequence, 10));
        assert_eq!(bench.said(), []);
        if sequence < 1 {
            bench.take(DataHeader {
                channel: id(1),
                ..Bench::header(sequence, 10)
            });
            assert_eq!(bench.said(), []);
        }
    }
    bench.take(DataHeader {
        channel: id(1),
        ..Bench::header(1, 10)
    });
    let mut said = bench.said();
    said.sort();
    let expected = [(1, None, vec![(0, 2)]), (2, Some((0, 1)), vec![(0, 1)])];
    assert_eq!(said, expected);
    bench.arrive(0, 3..7);
    assert_eq!(bench.said(), []);
    bench.arrive(0, 7..8);
    assert_eq!(bench.said(), [(1, Some((0, 7)), vec![(0, 7)])]);
}

#[test]
fn several_reasons_between_two_polls_make_one_acknowledgement() {
    let mut bench = Bench::new(512);
    bench.arrive(0, [0, 2, 4, 6, 8, 9, 1, 3, 5]);
    let blocks = vec![(0, 6), (8, 9)];
    assert_eq!(bench.said(), [(1, Some((0, 5)), blocks)]);
}

#[test]
fn any_number_of_states_may_come_before_notices_are_collected() {
    let mut bench = Bench::new(100);
    for cycle in 1..=1000 {
        for channel in [0, 1] {
            bench.take(DataHeader {
                channel: id(channel),
                cycle,
                ..Bench::header(0, 1)
            });
        }
    }
    let receiver = &mut bench.0.receiver;
    let mut newest = Vec::new();
    while let Some(event) = receiver.poll_event() {
        if let ReceiverEvent::Updated { channel, cycle, .. } = event {
            newest.push((channel.0, cycle));
        }
    }
    assert_eq!(newest, [(0, 1000), (1, 1000)]);
    assert_eq!(receiver.counters().get(Counter::EventsLost), 0);
}
