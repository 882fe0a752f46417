//! What is encoded is read back; what a version cannot carry is bounded as its clause says.

mod common;

use bumpless_base::{ChannelId, Duration, LinkId};
use bumpless_wire::{
    AckHeader, DataHeader, EnvelopeHeader, MAX_ACK_BLOCKS, MAX_ACK_LEN, MAX_GROUPS,
    MAX_HEARTBEAT_LEN, Packet, WireVersion, WitnessReply, WitnessRequest, ack_len, encode_ack,
    encode_heartbeat, heartbeat_len, max_state_size, packet_count, parse, piece,
};
use common::encode;
use common::strategies::{
    ack, blocks, data_header, datagram, heartbeat, witness_reply, witness_request,
};
use proptest::prelude::*;

/// W-6: UDP payload that every IPv6 path takes in one piece (RFC 8200: 1,280 - 40 - 8).
const SMALLEST_MTU_PAYLOAD: usize = 1_232;

fn header(version: WireVersion) -> DataHeader {
    DataHeader {
        version,
        tag: 1,
        channel: ChannelId::new(1).expect("not 0"),
        link: LinkId(1),
        retransmission: true,
        short: true,
        cycle: 0x0001_0002,
        sequence: 3,
        total_size: 4,
        expiry: Duration::ZERO,
        force_ack: None,
    }
}

fn ack_header(version: WireVersion) -> AckHeader {
    AckHeader {
        version,
        tag: 1,
        channel: ChannelId::new(1).expect("not 0"),
        link: Some(LinkId(1)),
        retransmission: true,
        cycle: 0x0001_0002,
        trigger: Some(3),
        received: None,
    }
}

