//! What a frame is for, beside a slow reader made of `etherparse`'s parts (V-2 to V-9), and by hand.

mod recipe;

use bumpless_guard::{MAX_EXTENSIONS, Purpose, Transport, classify};
use etherparse::{
    Ethernet2HeaderSlice, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice,
    Ipv6RawExtHeaderSlice, PacketBuilder, SingleVlanHeaderSlice, SlicedPacket, TcpHeaderSlice,
    TransportSlice, UdpHeaderSlice,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use recipe::{Recipe, recipes};
use std::net::IpAddr;

/// The same judgement, header by header, each read by the library. `None`: unknown.
fn slow(frame: &[u8]) -> Option<Purpose> {
    let ethernet = Ethernet2HeaderSlice::from_slice(frame).ok()?;
    let mut kind = ethernet.ether_type().0;
    let mut rest = &frame[ethernet.slice().len()..];
    let mut tags = 0;
    while [0x8100, 0x88a8, 0x9100].contains(&kind) {
        let tag = SingleVlanHeaderSlice::from_slice(rest).ok()?;
        kind = tag.ether_type().0;
        rest = &rest[tag.slice().len()..];
        tags += 1;
    }
    if tags > 2 {
        return None;
    }
    match kind {
        0x0806 => Some(Purpose::Resolution {
            remote: sender_of_arp(rest),
        }),
        0x0800 => slow_ipv4(rest),
        0x86dd => slow_ipv6(rest),
        _ => None,
    }
}

/// Field by field (RFC 826); `etherparse` refuses what is cut behind the sender.
fn sender_of_arp(packet: &[u8]) -> Option<IpAddr> {
    let word = |at| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let is_of_ipv4 = word(0)? == 1 && word(2)? == 0x0800 && packet.get(4..6)? == [6, 4];
    let sender: &[u8; 4] = packet.get(14..18)?.first_chunk()?;
    is_of_ipv4.then(|| IpAddr::from(*sender))
}

fn slow_ipv4(packet: &[u8]) -> Option<Purpose> {
    let header = Ipv4HeaderSlice::from_slice(packet).ok()?;
    let packet = packet.get(..usize::from(header.total_len()))?;
    let payload = packet.get(header.slice().len()..)?;
    if header.is_fragmenting_payload() {
        return Some(Purpose::Fragment);
    }
    match header.protocol().0 {
        1 => match payload.first() {
            Some(0) => Some(Purpose::EchoReply {
                remote: header.source_addr().into(),
            }),
            _ => Some(Purpose::Icmp),
        },
        protocol => slow_ports(protocol, header.source_addr().into(), payload),
    }
}

fn slow_ipv6(packet: &[u8]) -> Option<Purpose> {
    let header = Ipv6HeaderSlice::from_slice(packet).ok()?;
    let mut rest = packet[40..].get(..usize::from(header.payload_length()))?;
    let mut next = header.next_header().0;
    let mut seen = 0;
    while [0, 43, 44, 60].contains(&next) {
        if next == 0 && seen > 0 {
            return None;
        }
        let len;
        if next == 44 {
            let fragment = Ipv6FragmentHeaderSlice::from_slice(rest).ok()?;
            if fragment.is_fragmenting_payload() {
                // Extensions before it count, too.
                return (seen <= MAX_EXTENSIONS).then_some(Purpose::Fragment);
            }
            (next, len) = (fragment.next_header().0, fragment.slice().len());
        } else {
            let extension = Ipv6RawExtHeaderSlice::from_slice(rest).ok()?;
            (next, len) = (extension.next_header().0, extension.slice().len());
        }
        rest = &rest[len..];
        seen += 1;
    }
    if seen > MAX_EXTENSIONS {
        return None;
    }
    match next {
        58 => match rest.first() {
            Some(129) => Some(Purpose::EchoReply {
                remote: header.source_addr().into(),
            }),
            Some(133..=137) if header.hop_limit() == 255 => Some(Purpose::Resolution {
                remote: Some(header.source_addr().into()),
            }),
            _ => Some(Purpose::Icmp),
        },
        protocol => slow_ports(protocol, header.source_addr().into(), rest),
    }
}

fn slow_ports(protocol: u8, remote: IpAddr, payload: &[u8]) -> Option<Purpose> {
    let (transport, remote_port, port) = match protocol {
        17 => {
            let header = UdpHeaderSlice::from_slice(payload).ok()?;
            (
                Transport::Udp,
                header.source_port(),
                header.destination_port(),
            )
        }
        6 => {
            let header = TcpHeaderSlice::from_slice(payload).ok()?;
            (
                Transport::Tcp,
                header.source_port(),
                header.destination_port(),
            )
        }
        _ => return None,
    };
    Some(Purpose::Port {
        transport,
        remote,
        remote_port,
        port,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        // Beside this file.
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::with_cases(1000)
    })]

    #[test]
    fn every_frame_is_for_what_a_slow_reader_says(recipe in recipes()) {
        let frame = recipe.frame();
        let fast = classify(&frame, frame.len());
        prop_assert_eq!(fast, slow(&frame).unwrap_or(Purpose::Unknown), "{:02x?}", frame);
        // The library as a whole, where it accepts the frame: it looks through authentication headers and more tags, too.
        let whole = SlicedPacket::from_ethernet(&frame).ok().and_then(|packet| packet.transport);
        if let (Purpose::Port { remote_port, port, transport, .. }, Some(whole)) = (fast, whole) {
            let found = match &whole {
                TransportSlice::Udp(udp) => (Transport::Udp, udp.source_port(), udp.destination_port()),
                TransportSlice::Tcp(tcp) => (Transport::Tcp, tcp.source_port(), tcp.destination_port()),
                other => return Err(TestCaseError::fail(format!("{other:?} of {frame:02x?}"))),
            };
            prop_assert_eq!(found, (transport, remote_port, port));
        }
    }

    #[test]
    fn random_bytes_are_for_what_a_slow_reader_says(frame in vec(any::<u8>(), 0..100)) {
        prop_assert_eq!(classify(&frame, frame.len()), slow(&frame).unwrap_or(Purpose::Unknown));
    }

    /// V-3: the judgement needs no byte beyond the headers, and without one of theirs it is unknown.
    #[test]
    fn the_beginning_of_a_frame_suffices(recipe in recipes(), at in 0usize..200) {
        let frame = recipe.frame();
        let whole = classify(&frame, frame.len());
        let begun = classify(&frame[..at.min(frame.len())], frame.len());
        prop_assert!(begun == whole || begun == Purpose::Unknown || {
            // The type of an ICMP message lies beyond the cut, or the sender of ARP.
            match begun {
                Purpose::Icmp => matches!(whole, Purpose::Resolution { .. } | Purpose::EchoReply { .. }),
                Purpose::Resolution { remote: None } => matches!(whole, Purpose::Resolution { .. }),
                _ => false,
            }
        }, "{:?} {:?}", begun, whole);
        if at >= 128 && recipe.extensions.is_empty() {
            prop_assert_eq!(begun, whole);
        }
    }
}

