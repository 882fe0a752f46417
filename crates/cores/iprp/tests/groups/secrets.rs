//! Secrets of a group that change.

use super::*;

/// The group with these secrets.
fn secrets(all: &[u8]) -> Vec<Group> {
    let secrets = all.iter().map(|it| Secret::new([*it; 32]));
    vec![Group {
        address: GROUP,
        secrets: secrets.collect(),
    }]
}

#[test]
fn a_secret_rolls_over_without_a_loss_and_opens_nothing_once_it_is_given_up() {
    let now = at(Duration::from_secs(20));
    let (mut sender, _) = begun(now);
    let setup = SenderSetup {
        groups: groups(),
        ..sender_setup(5)
    };
    let mut revoked: Sender<RingSuite> = Sender::new(setup).unwrap();
    let mut first = member(1);
    first.handle_monitored(now.before(Duration::from_secs(10)), &to_group());
    first.handle_monitored(now, &to_group());
    hear(&mut revoked, now, &say(&mut first, now)[0]);
    let mut receiver = member(2);
    let mut scratch = [0; 1500];
    let mut seal = |sender: &mut Sender<RingSuite>| {
        let mut copies = Vec::new();
        sender.replicate(now, &to_group(), b"x", &mut scratch, |copy| {
            copies.push(copy.bytes.to_vec());
        });
        copies
    };
    let from: SocketAddr = "10.1.0.1:4761".parse().unwrap();
    let take = |receiver: &mut Receiver<RingSuite>, copy: &[u8]| {
        let mut copy = copy.to_vec();
        let taken = receiver.handle_data(now, None, from, &mut copy);
        taken.map(|_| ())
    };
    let before = seal(&mut sender);
    let late = seal(&mut sender);
    assert_eq!(take(&mut receiver, &before[0]), Ok(()));
    // First all have the next one, too, then the sender seals with that: what is on its way comes, and no copy twice.
    receiver.set_groups(secrets(&[9, 8])).unwrap();
    sender.set_groups(secrets(&[8, 9])).unwrap();
    let after = seal(&mut sender);
    // With the next one at once, which has numbers of its own.
    assert_ne!(before[0][2..4], after[0][2..4]);
    assert_eq!(after[0][14..18], [0; 4]);
    for copies in [&after, &late] {
        assert_eq!(take(&mut receiver, &copies[0]), Ok(()));
        assert_eq!(take(&mut receiver, &copies[1]), Err(Discard::Duplicate));
    }
    // What has the former one alone is known, and says nothing from here on.
    assert_eq!(take(&mut receiver, &seal(&mut revoked)[0]), Ok(()));
    receiver.set_groups(secrets(&[8])).unwrap();
    for copy in [&before[1], &late[1], &seal(&mut revoked)[0]] {
        assert_eq!(take(&mut receiver, copy), Err(Discard::UnknownKey));
    }
    assert_eq!(take(&mut receiver, &seal(&mut sender)[0]), Ok(()));
    let wrong = receiver.set_groups(secrets(&[1, 2, 3, 4, 5]));
    assert!(wrong.is_err() && take(&mut receiver, &seal(&mut sender)[0]) == Ok(()));
}
