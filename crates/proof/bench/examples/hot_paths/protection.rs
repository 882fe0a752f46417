//! Sealing and opening what protects packets.

use std::net::SocketAddr;
use std::sync::Arc;

use bumpless_base::{Instant, LinkId, NodeId, PeerId};
use bumpless_net_linux::Segment;
use bumpless_node::data_plane::addresses::{Addresses, Correspondent};
use bumpless_node::data_plane::protection::{BURST, Protection, Sender};
use bumpless_secure::{Keyring, RingSuite, Secret};

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const PARTNER: Correspondent = Correspondent::Partner(PeerId(0));
/// Of the longest message on Ethernet over IPv4.
const PAYLOAD: usize = 1403;
const HEADER: usize = 30;

/// Full packets in a burst.
pub const PACKETS: u64 = BURST as u64;

fn protection(node: u8) -> Protection<RingSuite> {
    let there = SocketAddr::from(([127, 0, 0, 1], 4700));
    let addresses = Addresses {
        nodes: vec![NodeId(1 - node)],
        partners: vec![Some(there)],
        references: Vec::new(),
    };
    let keys = Keyring::new(vec![Secret::new([7; 32])]).expect("one key is sound");
    let sender = Sender {
        node: NodeId(node),
        link: LinkId(0),
        origin: node.into(),
    };
    let longest = (HEADER + PAYLOAD) as u16;
    Protection::sealed(&Arc::new(keys), sender, &addresses, longest, NOW)
}

/// Seals bursts; opens them, too, if `opens`.
fn exchange(rounds: u64, opens: bool) {
    let (mut left, mut right) = (protection(0), protection(1));
    let (header, payload) = ([1; HEADER], [2; PAYLOAD]);
    let messages = [Segment {
        header: &header,
        payload: &payload,
    }; BURST];
    let mut buffer = [0; 2048];
    for _ in 0..rounds {
        let sealed = left.seal(PARTNER, &messages).expect("there is room");
        let sealed = sealed.expect("it is protected");
        let mut room = [Segment::default(); BURST];
        for datagram in sealed.datagrams(&mut room) {
            let arrived = &mut buffer[..datagram.len()];
            if opens {
                arrived.copy_from_slice(datagram.header);
                assert!(right.open(PARTNER, arrived, NOW).is_ok());
            }
        }
    }
}

/// Seals bursts of full packets.
pub fn seal(rounds: u64) {
    exchange(rounds, false);
}

/// Seals bursts of full packets and opens them.
pub fn seal_and_open(rounds: u64) {
    exchange(rounds, true);
}