fn sent_and_read(header: DataHeader) -> DataHeader {
    let mut out = [0; DataHeader::MAX_LEN];
    let len = header.encode(&mut out);
    match parse(&out[..len]).expect("own header") {
        Packet::Data {
            header,
            payload: [],
        } => header,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn a_data_packet_is_read_as_it_was_sent(sent in data_header(), payload: Vec<u8>) {
        let packet = Packet::Data { header: sent, payload: &payload };
        let bytes = encode(&packet);
        prop_assert_eq!(bytes.len(), DataHeader::len(sent.version) + payload.len());
        prop_assert_eq!(parse(&bytes), Ok(packet));
    }

    #[test]
    fn an_ack_is_read_as_it_was_sent((sent, blocks) in ack()) {
        let mut out = [0; MAX_ACK_LEN];
        let len = encode_ack(&sent, blocks.iter().copied(), &mut out);
        let Ok(Packet::Ack(read)) = parse(&out[..len]) else { panic!("{:?}", parse(&out[..len])) };
        prop_assert_eq!(read.header, sent);
        prop_assert_eq!(read.block_count(), blocks.len());
        prop_assert_eq!(len, ack_len(sent.version, blocks.len()));
        prop_assert_eq!(read.blocks().collect::<Vec<_>>(), blocks);
    }

    #[test]
    fn a_heartbeat_is_read_as_it_was_sent((sent, entries) in heartbeat()) {
        let mut out = [0; MAX_HEARTBEAT_LEN];
        let len = encode_heartbeat(&sent, entries.iter().copied(), &mut out);
        let Ok(Packet::Heartbeat(read)) = parse(&out[..len]) else { panic!("not a heartbeat") };
        prop_assert_eq!(read.header, sent);
        prop_assert_eq!(read.group_count(), entries.len());
        prop_assert_eq!(len, heartbeat_len(entries.len()));
        prop_assert_eq!(read.groups().collect::<Vec<_>>(), entries);
    }

    #[test]
    fn a_witness_message_is_read_as_it_was_sent(sent in witness_request(), reply in witness_reply()) {
        for packet in [Packet::WitnessRequest(sent), Packet::WitnessReply(reply)] {
            let bytes = encode(&packet);
            prop_assert_eq!(parse(&bytes), Ok(packet));
        }
    }

    /// The format leaves no freedom: one message has one spelling.
    #[test]
    fn whatever_is_accepted_is_encoded_to_the_same_bytes(
        mut bytes in datagram(),
        edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
    ) {
        for (at, value) in edits {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let Ok(packet) = parse(&bytes) {
            prop_assert_eq!(encode(&packet), bytes);
        }
    }

    /// W-13.
    #[test]
    fn blocks_beyond_150_are_left_out_and_counted_as_received(
        blocks in blocks(2 * MAX_ACK_BLOCKS),
        v2: bool,
    ) {
        let version = if v2 { WireVersion::V2 } else { WireVersion::V1 };
        let received = blocks.iter().map(|(low, high)| high - low + 1).sum();
        let header = AckHeader { received: Some(received), ..ack_header(version) };
        let mut out = [0; MAX_ACK_LEN];
        let len = encode_ack(&header, blocks.iter().copied(), &mut out);
        let Ok(Packet::Ack(read)) = parse(&out[..len]) else { panic!("{:?}", parse(&out[..len])) };
        prop_assert_eq!(read.received, v2.then_some(received));
        let kept = blocks.len().min(MAX_ACK_BLOCKS);
        prop_assert_eq!(read.blocks().collect::<Vec<_>>(), &blocks[..kept]);
    }

    /// W-10, against counting packet by packet.
    #[test]
    fn packets_are_counted_as_they_are_cut(total_size in 0u32..5_000, payload_size in 1u16..200) {
        let mut left = i64::from(total_size);
        let mut packets = 0;
        while left > 0 || packets == 0 {
            left -= i64::from(payload_size);
            packets += 1;
        }
        prop_assert_eq!(packet_count(total_size, payload_size), packets);
    }
}

/// W-10: the smallest MTU of IPv6 takes a protected packet of short pieces, and none is longer than configured.
#[test]
fn a_protected_packet_of_short_pieces_passes_wherever_ipv6_does() {
    let headers = EnvelopeHeader::OVERHEAD + DataHeader::len(WireVersion::V2);
    let longest = piece(u16::MAX, true);
    assert_eq!(usize::from(longest) + headers, SMALLEST_MTU_PAYLOAD);
    for configured in [1, longest - 1, longest, longest + 1, u16::MAX] {
        assert_eq!(piece(configured, true), configured.min(longest));
        assert_eq!(piece(configured, false), configured);
    }
}

/// W-9: a receiver must never take a state for fresher than it is.
#[test]
fn expiry_is_rounded_down_and_stops_at_the_largest() {
    let carried = |version, expiry| {
        sent_and_read(DataHeader {
            expiry,
            ..header(version)
        })
        .expiry
    };
    let (ns, us, ms) = (
        Duration::from_nanos,
        Duration::from_micros,
        Duration::from_millis,
    );
    assert_eq!(carried(WireVersion::V1, ns(1_999_999)), ms(1));
    assert_eq!(carried(WireVersion::V1, ns(999_999)), ms(0));
    assert_eq!(carried(WireVersion::V1, ms(65_536)), ms(65_535));
    assert_eq!(carried(WireVersion::V1, Duration::MAX), ms(65_535));
    assert_eq!(carried(WireVersion::V2, ns(1_999)), us(1));
    assert_eq!(carried(WireVersion::V2, us(1 << 32)), us((1 << 32) - 1));
    assert_eq!(carried(WireVersion::V2, Duration::MAX), us((1 << 32) - 1));
}

#[test]
fn version_1_drops_what_it_cannot_carry() {
    let read = sent_and_read(header(WireVersion::V1));
    let expected = DataHeader {
        tag: 0,
        link: LinkId(0),
        retransmission: false,
        short: false,
        cycle: 2,
        ..header(WireVersion::V1)
    };
    assert_eq!(read, expected);
}

/// W-19: without a trigger there is nothing that could have been a retransmission.
#[test]
fn a_retransmission_mark_is_sent_only_with_its_trigger() {
    let mut out = [0; MAX_ACK_LEN];
    let len = encode_ack(
        &AckHeader {
            trigger: None,
            ..ack_header(WireVersion::V2)
        },
        [(0, 0)],
        &mut out,
    );
    let Ok(Packet::Ack(read)) = parse(&out[..len]) else {
        panic!("refused")
    };
    assert!(!read.retransmission && read.trigger.is_none());
}

/// W-20.
#[test]
fn received_defaults_to_what_the_blocks_add_up_to() {
    let mut out = [0; MAX_ACK_LEN];
    let len = encode_ack(&ack_header(WireVersion::V2), [(0, 4), (6, 6)], &mut out);
    let Ok(Packet::Ack(read)) = parse(&out[..len]) else {
        panic!("refused")
    };
    assert_eq!(read.received, Some(6));
}

/// W-10.
#[test]
fn version_1_ends_at_65536_packets_and_both_at_32_bits_of_bytes() {
    assert_eq!(max_state_size(WireVersion::V1, 1_454), 65_536 * 1_454);
    assert_eq!(
        packet_count(max_state_size(WireVersion::V1, 1_454), 1_454),
        65_536
    );
    assert_eq!(
        packet_count(max_state_size(WireVersion::V1, 1_454) + 1, 1_454),
        65_537
    );
    assert_eq!(max_state_size(WireVersion::V1, u16::MAX), 65_536 * 65_535);
    assert_eq!(max_state_size(WireVersion::V2, 1), u32::MAX);
    assert_eq!(
        (
            packet_count(0, 1_454),
            packet_count(0, 0),
            packet_count(7, 0)
        ),
        (1, 1, 7)
    );
    assert_eq!(packet_count(u32::MAX, 1), u32::MAX);
}

/// W-6.
#[test]
fn the_longest_control_messages_fit_every_ipv6_path() {
    const ROOM: usize = SMALLEST_MTU_PAYLOAD - EnvelopeHeader::OVERHEAD;
    const { assert!(MAX_ACK_LEN <= ROOM && MAX_HEARTBEAT_LEN <= ROOM) };
    assert_eq!((MAX_ACK_BLOCKS, MAX_GROUPS), (145, 32));
    assert_eq!(
        (WireVersion::V1.header_len(), WireVersion::V2.header_len()),
        (18, 30)
    );
}

/// W-28.
#[test]
fn a_witness_is_no_lever_for_flooding_others() {
    const { assert!(WitnessReply::LEN < WitnessRequest::LEN) };
}