fn udp(tags: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [3; 6]);
    let ends = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let written = match tags {
        0 => builder
            .ipv4(ends.0, ends.1, 64)
            .udp(1000, 4700)
            .write(&mut frame, &[7; 30]),
        _ => {
            let id = |id: u16| id.try_into().expect("a VLAN's number");
            let tagged = builder.double_vlan(id(1), id(2));
            tagged
                .ipv4(ends.0, ends.1, 64)
                .udp(1000, 4700)
                .write(&mut frame, &[7; 30])
        }
    };
    written.expect("there is room");
    frame
}

#[test]
fn a_datagram_is_known_by_its_port_with_tags_and_without() {
    let expected = Purpose::Port {
        transport: Transport::Udp,
        remote: [10, 0, 0, 1].into(),
        remote_port: 1000,
        port: 4700,
    };
    for tags in [0, 2] {
        let frame = udp(tags);
        assert_eq!(classify(&frame, frame.len()), expected);
        // Of the payload nothing is needed, of the header everything.
        let ports_end = frame.len() - 30 - 4;
        assert_eq!(classify(&frame[..ports_end], frame.len()), expected);
        assert_eq!(
            classify(&frame[..ports_end - 1], frame.len()),
            Purpose::Unknown
        );
        // A frame that is shorter than its IP packet says so by its length.
        assert_eq!(
            classify(&frame[..ports_end], frame.len() - 1),
            Purpose::Unknown
        );
    }
}

