//! Secrets and keys that change.

use super::*;

#[test]
fn a_secret_changes_without_a_gap_and_an_unknown_one_is_named() {
    let (old, both, new) = (keys(&[1]), keys(&[2, 1]), keys(&[2]));
    let (mut left, mut right) = (sealer(7), opener());
    let first = sealed(&mut left, &old, b"1");
    assert!(open(&mut right, &both, &first, at(1)).is_ok());
    let second = sealed(&mut left, &both, b"2");
    let unknown = Err(Refusal::UnknownKey(new.sealing()));
    assert_eq!(open(&mut right, &old, &second, at(2)), unknown);
    assert!(open(&mut right, &both, &second, at(2)).is_ok());
    let ended = Err(Refusal::UnknownKey(old.sealing()));
    assert_eq!(open(&mut right, &new, &first, at(3)), ended);
    let replayed = Err(Refusal::Replayed);
    assert_eq!(open(&mut right, &new, &second, at(3)), replayed);
}

#[test]
fn a_kept_key_follows_the_secret_and_the_generation() {
    let (first, second) = (keys(&[1]), keys(&[2]));
    let (mut left, mut key) = (sealer(7), SealingKey::default());
    let mut sealed = |keys: &Keys, counter: u64| {
        let mut datagram = [0; EnvelopeHeader::OVERHEAD];
        left.skip_to(counter);
        left.seal((keys, &mut key), THERE, &mut datagram).unwrap();
        datagram
    };
    let made = [
        (&first, 1),
        (&second, 2),
        (&second, 3 << 24),
        (&first, (3 << 24) + 1),
    ];
    for (ring, counter) in made {
        let datagram = sealed(ring, counter);
        assert!(
            open(&mut opener(), ring, &datagram, at(1)).is_ok(),
            "{counter}"
        );
    }
}

#[test]
fn a_known_sender_changes_its_secret_in_a_flood_of_forged_senders_without_a_packet_lost() {
    let (old, both) = (keys(&[1]), keys(&[1, 2]));
    let new = keys(&[2, 1]);
    let (mut left, mut right) = (sealer(7), opener());
    let before = sealed(&mut left, &old, b"before");
    assert!(open(&mut right, &old, &before, at(1)).is_ok());
    right.confirm();
    right.set_keys(&both, at(2));
    // As many as are tried at once, and more, of both secrets.
    let flood = |right: &mut Opener<RingSuite>| {
        for origin in 1000..1200 {
            let mut forged = sealed(&mut sealer(origin), [&old, &new][origin as usize % 2], b"x");
            *forged.last_mut().unwrap() ^= 1;
            assert!(open(right, &both, &forged, at(3)).is_err());
        }
    };
    flood(&mut right);
    let restarted = sealed(&mut sealer(8), &old, b"unknown");
    let untried = Err(Refusal::TooManyUnknown);
    assert_eq!(open(&mut right, &both, &restarted, at(3)), untried);
    let last = sealed(&mut left, &old, b"last");
    let first = sealed(&mut left, &new, b"first");
    assert!(open(&mut right, &both, &first, at(3)).is_ok());
    assert!(open(&mut right, &both, &last, at(3)).is_ok(), "overtaken");
    let replayed = Err(Refusal::Replayed);
    assert_eq!(open(&mut right, &both, &first, at(3)), replayed);
}

#[test]
fn a_confirmed_sender_changes_its_secret_in_a_flood_though_an_earlier_process_was_repeated_before()
{
    let (old, both, new) = (keys(&[1]), keys(&[1, 2]), keys(&[2, 1]));
    for places in [2, 4] {
        let (mut left, mut right) = (sealer(7), Opener::new(ROUTE, places, at(0)));
        let before = sealed(&mut left, &old, b"before");
        assert!(open(&mut right, &old, &before, at(1)).is_ok());
        right.confirm();
        // Nobody has opened it here before.
        let earlier = sealed(&mut sealer(6), &old, b"earlier");
        assert!(open(&mut right, &old, &earlier, at(2)).is_ok());
        right.set_keys(&both, at(3));
        for origin in 1000..1200 {
            let mut forged = sealed(&mut sealer(origin), &new, b"x");
            *forged.last_mut().unwrap() ^= 1;
            assert!(open(&mut right, &both, &forged, at(4)).is_err());
        }
        let first = sealed(&mut left, &new, b"first");
        let opened = open(&mut right, &both, &first, at(4));
        assert!(opened.is_ok(), "{places} places: {opened:?}");
    }
}

#[test]
fn what_was_derived_of_a_secret_goes_with_it() {
    let (old, new) = (keys(&[1]), keys(&[2]));
    let (mut left, mut right) = (sealer(7), opener());
    let first = sealed(&mut left, &old, b"1");
    assert!(open(&mut right, &old, &first, at(1)).is_ok());
    right.confirm();
    right.set_keys(&old, at(1));
    let replayed = open(&mut right, &old, &first, at(2));
    assert_eq!(replayed, Err(Refusal::Replayed), "kept: it is among them");
    right.set_keys(&new, at(2));
    assert!(
        open(&mut right, &old, &first, at(3)).is_ok(),
        "nothing is known of a secret that went and came again"
    );
}

#[test]
fn keys_change_with_the_counter_and_packets_of_both_generations_open() {
    let keys = keys(&[1]);
    let (mut left, mut right) = (sealer(7), opener());
    left.skip_to((1 << 24) - 2);
    let datagrams = (0..4).map(|n| sealed(&mut left, &keys, &[n]));
    let datagrams: Vec<_> = datagrams.collect();
    for place in [0, 2, 1, 3] {
        let opened = open(&mut right, &keys, &datagrams[place], at(1));
        assert!(opened.is_ok(), "{place}");
    }
    // Generations pass unheard; those before are over.
    left.skip_to(9 << 24);
    let later = sealed(&mut left, &keys, b"later");
    assert!(open(&mut right, &keys, &later, at(1)).is_ok());
    let replayed = Err(Refusal::Replayed);
    for old in [&datagrams[3], &later] {
        assert_eq!(open(&mut right, &keys, old, at(1)), replayed);
        assert_eq!(open(&mut right, &keys, old, at(1_000)), replayed);
    }
    left.skip_to((1 << 48) - 1);
    let last = sealed(&mut left, &keys, b"last");
    assert!(open(&mut right, &keys, &last, at(2)).is_ok());
    let result = left.seal((&keys, &mut SealingKey::default()), THERE, &mut [0; 64]);
    assert_eq!(result, Err(SealError::Exhausted));
}
