use bumpless_base::LinkId;
use bumpless_iprp::Ind;
use bumpless_secure::{Destination, Keyring, RingSuite, SealingKey};

use super::channel::PLACE;
use super::*;

type Datagram = (usize, SocketAddr, IpAddr, Vec<u8>);

fn address(host: u8, network: u8) -> IpAddr {
    IpAddr::from([10, network, 0, host])
}

fn ring(secret: u8) -> Keyring<RingSuite> {
    Keyring::new(vec![Secret::new([secret; 32])]).unwrap()
}

struct Host {
    closed: Closed,
    number: u8,
    got: Vec<(Kind, Vec<u8>)>,
}

impl Host {
    fn new(number: u8, origin: u64, secret: u8) -> Self {
        let card = |network: u8| Card {
            ind: Ind::new(network).unwrap(),
            address: address(number, network),
        };
        let cards = vec![card(1), card(2)];
        let channels = Channels::shared(ring(secret), Instant::ZERO);
        let closed = Closed::new(channels, cards, (origin, origin ^ 77), Instant::ZERO);
        Self {
            closed,
            number,
            got: Vec::new(),
        }
    }

    fn send(&mut self, now: Instant, to: u8, message: &[u8]) -> Vec<Datagram> {
        let mut out = Vec::new();
        let number = self.number;
        let to = address(to, 1);
        let emit = &mut |it: Outgoing<'_>| out.push(datagram(number, it));
        self.closed.send(now, to, Kind::ForSender, message, emit);
        out
    }

    fn receive(&mut self, now: Instant, it: &Datagram) -> (Result<(), Refused>, Vec<Datagram>) {
        let mut out = Vec::new();
        let number = self.number;
        let emit = &mut |it: Outgoing<'_>| out.push(datagram(number, it));
        let mut bytes = it.3.clone();
        let received = self.closed.receive(now, (it.0, it.1), &mut bytes, emit);
        let result = received.map(|received| {
            let received = received.map(|it| (it.kind, it.message));
            self.got.extend(received);
        });
        (result, out)
    }
}