/// Each was once judged otherwise by one of both.
#[test]
fn frames_that_were_judged_otherwise_are_for_what_a_slow_reader_says() {
    let plain = Recipe {
        tags: vec![],
        kind: 0x86dd,
        options: 0,
        fragment: 0,
        extensions: vec![],
        protocol: 17,
        hop_limit: 0,
        payload: vec![],
        padding: 0,
        edits: vec![],
        keep: usize::MAX,
    };
    let padded = Recipe {
        protocol: 58,
        payload: vec![133; 6],
        padding: 1,
        ..plain.clone()
    };
    let first_fragment = Recipe {
        kind: 0x0800,
        fragment: 0x2000,
        hop_limit: 255,
        payload: vec![0; 5],
        ..plain.clone()
    };
    let empty_fragment = Recipe {
        extensions: vec![(44, 0, 1)],
        ..plain
    };
    for recipe in [padded, first_fragment, empty_fragment] {
        let frame = recipe.frame();
        let judged = classify(&frame, frame.len());
        assert_eq!(
            judged,
            slow(&frame).unwrap_or(Purpose::Unknown),
            "{recipe:?}"
        );
    }
}

/// V-6: whoever floods with fragments or echo requests shares no budget with finding addresses.
#[test]
fn neighbour_discovery_from_beyond_a_router_is_icmp() {
    let recipe = |hop_limit| Recipe {
        tags: vec![],
        kind: 0x86dd,
        options: 0,
        fragment: 0,
        extensions: vec![],
        protocol: 58,
        hop_limit,
        payload: vec![135, 0, 0, 0],
        padding: 0,
        edits: vec![],
        keep: usize::MAX,
    };
    let judged = |hop_limit| {
        let frame = recipe(hop_limit).frame();
        classify(&frame, frame.len())
    };
    let remote = Some([0xfd; 16].into());
    assert_eq!(judged(255), Purpose::Resolution { remote });
    assert_eq!(judged(254), Purpose::Icmp);
}

/// V-6: who asks or answers is known of ARP for IPv4, with tags and without.
#[test]
fn arp_tells_who_asks_if_it_is_of_ipv4_and_reaches_so_far() {
    let remote = Some([10, 0, 0, 1].into());
    for tags in [&[][..], &[0x81, 0, 0, 7]] {
        let mut frame = vec![0x11; 12];
        frame.extend(tags);
        frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
        let sender = frame.len() + 6;
        frame.extend([0x22; 6]);
        frame.extend([10, 0, 0, 1]);
        frame.extend([0x33; 10]);
        let judged = |frame: &[u8]| classify(frame, frame.len());
        assert_eq!(judged(&frame), Purpose::Resolution { remote });
        assert_eq!(judged(&frame[..sender + 4]), Purpose::Resolution { remote });
        let nobody = Purpose::Resolution { remote: None };
        assert_eq!(judged(&frame[..sender + 3]), nobody);
        // Another kind of hardware, of protocol, of lengths.
        for (at, other) in [(1, 6), (2, 0), (4, 8), (5, 16)] {
            let mut frame = frame.clone();
            frame[12 + tags.len() + 2 + at] = other;
            assert_eq!(judged(&frame), nobody, "{at}");
        }
    }
}
