//! What the wire's tests share: reading vector files, showing a message as text, encoding any message.

#![allow(dead_code, reason = "each test program uses a part")]

pub mod strategies;

use bumpless_wire::{
    Ack, DataHeader, GroupEntry, GroupFlags, Heartbeat, MAX_ACK_LEN, MAX_HEARTBEAT_LEN, NO_HOLDER,
    NO_REFERENCE, Packet, WireError, WireVersion, WitnessReply, WitnessRequest, encode_ack,
    encode_heartbeat,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// Decoded fields by name.
pub type Fields = BTreeMap<String, String>;

/// One entry of a vector file (W-30).
pub struct Vector {
    pub name: String,
    pub bytes: Vec<u8>,
    pub fields: Fields,
}

/// The vectors of `spec/vectors/<file>`.
pub fn vectors(file: &str) -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../spec/vectors")
        .join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut vectors: Vec<Vector> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("").trim();
        if let Some(name) = line.strip_prefix("vector ") {
            let name = format!("{file}: {name}");
            vectors.push(Vector {
                name,
                bytes: Vec::new(),
                fields: Fields::new(),
            });
        } else if !line.is_empty() {
            let vector = vectors
                .last_mut()
                .unwrap_or_else(|| panic!("{file}: no vector yet: {line}"));
            match line.split_once(" = ") {
                Some((key, value)) => {
                    let old = vector.fields.insert(key.into(), value.into());
                    assert_eq!(old, None, "{}: {key} twice", vector.name);
                }
                None => vector.bytes.extend(bytes(line)),
            }
        }
    }
    assert!(!vectors.is_empty(), "{file} has no vector");
    vectors
}

fn bytes(line: &str) -> Vec<u8> {
    let digits: Vec<u32> = line
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| {
            c.to_digit(16)
                .unwrap_or_else(|| panic!("not hexadecimal: {line}"))
        })
        .collect();
    assert!(digits.len().is_multiple_of(2), "half a byte: {line}");
    digits
        .chunks(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect()
}

/// Names of every file of vectors.
pub fn vector_files() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../spec/vectors");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("spec/vectors")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("name")
        })
        .filter(|name| name.ends_with(".txt"))
        .collect();
    files.sort();
    files
}

/// The message's bytes, from the encoder.
pub fn encode(packet: &Packet<'_>) -> Vec<u8> {
    match packet {
        Packet::Data { header, payload } => {
            let mut out = [0; DataHeader::MAX_LEN];
            let len = header.encode(&mut out);
            [&out[..len], payload].concat()
        }
        Packet::Ack(ack) => {
            let mut out = [0; MAX_ACK_LEN];
            let len = encode_ack(&ack.header, ack.blocks(), &mut out);
            out[..len].to_vec()
        }
        Packet::Heartbeat(heartbeat) => {
            let mut out = [0; MAX_HEARTBEAT_LEN];
            let len = encode_heartbeat(&heartbeat.header, heartbeat.groups(), &mut out);
            out[..len].to_vec()
        }
        Packet::WitnessRequest(request) => {
            let mut out = [0; WitnessRequest::LEN];
            let len = request.encode(&mut out);
            out[..len].to_vec()
        }
        Packet::WitnessReply(reply) => {
            let mut out = [0; WitnessReply::LEN];
            let len = reply.encode(&mut out);
            out[..len].to_vec()
        }
    }
}

/// A message as the fields of a vector.
pub fn describe(packet: &Packet<'_>) -> Fields {
    match packet {
        Packet::Data { header, payload } => describe_data(header, payload),
        Packet::Ack(ack) => describe_ack(ack),
        Packet::Heartbeat(heartbeat) => describe_heartbeat(heartbeat),
        Packet::WitnessRequest(request) => describe_request(request),
        Packet::WitnessReply(reply) => describe_reply(reply),
    }
}

/// A refusal as the fields of a vector.
pub fn describe_error(error: &WireError) -> Fields {
    let text = match error {
        WireError::Truncated { needed, got } => format!("truncated: needs {needed}, has {got}"),
        WireError::UnknownType(htype) => format!("unknown type 0x{htype:04x}"),
        WireError::UnknownVersion { htype, version } => {
            format!("unknown version {version} of type 0x{htype:04x}")
        }
        WireError::Malformed(field) => format!("malformed {}", field.name()),
        WireError::Corrupt => "corrupt".into(),
    };
    fields([("error", text), ("counter", error.counter().name().into())])
}

fn fields<const N: usize>(pairs: [(&str, String); N]) -> Fields {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_string(), value))
        .collect()
}

fn or_none<T: Display>(value: Option<T>) -> String {
    value.map_or("none".into(), |value| value.to_string())
}

fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.into()
}

fn hex32(value: u32) -> String {
    format!("0x{value:08x}")
}

fn hex64(value: u64) -> String {
    format!("0x{value:016x}")
}

