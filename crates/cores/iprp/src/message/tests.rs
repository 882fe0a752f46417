use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;

fn address(v4: bool) -> impl Strategy<Value = IpAddr> {
    any::<[u8; 16]>().prop_map(move |bytes| match v4 {
        true => Ipv4Addr::new(10, bytes[0], bytes[1], bytes[2]).into(),
        false => {
            let mut octets = bytes;
            octets[0] = 0x20;
            Ipv6Addr::from(octets).into()
        }
    })
}

fn subject() -> impl Strategy<Value = Subject> {
    let of = |v4| (address(v4), address(v4), any::<(u8, bool, u16)>());
    let any = prop_oneof![of(true), of(false)];
    any.prop_map(
        |(source, destination, (protocol, by_source, port))| Subject {
            source,
            scope: Scope {
                protocol,
                side: match by_source {
                    true => Side::Source,
                    false => Side::Destination,
                },
                port,
                destination,
            },
        },
    )
}

fn networks() -> impl Strategy<Value = Networks> {
    let some = proptest::collection::vec((0u8..16, any::<bool>().prop_flat_map(address)), 0..12);
    some.prop_map(|some| {
        let mut networks = Networks::default();
        for (ind, address) in some {
            let ind = Ind::new(ind).unwrap();
            let _ = networks.push(Network { ind, address });
        }
        networks
    })
}

fn message() -> impl Strategy<Value = Message> {
    let offer = any::<(u64, u64, u32, [u8; 32])>().prop_map(|(process, tag, number, key)| Offer {
        process: process | 1,
        tag,
        number,
        material: Zeroizing::new(key),
    });
    prop_oneof![
        (subject(), 1u32.., proptest::option::of(offer), networks()).prop_map(
            |(subject, every_ms, offer, networks)| Message::Advertisement {
                subject,
                every_ms,
                offer,
                networks
            }
        ),
        (subject(), 1u64.., any::<u32>(), networks()).prop_map(
            |(subject, process, space, networks)| Message::Acknowledgement {
                subject,
                process,
                space,
                networks
            }
        ),
        subject().prop_map(|subject| Message::Withdrawal { subject }),
    ]
}

proptest! {
    #[test]
    fn a_message_is_read_as_it_was_written_and_refused_if_cut_or_longer(message in message()) {
        let mut out = [0; MAX_MESSAGE];
        let len = message.encode(&mut out);
        prop_assert_eq!(&Message::decode(&out[..len]), &Ok(message));
        for cut in 0..len {
            prop_assert_eq!(Message::decode(&out[..cut]), Err(MessageError::Malformed));
        }
        if len < MAX_MESSAGE {
            prop_assert_eq!(Message::decode(&out[..=len]), Err(MessageError::Malformed));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_written_as_they_were_read(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..MAX_MESSAGE),
        kind in 0u8..5,
    ) {
        if let [version, second, ..] = &mut bytes[..] {
            (*version, *second) = (VERSION, kind);
        }
        if let Ok(message) = Message::decode(&bytes) {
            let mut out = [0; MAX_MESSAGE];
            let len = message.encode(&mut out);
            prop_assert_eq!(&out[..len], &bytes[..]);
        }
    }
}
