//! Random messages that their clauses allow.

use bumpless_base::{ChannelId, Duration, Epoch, LinkId, NodeId};
use bumpless_wire::{
    AckHeader, DataHeader, GroupEntry, GroupFlags, HeartbeatHeader, MAX_ACK_BLOCKS, MAX_ACK_LEN,
    MAX_GROUPS, MAX_HEARTBEAT_LEN, Role, WireVersion, WitnessKind, WitnessReply, WitnessRequest,
    encode_ack, encode_heartbeat,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub fn version() -> impl Strategy<Value = WireVersion> {
    prop_oneof![Just(WireVersion::V1), Just(WireVersion::V2)]
}

fn channel() -> impl Strategy<Value = ChannelId> {
    (1u16..).prop_map(|raw| ChannelId::new(raw).expect("not 0"))
}

fn link() -> impl Strategy<Value = LinkId> {
    (0u8..8).prop_map(LinkId)
}

/// Numbers of `version`'s width, often small and often close to the wrap.
fn number(version: WireVersion) -> BoxedStrategy<u32> {
    let max = match version {
        WireVersion::V1 => u32::from(u16::MAX),
        WireVersion::V2 => u32::MAX,
    };
    prop_oneof![0..8u32, 0..=max, max - 8..=max].boxed()
}

/// A data packet's header as a receiver reads it: what `version` does not carry has its stated value.
pub fn data_header() -> impl Strategy<Value = DataHeader> {
    version().prop_flat_map(|version| {
        let numbers = (
            number(version),
            number(version),
            any::<u32>(),
            number(version),
        );
        let rest = (
            any::<u32>(),
            channel(),
            link(),
            any::<(bool, bool)>(),
            option::of(channel()),
        );
        (numbers, rest).prop_map(
            move |(numbers, (tag, channel, link, (retransmission, short), force_ack))| {
                let (cycle, sequence, total_size, expiry) = numbers;
                let header = DataHeader {
                    version,
                    tag,
                    channel,
                    link,
                    retransmission,
                    short,
                    cycle,
                    sequence,
                    total_size,
                    expiry: Duration::from_micros(expiry.into()),
                    force_ack,
                };
                match version {
                    WireVersion::V2 => header,
                    WireVersion::V1 => DataHeader {
                        tag: 0,
                        link: LinkId(0),
                        retransmission: false,
                        short: false,
                        expiry: Duration::from_millis(expiry.into()),
                        ..header
                    },
                }
            },
        )
    })
}

/// Ascending blocks with at least one number missing between two of them.
pub fn blocks(most: usize) -> impl Strategy<Value = Vec<(u32, u32)>> {
    let step = prop_oneof![Just(0u32), 0..40u32];
    vec((step.clone(), step), 0..=most).prop_map(|steps| {
        let mut floor = 0;
        let mut blocks = Vec::new();
        for (gap, length) in steps {
            let low = floor + gap;
            blocks.push((low, low + length));
            floor = low + length + 2;
        }
        blocks
    })
}

/// An acknowledgement as a sender reads it.
pub fn ack() -> impl Strategy<Value = (AckHeader, Vec<(u32, u32)>)> {
    let trigger = option::of((any::<u32>(), any::<bool>()));
    let header = (
        version(),
        any::<u32>(),
        channel(),
        option::of(link()),
        any::<u32>(),
        trigger,
    );
    (header, blocks(MAX_ACK_BLOCKS), 0..1000u32).prop_map(|(header, blocks, more)| {
        let (version, tag, channel, link, cycle, trigger) = header;
        let sum: u32 = blocks.iter().map(|(low, high)| high - low + 1).sum();
        let full = AckHeader {
            version,
            tag,
            channel,
            link,
            retransmission: trigger.is_some_and(|(_, retransmission)| retransmission),
            cycle,
            trigger: trigger.map(|(sequence, _)| sequence),
            received: Some(sum + more),
        };
        let header = match version {
            WireVersion::V2 => full,
            WireVersion::V1 => AckHeader {
                tag: 0,
                link: None,
                retransmission: false,
                cycle: cycle & 0xFFFF,
                trigger: None,
                received: None,
                ..full
            },
        };
        (header, blocks)
    })
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![
        Just(Role::Starting),
        Just(Role::Backup),
        Just(Role::Primary),
        Just(Role::Stopped)
    ]
}

fn flags() -> impl Strategy<Value = GroupFlags> {
    any::<[bool; 12]>().prop_map(|on| {
        GroupFlags::EMPTY
            .with(GroupFlags::SYNCED, on[0])
            .with(GroupFlags::GRANTING, on[1])
            .with(GroupFlags::SWITCHOVER_REQUEST, on[2])
            .with(GroupFlags::HANDING_OVER, on[3])
            .with(GroupFlags::ELIGIBLE, on[4])
            .with(GroupFlags::SIMPLEX, on[5])
            .with(GroupFlags::DUPLICATE, on[6])
            .with(GroupFlags::LAPSED, on[7])
            .with(GroupFlags::NEWEST, on[8])
            .with(GroupFlags::UNFIT, on[9])
            .with(GroupFlags::HELD, on[10])
            .with(GroupFlags::HELD_ALL, on[11])
    })
}

fn entry() -> impl Strategy<Value = GroupEntry> {
    let reference = any::<(u8, u16)>();
    (
        any::<u16>(),
        role(),
        any::<(u32, u32)>(),
        flags(),
        reference,
        any::<u32>(),
    )
        .prop_map(|(group, role, epoch, flags, reference, token)| GroupEntry {
            group,
            role,
            epoch: Epoch(epoch.0),
            used: Epoch(epoch.1),
            flags,
            reference: reference.0,
            reference_version: reference.1,
            token,
        })
}

/// A heartbeat and its group entries.
pub fn heartbeat() -> impl Strategy<Value = (HeartbeatHeader, Vec<GroupEntry>)> {
    let ids = (any::<(u32, u64, u8, u8, u32)>(), link(), 1u64..);
    let full = any::<(u64, bool)>();
    (ids, any::<[u64; 7]>(), full, vec(entry(), 0..=MAX_GROUPS)).prop_map(
        |(ids, words, full, entries)| {
            let ((pair, fingerprint, from, to, echo_delay), link, session) = ids;
            let [
                challenge,
                echo_session,
                echo_challenge,
                sent_at,
                echo_sent_at,
                lease_echo,
                next,
            ] = words;
            let header = HeartbeatHeader {
                pair,
                fingerprint,
                from: NodeId(from),
                to: NodeId(to),
                link,
                session,
                challenge,
                echo_session,
                echo_challenge,
                sent_at,
                echo_sent_at,
                echo_delay,
                lease_echo,
                next,
                full_echo: full.0,
                padded: full.1,
            };
            (header, entries)
        },
    )
}

fn kind() -> impl Strategy<Value = WitnessKind> {
    prop_oneof![
        Just(WitnessKind::Renew),
        Just(WitnessKind::Acquire),
        Just(WitnessKind::Release),
        Just(WitnessKind::Observe),
        Just(WitnessKind::RenewSimplex),
        Just(WitnessKind::AcquireLone),
        Just(WitnessKind::Yield)
    ]
}

pub fn witness_request() -> impl Strategy<Value = WitnessRequest> {
    (
        any::<(u32, u16, u8, u32, u32, u64, u64, u64)>(),
        1u8..,
        1u64..,
        kind(),
    )
        .prop_map(|(words, candidates, session, kind)| {
            let (pair, group, node, epoch, lease_us, sent_at, token, witness_session) = words;
            WitnessRequest {
                pair,
                group,
                node: NodeId(node),
                candidates,
                session,
                kind,
                epoch: Epoch(epoch),
                lease_us,
                sent_at,
                token,
                witness_session,
            }
        })
}

pub fn witness_reply() -> impl Strategy<Value = WitnessReply> {
    (
        any::<(u32, u16, u8, bool, bool, u8)>(),
        any::<(u32, u32, u32, u64, u64)>(),
        1u64..,
        kind(),
    )
        .prop_map(
            |((pair, group, node, granted, old, holder), rest, witness_session, kind)| {
                WitnessReply {
                    pair,
                    group,
                    node: NodeId(node),
                    kind,
                    granted,
                    old,
                    holder,
                    epoch: Epoch(rest.0),
                    echo_sent_at: rest.3,
                    holder_silent_us: rest.1,
                    retry_after_us: rest.2,
                    witness_session,
                    token: rest.4,
                }
            },
        )
}

/// The bytes of any message.
pub fn datagram() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (data_header(), vec(any::<u8>(), 0..64)).prop_map(|(header, payload)| {
            let mut out = [0; DataHeader::MAX_LEN];
            let len = header.encode(&mut out);
            [&out[..len], &payload].concat()
        }),
        ack().prop_map(|(header, blocks)| {
            let mut out = [0; MAX_ACK_LEN];
            let len = encode_ack(&header, blocks, &mut out);
            out[..len].to_vec()
        }),
        heartbeat().prop_map(|(header, entries)| {
            let mut out = [0; MAX_HEARTBEAT_LEN];
            let len = encode_heartbeat(&header, entries, &mut out);
            out[..len].to_vec()
        }),
        witness_request().prop_map(|request| {
            let mut out = [0; WitnessRequest::LEN];
            let len = request.encode(&mut out);
            out[..len].to_vec()
        }),
        witness_reply().prop_map(|reply| {
            let mut out = [0; WitnessReply::LEN];
            let len = reply.encode(&mut out);
            out[..len].to_vec()
        }),
    ]
}