fn describe_data(header: &DataHeader, payload: &[u8]) -> Fields {
    let payload = match payload {
        [] => "empty".into(),
        payload => payload.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let mut all = fields([
        ("message", "data".into()),
        ("version", header.version.number().to_string()),
        ("channel", header.channel.to_string()),
        ("cycle", header.cycle.to_string()),
        ("sequence", header.sequence.to_string()),
        ("total_size", header.total_size.to_string()),
        ("expiry_us", header.expiry.as_micros().to_string()),
        ("force_ack", or_none(header.force_ack)),
        ("payload", payload),
    ]);
    let carried = fields([
        ("tag", hex32(header.tag)),
        ("link", header.link.0.to_string()),
        ("retransmission", yes_or_no(header.retransmission)),
        ("short", yes_or_no(header.short)),
    ]);
    match header.version {
        WireVersion::V2 => all.extend(carried),
        WireVersion::V1 => assert_eq!(
            (
                header.tag,
                header.link.0,
                header.retransmission,
                header.short
            ),
            (0, 0, false, false)
        ),
    }
    all
}

fn describe_ack(ack: &Ack<'_>) -> Fields {
    let blocks: Vec<String> = ack
        .blocks()
        .map(|(low, high)| format!("{low}-{high}"))
        .collect();
    assert_eq!(blocks.len(), ack.block_count());
    let mut all = fields([
        ("message", "ack".into()),
        ("version", ack.version.number().to_string()),
        ("channel", ack.channel.to_string()),
        ("cycle", ack.cycle.to_string()),
        (
            "blocks",
            if blocks.is_empty() {
                "none".into()
            } else {
                blocks.join(" ")
            },
        ),
    ]);
    let carried = fields([
        ("tag", hex32(ack.tag)),
        ("link", or_none(ack.link.map(|link| link.0))),
        ("retransmission", yes_or_no(ack.retransmission)),
        ("trigger", or_none(ack.trigger)),
        ("received", or_none(ack.received)),
    ]);
    match ack.version {
        WireVersion::V2 => all.extend(carried),
        WireVersion::V1 => {
            assert_eq!((ack.tag, ack.link, ack.retransmission), (0, None, false));
            assert_eq!((ack.trigger, ack.received), (None, None));
        }
    }
    all
}

fn describe_heartbeat(heartbeat: &Heartbeat<'_>) -> Fields {
    let mut all = fields([
        ("message", "heartbeat".into()),
        ("pair", hex32(heartbeat.pair)),
        ("fingerprint", hex64(heartbeat.fingerprint)),
        ("from", heartbeat.from.0.to_string()),
        ("to", heartbeat.to.0.to_string()),
        ("link", heartbeat.link.0.to_string()),
        ("session", hex64(heartbeat.session)),
        ("challenge", hex64(heartbeat.challenge)),
        ("echo_session", hex64(heartbeat.echo_session)),
        ("echo_challenge", hex64(heartbeat.echo_challenge)),
        ("sent_at", heartbeat.sent_at.to_string()),
        ("echo_sent_at", heartbeat.echo_sent_at.to_string()),
        ("lease_echo", heartbeat.lease_echo.to_string()),
        ("echo_delay", heartbeat.echo_delay.to_string()),
        ("next", hex64(heartbeat.next)),
        ("full_echo", heartbeat.full_echo.to_string()),
        ("padded", yes_or_no(heartbeat.padded)),
        ("groups", heartbeat.group_count().to_string()),
    ]);
    for (index, entry) in heartbeat.groups().enumerate() {
        all.insert(format!("group.{index}"), describe_entry(&entry));
    }
    all
}

fn describe_entry(entry: &GroupEntry) -> String {
    let names = [
        (GroupFlags::SYNCED, "synced"),
        (GroupFlags::GRANTING, "granting"),
        (GroupFlags::SWITCHOVER_REQUEST, "switchover_request"),
        (GroupFlags::HANDING_OVER, "handing_over"),
        (GroupFlags::ELIGIBLE, "eligible"),
        (GroupFlags::SIMPLEX, "simplex"),
        (GroupFlags::DUPLICATE, "duplicate"),
        (GroupFlags::LAPSED, "lapsed"),
        (GroupFlags::NEWEST, "newest"),
        (GroupFlags::UNFIT, "unfit"),
        (GroupFlags::HELD, "held"),
        (GroupFlags::HELD_ALL, "held_all"),
    ];
    let set = names.iter().filter(|(flag, _)| entry.flags.contains(*flag));
    let set: Vec<&str> = set.map(|(_, name)| *name).collect();
    let flags = if set.is_empty() {
        "none".into()
    } else {
        set.join(",")
    };
    let reference = (entry.reference != NO_REFERENCE).then_some(entry.reference);
    format!(
        "group {} role {} flags {flags} epoch {} used {} token {} reference_version {} reference {}",
        entry.group,
        format!("{:?}", entry.role).to_lowercase(),
        entry.epoch,
        entry.used,
        hex32(entry.token),
        entry.reference_version,
        or_none(reference)
    )
}

fn describe_request(request: &WitnessRequest) -> Fields {
    fields([
        ("message", "witness request".into()),
        ("pair", hex32(request.pair)),
        ("group", request.group.to_string()),
        ("node", request.node.0.to_string()),
        ("candidates", request.candidates.to_string()),
        ("epoch", request.epoch.to_string()),
        ("session", hex64(request.session)),
        ("sent_at", request.sent_at.to_string()),
        ("token", hex64(request.token)),
        ("witness_session", hex64(request.witness_session)),
        ("lease_us", request.lease_us.to_string()),
        ("kind", format!("{:?}", request.kind).to_lowercase()),
    ])
}

fn describe_reply(reply: &WitnessReply) -> Fields {
    fields([
        ("message", "witness reply".into()),
        ("pair", hex32(reply.pair)),
        ("group", reply.group.to_string()),
        ("node", reply.node.0.to_string()),
        ("kind", format!("{:?}", reply.kind).to_lowercase()),
        ("granted", yes_or_no(reply.granted)),
        ("old", yes_or_no(reply.old)),
        (
            "holder",
            or_none((reply.holder != NO_HOLDER).then_some(reply.holder)),
        ),
        ("epoch", reply.epoch.to_string()),
        ("holder_silent_us", reply.holder_silent_us.to_string()),
        ("retry_after_us", reply.retry_after_us.to_string()),
        ("echo_sent_at", reply.echo_sent_at.to_string()),
        ("witness_session", hex64(reply.witness_session)),
        ("token", hex64(reply.token)),
    ])
}
