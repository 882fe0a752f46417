//! One datagram: every wire parser.

use bumpless_wire::{
    DataHeader, Field, MAX_ACK_LEN, MAX_HEARTBEAT_LEN, Packet, WireError, WitnessReply,
    WitnessRequest, encode_ack, encode_heartbeat, parse,
};

/// Reads `datagram` whole, cut and with bytes added.
///
/// # Panics
/// If it is accepted and encoded to other bytes, if a shorter or longer one is not refused as
/// such, or if a refusal lacks its cause (W-3, W-4).
pub fn run(datagram: &[u8]) {
    match parse(datagram) {
        Ok(packet) => {
            assert_eq!(encode(&packet), datagram, "one message has one spelling");
            check_cuts(datagram, &packet);
            check_trailing(datagram, &packet);
        }
        Err(error) => check_refusal(datagram, &error),
    }
}

/// The message's bytes, from the encoder.
pub(crate) fn encode(packet: &Packet<'_>) -> Vec<u8> {
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

fn check_refusal(datagram: &[u8], error: &WireError) {
    assert!(!error.to_string().is_empty());
    assert!(error.counter().name().starts_with("discard_"));
    if let WireError::Truncated { needed, got } = *error {
        assert!(
            got == datagram.len() && needed > got,
            "{error}: {datagram:02x?}"
        );
    }
}

/// A shorter message is refused as such; a data packet may also have lost payload only.
fn check_cuts(datagram: &[u8], whole: &Packet<'_>) {
    for len in 0..datagram.len() {
        match (whole, parse(&datagram[..len])) {
            (_, Err(error @ WireError::Truncated { needed, .. })) => {
                check_refusal(&datagram[..len], &error);
                assert!(needed <= datagram.len());
            }
            (
                Packet::Data { header, payload },
                Ok(Packet::Data {
                    header: cut,
                    payload: left,
                }),
            ) => {
                assert!(*header == cut && left.len() < payload.len() && payload.starts_with(left));
                // What holds for one piece of payload missing holds for more.
                return;
            }
            (_, other) => panic!("{len} of {datagram:02x?}: {other:?}"),
        }
    }
}

fn check_trailing(datagram: &[u8], whole: &Packet<'_>) {
    let longer = [datagram, &[0]].concat();
    match (whole, parse(&longer)) {
        (Packet::Data { payload, .. }, Ok(Packet::Data { payload: more, .. })) => {
            assert_eq!(more.len(), payload.len() + 1);
        }
        (_, result) => assert_eq!(result, Err(WireError::Malformed(Field::Length))),
    }
}
