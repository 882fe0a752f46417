//! The bytes before and behind a protected message (W-32).

use bumpless_base::LinkId;
use bumpless_wire::{EnvelopeHeader, Field, WireError};

const HEADER: EnvelopeHeader = EnvelopeHeader {
    key: 0x0405,
    from: 6,
    to: 7,
    link: LinkId(2),
    origin: 0x090A_0B0C_0D0E_0F10,
    counter: 0x1112_1314_1516,
};

/// By hand, from the table.
const BYTES: [u8; 23] = [
    0x30, 0x01, 0x00, 0x01, 0x04, 0x05, 0x06, 0x07, 0x02, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F,
    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
];

/// An envelope around nothing.
fn shortest() -> Vec<u8> {
    [&BYTES[..], &[0; 16]].concat()
}

#[test]
fn each_field_stands_where_the_table_has_it() {
    assert_eq!(HEADER.encode(), BYTES);
    assert_eq!(EnvelopeHeader::parse(&shortest()), Ok(HEADER));
    assert!(EnvelopeHeader::is_one(&BYTES) && !EnvelopeHeader::is_one(&BYTES[1..]));
}

#[test]
fn what_is_no_envelope_is_refused_with_its_cause() {
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut datagram = shortest();
        change(&mut datagram);
        EnvelopeHeader::parse(&datagram).expect_err("it is refused")
    };
    let truncated = |needed, got| WireError::Truncated { needed, got };
    assert_eq!(refused(&|d| d.truncate(38)), truncated(39, 38));
    assert_eq!(refused(&|d| d.truncate(3)), truncated(4, 3));
    assert_eq!(refused(&|d| d[0] = 0x20), WireError::UnknownType(0x2001));
    let (htype, version) = (0x3001, 2);
    let unknown = WireError::UnknownVersion { htype, version };
    assert_eq!(refused(&|d| d[3] = 2), unknown);
    assert_eq!(refused(&|d| d[8] = 8), WireError::Malformed(Field::Link));
}

#[test]
fn an_envelope_is_no_message_itself() {
    let unknown = Err(WireError::UnknownType(0x3001));
    assert_eq!(bumpless_wire::parse(&shortest()), unknown);
}
