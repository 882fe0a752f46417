//! Datagrams that should not be: by cause of their discard, and at random.

use std::path::Path;

use bumpless_base::{ChannelId, Duration, Epoch, LinkId, NodeId, Random};
use bumpless_config::Config;
use bumpless_wire::{
    Ack, AckHeader, DataHeader, HeartbeatHeader, MAX_ACK_LEN, MAX_HEARTBEAT_LEN, Packet,
    WireVersion, WitnessKind, WitnessReply, encode_ack, encode_heartbeat, parse,
};

/// Where `Flags` stand in a data packet of version 2.
const FLAGS_AT: usize = 11;

/// A datagram and the counter that must show it.
pub type Case = (&'static str, Vec<u8>);

/// What a heartbeat of node 1 to node 0 on network 0 says if it belongs to another incarnation.
pub fn foreign_heartbeat(config: &Path) -> HeartbeatHeader {
    let config = Config::load(config).unwrap();
    HeartbeatHeader {
        pair: config.pair_id(),
        fingerprint: config.fingerprint(),
        from: NodeId(1),
        to: NodeId(0),
        link: LinkId(0),
        session: 0x5e55_1011,
        challenge: 0xc4a1_1e49,
        echo_session: 7,
        echo_challenge: 8,
        sent_at: 1,
        echo_sent_at: 0,
        echo_delay: 0,
        lease_echo: 0,
        next: 0,
        full_echo: 0,
        padded: false,
    }
}

pub fn heartbeat(header: &HeartbeatHeader) -> Vec<u8> {
    let mut bytes = [0; MAX_HEARTBEAT_LEN];
    let length = encode_heartbeat(header, [], &mut bytes);
    bytes[..length].to_vec()
}

pub fn data(header: &DataHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [0; DataHeader::MAX_LEN];
    let length = header.encode(&mut bytes);
    [&bytes[..length], payload].concat()
}

pub fn ack(header: &AckHeader, blocks: &[(u32, u32)]) -> Vec<u8> {
    let mut bytes = [0; MAX_ACK_LEN];
    let length = encode_ack(header, blocks.iter().copied(), &mut bytes);
    bytes[..length].to_vec()
}

/// A data header of channel 1 with the session mark `tag`.
pub fn data_header(tag: u32) -> DataHeader {
    DataHeader {
        version: WireVersion::V2,
        tag,
        channel: ChannelId::new(1).unwrap(),
        link: LinkId(0),
        retransmission: false,
        short: false,
        cycle: 1,
        sequence: 0,
        total_size: 100,
        expiry: Duration::from_millis(1000),
        force_ack: None,
    }
}

/// What anybody who can send from a partner's address can send without having listened.
pub fn blind_cases(config: &Path) -> Vec<Case> {
    let foreign = foreign_heartbeat(config);
    let good = heartbeat(&foreign);
    let header = data_header(0xdead_beef);
    let mut cases: Vec<Case> = vec![
        ("discard_truncated", Vec::new()),
        ("discard_truncated", vec![0]),
        ("discard_truncated", good[..79].to_vec()),
        ("discard_truncated", data(&header, &[])[..29].to_vec()),
        ("discard_unknown_type", vec![0x77; 60]),
        ("discard_unknown_version", vec![0, 1, 0, 9, 0, 0, 0, 0]),
        ("discard_malformed", [&good[..], &[0; 100]].concat()),
        (
            "discard_malformed",
            [&good[..], &vec![0; 60_000][..]].concat(),
        ),
        ("discard_corrupt", with_a_turned_bit(&good)),
        ("discard_malformed", with_an_unknown_flag(&header)),
        ("discard_wrong_session", data(&header, &[0; 100])),
        ("discard_wrong_session", good.clone()),
    ];
    let mut other = header;
    other.version = WireVersion::V1;
    cases.push(("discard_wrong_version", data(&other, &[0; 100])));
    let mut other = foreign;
    other.pair ^= 1;
    cases.push(("discard_wrong_node", heartbeat(&other)));
    let mut other = foreign;
    other.from = NodeId(9);
    cases.push(("discard_wrong_node", heartbeat(&other)));
    // Another configuration, from somebody who does not prove that he is there at present.
    let mut other = foreign;
    other.fingerprint ^= 1;
    cases.push(("discard_wrong_session", heartbeat(&other)));
    cases.push(("discard_wrong_kind", grant(foreign.pair)));
    cases
}

fn with_a_turned_bit(datagram: &[u8]) -> Vec<u8> {
    let mut turned = datagram.to_vec();
    let middle = turned.len() / 2;
    turned[middle] ^= 4;
    turned
}

fn with_an_unknown_flag(header: &DataHeader) -> Vec<u8> {
    let mut datagram = data(header, &[0; 100]);
    datagram[FLAGS_AT] |= 0x40;
    datagram
}

/// A witness's grant for which nobody asked.
pub fn grant(pair: u32) -> Vec<u8> {
    let reply = WitnessReply {
        pair,
        group: 0,
        node: NodeId(0),
        kind: WitnessKind::Acquire,
        granted: true,
        old: false,
        holder: 0,
        epoch: Epoch(1_000_000),
        echo_sent_at: 1,
        holder_silent_us: 0,
        retry_after_us: 0,
        witness_session: 1,
        token: 1,
    };
    let mut bytes = [0; WitnessReply::LEN];
    let length = reply.encode(&mut bytes);
    bytes[..length].to_vec()
}

/// What somebody can send who has heard a data packet of the primary.
pub fn informed_cases(heard: &DataHeader) -> Vec<Case> {
    let mut channel = *heard;
    channel.channel = ChannelId::new(999).unwrap();
    let mut size = *heard;
    // A later cycle whose sizes contradict its sequence number.
    (size.cycle, size.sequence) = (heard.cycle.wrapping_add(1_000), 77);
    let mut old = *heard;
    old.cycle = heard.cycle.wrapping_sub(5);
    vec![
        ("discard_unknown_channel", data(&channel, &[0; 100])),
        ("discard_wrong_size", data(&size, &[0; 100])),
        (
            "discard_old_cycle",
            data(&old, &vec![0; heard.total_size as usize]),
        ),
    ]
}

/// The header of a data packet of version 2, if `datagram` starts with one.
pub fn data_in(datagram: &[u8]) -> Option<DataHeader> {
    match parse(datagram) {
        Ok(Packet::Data { header, .. }) => Some(header),
        _ => None,
    }
}

/// The header of an acknowledgement.
pub fn ack_in(datagram: &[u8]) -> Option<AckHeader> {
    match parse(datagram) {
        Ok(Packet::Ack(Ack { header, .. })) => Some(header),
        _ => None,
    }
}

/// Bytes at random, every third time behind the start of a real message.
pub fn random(random: &mut Random) -> Vec<u8> {
    let length = random.below(1500) as usize;
    let mut bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
    if length >= 4 && random.chance(0.33) {
        let types: [u16; 5] = [0x0001, 0x1001, 0x2001, 0x2002, 0x2003];
        let htype = types[random.below(5) as usize];
        bytes[..2].copy_from_slice(&htype.to_be_bytes());
        bytes[2..4].copy_from_slice(&(1 + random.below(2) as u16).to_be_bytes());
    }
    bytes
}