fn datagram(host: u8, it: Outgoing<'_>) -> Datagram {
    let network = it.card as u8 + 1;
    let from = SocketAddr::new(address(host, network), 4760);
    (it.card, from, it.to, it.bytes.to_vec())
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Carries everything between the hosts until nothing is left; what `lost` says is lost. Returns all that was sent.
fn carry(
    now: Instant,
    hosts: &mut [&mut Host],
    first: Vec<Datagram>,
    lost: impl Fn(&Datagram) -> bool,
) -> Vec<Datagram> {
    let (mut queue, mut all) = (VecDeque::from(first), Vec::new());
    while let Some(it) = queue.pop_front() {
        all.push(it.clone());
        assert!(all.len() < 100, "they never end");
        let host = hosts
            .iter_mut()
            .find(|host| (1..=2).any(|n| address(host.number, n) == it.2));
        if let Some(host) = host.filter(|_| !lost(&it)) {
            queue.extend(host.receive(now, &it).1);
        }
    }
    all
}

#[test]
fn a_message_to_a_stranger_arrives_once_after_both_have_shown_themselves() {
    let (mut a, mut b) = (Host::new(1, 100, 9), Host::new(2, 200, 9));
    let first = a.send(at(0), 2, b"one");
    carry(at(0), &mut [&mut a, &mut b], first, |_| false);
    assert_eq!(b.got, [(Kind::ForSender, b"one".to_vec())]);
    // From here on a message takes one frame, on both networks.
    let next = a.send(at(1), 2, b"two");
    assert_eq!(next.len(), 2);
    assert_eq!([next[0].2, next[1].2], [address(2, 1), address(2, 2)]);
    carry(at(1), &mut [&mut a, &mut b], next, |_| false);
    assert_eq!(b.got.len(), 2);
}

#[test]
fn either_network_alone_is_enough_for_those_who_know_each_other() {
    for dead in [0, 1] {
        let (mut a, mut b) = (Host::new(1, 100, 9), Host::new(2, 200, 9));
        let first = a.send(at(0), 2, b"one");
        carry(at(0), &mut [&mut a, &mut b], first, |_| false);
        let next = a.send(at(1), 2, b"two");
        carry(at(1), &mut [&mut a, &mut b], next, |it| it.0 == dead);
        assert_eq!(b.got.len(), 2, "{dead}");
    }
}

#[test]
fn a_process_that_has_started_anew_is_heard_and_hears() {
    let (mut a, mut b) = (Host::new(1, 100, 9), Host::new(2, 200, 9));
    let first = a.send(at(0), 2, b"one");
    carry(at(0), &mut [&mut a, &mut b], first, |_| false);
    let mut b = Host::new(2, 201, 9);
    let next = a.send(at(60_000), 2, b"two");
    carry(at(60_000), &mut [&mut a, &mut b], next, |_| false);
    assert_eq!(b.got, [(Kind::ForSender, b"two".to_vec())]);
    let back = b.send(at(60_001), 1, b"three");
    carry(at(60_001), &mut [&mut a, &mut b], back, |_| false);
    assert_eq!(a.got, [(Kind::ForSender, b"three".to_vec())]);
}

#[test]
fn a_host_that_gets_another_network_later_is_reached_at_its_address_there() {
    let (mut a, mut b) = (Host::new(1, 100, 9), Host::new(2, 200, 9));
    let first = a.send(at(0), 2, b"one");
    carry(at(0), &mut [&mut a, &mut b], first, |_| false);
    let card = |network: u8| Card {
        ind: Ind::new(network).unwrap(),
        address: address(2, network),
    };
    b.closed.set_cards(vec![card(2), card(3)]);
    let mut out = Vec::new();
    let emit = &mut |it: Outgoing<'_>| out.push(datagram(1, it));
    a.closed
        .send(at(1), address(2, 3), Kind::ForSender, b"two", emit);
    // The network between them carries to the address, whatever the cards are called.
    let mut queue = VecDeque::from(out);
    while let Some(it) = queue.pop_front() {
        let to_b = it.2 == address(2, 3) || it.2 == address(2, 2);
        let host = if to_b { &mut b } else { &mut a };
        queue.extend(host.receive(at(1), &it).1);
    }
    assert_eq!(b.got.len(), 2, "{:?}", b.got);
    assert!(a.closed.ways(address(2, 1)).is_empty());
}

#[test]
fn nothing_that_was_recorded_is_taken_again_by_either_process() {
    let (mut a, mut b) = (Host::new(1, 100, 9), Host::new(2, 200, 9));
    let first = a.send(at(0), 2, b"one");
    let mut recorded = carry(at(0), &mut [&mut a, &mut b], first, |_| false);
    let next = a.send(at(1), 2, b"two");
    recorded.extend(carry(at(1), &mut [&mut a, &mut b], next, |_| false));
    let got = b.got.len();
    for it in &recorded {
        let _ = b.receive(at(2), it);
        let _ = b.receive(at(100_000), it);
    }
    assert_eq!(b.got.len(), got);
    // A later process of the same host, and one whose keys of the former one are forgotten.
    let mut later = Host::new(2, 201, 9);
    for it in &recorded {
        let (result, answers) = later.receive(at(2), it);
        assert!(result.is_err() || later.got.is_empty(), "{result:?}");
        // It is asked, and what was recorded does not answer.
        assert!(answers.len() <= 1);
    }
    assert_eq!(later.got, []);
}

#[test]
fn what_others_send_or_change_says_nothing() {
    let (mut a, mut b, mut stranger) = (
        Host::new(1, 100, 9),
        Host::new(2, 200, 9),
        Host::new(1, 300, 8),
    );
    let forged = stranger.send(at(0), 2, b"forged");
    for it in &forged {
        let (result, answers) = b.receive(at(0), it);
        assert!(matches!(result, Err(Refused::Envelope(_))), "{result:?}");
        assert_eq!(answers, []);
    }
    let first = a.send(at(0), 2, b"one");
    carry(at(0), &mut [&mut a, &mut b], first, |_| false);
    let sent = a.send(at(1), 2, b"two");
    for byte in 0..sent[0].3.len() {
        let mut changed = sent[0].clone();
        changed.3[byte] ^= 1;
        let (result, answers) = b.receive(at(1), &changed);
        assert!(result.is_err() && answers.is_empty(), "{byte}: {result:?}");
    }
    for length in 0..sent[0].3.len() {
        let mut cut = sent[0].clone();
        cut.3.truncate(length);
        assert!(b.receive(at(1), &cut).0.is_err());
    }
    assert_eq!(b.got.len(), 1);
    // What comes back to its sender is refused.
    assert_eq!(a.receive(at(1), &sent[0]).0, Err(Refused::Own));
}

#[test]
fn a_frame_of_another_version_is_told_as_such() {
    let (mut a, mut b) = (Host::new(1, 100, 9), Host::new(2, 200, 9));
    let mut bytes = vec![0; EnvelopeHeader::LEN];
    bytes.push(VERSION + 1);
    bytes.extend([0; EnvelopeHeader::TAG_LEN]);
    let destination = Destination {
        to: 0,
        link: LinkId(0),
        place: PLACE,
    };
    let (keys, mut sealing) = (ring(9), SealingKey::default());
    let sealer = &mut a.closed.sealer;
    sealer
        .seal((&keys, &mut sealing), destination, &mut bytes)
        .unwrap();
    let from = SocketAddr::new(address(1, 1), 4760);
    let (result, _) = b.receive(at(0), &(0, from, address(2, 1), bytes));
    assert_eq!(result, Err(Refused::Version(VERSION + 1)));
}

#[test]
fn frames_may_overtake_each_other_and_are_taken_once() {
    let mut member = Member {
        peer: PeerId(1),
        challenge: 0,
        cards: Vec::new(),
        highest: 0,
        seen: 0,
        heard: Instant::ZERO,
    };
    for number in [0, 1, 5, 3, 2, 63, 4] {
        assert!(member.note(number), "{number}");
        assert!(!member.note(number), "{number}");
    }
    assert!(member.note(1_000) && !member.note(900) && member.note(937) && !member.note(936));
    assert!(member.note(999) && !member.note(999));
}

/// Hosts of which each two have a key of their own, as sessions give them, and nothing else.
fn each(number: u8, with: &[(u8, u8)]) -> Host {
    let mut host = Host::new(number, u64::from(number) * 100, 0);
    host.closed.channels = Channels::each();
    for &(other, secret) in with {
        assert!(agree(&mut host, other, secret));
    }
    host
}

fn agree(host: &mut Host, other: u8, secret: u8) -> bool {
    let secrets = vec![Secret::new([secret; 32])];
    let at = (HostId(other.into()), address(other, 1));
    let emit = &mut |_: Outgoing<'_>| {};
    host.closed.set_keys(Instant::ZERO, at, secrets, true, emit)
}

#[test]
fn a_host_without_a_key_is_called_and_what_waits_for_it_arrives_when_there_is_one() {
    let (mut a, mut b) = (each(1, &[]), each(2, &[(1, 12)]));
    assert_eq!(a.send(at(0), 2, b"one"), []);
    let wanted = a.closed.take_wanted();
    assert_eq!(
        (wanted.len(), wanted[0].to, &wanted[0].ways),
        (1, address(2, 1), &vec![])
    );
    let mut first = Vec::new();
    let emit = &mut |it: Outgoing<'_>| first.push(datagram(1, it));
    let secrets = vec![Secret::new([12; 32])];
    let there = (HostId(2), address(2, 1));
    assert!(a.closed.set_keys(at(1), there, secrets, true, emit));
    carry(at(1), &mut [&mut a, &mut b], first, |_| false);
    assert_eq!(b.got, [(Kind::ForSender, b"one".to_vec())]);
    // Another key with the same one: what both know of each other stays.
    for host in [(&mut a, 2), (&mut b, 1)] {
        assert!(agree(host.0, host.1, 13));
    }
    let next = a.send(at(2), 2, b"two");
    carry(at(2), &mut [&mut a, &mut b], next, |_| false);
    assert_eq!(b.got.len(), 2);
    assert_eq!(a.closed.take_wanted()[0].ways.len(), 2);
}

#[test]
fn nobody_with_a_key_of_its_own_speaks_for_an_address_of_another_host() {
    let mut a = each(1, &[(2, 12), (3, 13)]);
    let mut b = each(2, &[(1, 12)]);
    let mut liar = each(3, &[(1, 13)]);
    let first = a.send(at(0), 2, b"one");
    carry(at(0), &mut [&mut a, &mut b], first, |_| false);
    // It says that it has both of the other one's addresses, one of which was shown in a session.
    let card = |network: u8, host: u8| Card {
        ind: Ind::new(network).unwrap(),
        address: address(host, network),
    };
    let cards = vec![card(1, 2), card(2, 3), card(3, 2)];
    liar.closed.set_cards(cards);
    let lie = liar.send(at(1), 1, b"lie");
    carry(at(1), &mut [&mut a, &mut liar], lie, |_| false);
    assert_eq!(a.closed.ways(address(2, 1)).len(), 2, "as before");
    let next = a.send(at(2), 2, b"two");
    carry(at(2), &mut [&mut a, &mut b, &mut liar], next, |_| false);
    assert_eq!(b.got.len(), 2);
    // What the liar has said alone is not the other one's any more once that one has shown itself there.
    let said = liar.closed.set_keys(
        at(3),
        (HostId(1), address(1, 1)),
        vec![Secret::new([13; 32])],
        true,
        &mut |_| {},
    );
    assert!(said);
    let secrets = vec![Secret::new([12; 32])];
    let there = (HostId(2), address(2, 3));
    assert!(a.closed.set_keys(at(3), there, secrets, true, &mut |_| {}));
    assert_eq!(a.closed.host_at(address(2, 3)), Some(HostId(2)));
}

#[test]
fn of_a_host_that_is_let_go_nothing_opens_and_nothing_is_sealed_for_it() {
    let (mut a, mut b) = (each(1, &[(2, 12)]), each(2, &[(1, 12)]));
    let first = a.send(at(0), 2, b"one");
    carry(at(0), &mut [&mut a, &mut b], first, |_| false);
    let had = a.closed.forget_host(HostId(2));
    assert_eq!(had, [address(2, 1), address(2, 2)]);
    for it in b.send(at(1), 1, b"two") {
        let (result, answers) = a.receive(at(1), &it);
        let unknown = matches!(result, Err(Refused::Envelope(Refusal::UnknownKey(_))));
        assert!(unknown && answers.is_empty(), "{result:?}");
    }
    assert_eq!(a.send(at(1), 2, b"three"), []);
    assert!(a.got.is_empty());
}

#[test]
fn a_key_that_looks_like_another_hosts_is_not_taken() {
    let mut a = each(1, &[(2, 12)]);
    assert!(!agree(&mut a, 3, 12));
    assert!(agree(&mut a, 3, 13));
}
