//! A witness whose pairs protect their messages.

use bumpless_base::LinkId;
use bumpless_secure::{Destination, Keyring, Opener, Route, Sealer, SealingKey, Secret, place};
use bumpless_wire::envelope::WITNESS;

use super::*;

const LINK: LinkId = LinkId(3);
const NODE: u8 = 0;
const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

fn ring(byte: u8) -> Keyring<RingSuite> {
    Keyring::new(vec![Secret::new([byte; 32])]).unwrap()
}

/// A node with a secret, and what it sends and hears.
struct Asking {
    keys: Keyring<RingSuite>,
    sealer: Sealer,
    opener: Opener<RingSuite>,
    pair: u32,
}

impl Asking {
    fn new(secret: u8, origin: u64) -> Self {
        let route = Route {
            from: Some(WITNESS),
            to: NODE,
            link: Some(LINK),
            place: place(HERE),
        };
        Self {
            sealer: Sealer::new(NODE, origin),
            opener: Opener::new(route, 1, Instant::ZERO),
            keys: ring(secret),
            pair: secret.into(),
        }
    }

    /// A request for the pair of the secret.
    fn request(&mut self) -> Vec<u8> {
        self.request_for(self.pair, NODE)
    }

    fn request_for(&mut self, pair: u32, node: u8) -> Vec<u8> {
        let request = encoded(&WitnessRequest {
            pair,
            node: NodeId(node),
            ..asked(0)
        });
        let mut datagram = vec![0; WitnessRequest::LEN + EnvelopeHeader::OVERHEAD];
        datagram[EnvelopeHeader::LEN..][..WitnessRequest::LEN].copy_from_slice(&request);
        let there = Destination {
            to: WITNESS,
            link: LINK,
            place: place(HERE),
        };
        let sealing = (&self.keys, &mut SealingKey::default());
        self.sealer.seal(sealing, there, &mut datagram).unwrap();
        datagram
    }
}

/// A network that brings `arrives` and keeps what is sent.
#[derive(Default)]
struct Wire {
    arrives: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

impl Link for Wire {
    fn send(&mut self, _: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        let whole = |packet: &Segment<'_>| [packet.header, packet.payload].concat();
        self.sent.extend(packets.iter().map(whole));
        SendOutcome {
            sent: packets.len(),
            failure: None,
        }
    }
    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        for mut datagram in std::mem::take(&mut self.arrives) {
            sink(self.local_address(), &mut datagram);
        }
        ReceiveOutcome::default()
    }
    fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        None
    }
    fn local_address(&self) -> SocketAddr {
        HERE
    }
}

/// What a witness with these secrets answers to each of `requests`, and what it counts.
fn answers(secrets: &[u8], open: bool, requests: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Counters) {
    let keys = secrets.iter().map(|&byte| PairKey {
        keys: ring(byte),
        pair: byte.into(),
        origin: 900 + u64::from(byte),
    });
    let envelopes = Envelopes::new(keys, &[place(HERE)], open, Instant::ZERO);
    let witness = Witness::new(WitnessSetup::default(), 1, Instant::ZERO).unwrap();
    let journal = Journal::start(true, Told::default()).unwrap();
    let mut server = Server::new((witness, envelopes), journal, Instant::ZERO);
    let mut wire = Wire {
        arrives: requests,
        sent: Vec::new(),
    };
    server.serve(&mut wire, Instant::ZERO + Duration::from_secs(10));
    let counters = server.counters(std::slice::from_ref(&wire));
    let sent = std::mem::take(&mut wire.sent);
    server.end(&[wire], Instant::ZERO);
    (sent, counters)
}

#[test]
fn a_node_with_a_session_is_answered_from_its_first_key_on_and_for_its_pair_alone() {
    let mut envelopes = Envelopes::new([], &[place(HERE)], false, Instant::ZERO);
    let expected = [7, 8].map(|pair| Expected {
        pair,
        origin: 70 + u64::from(pair),
        places: vec![place(HERE)],
    });
    let first = envelopes.expect(expected, Instant::ZERO);
    let mut asking = Asking::new(7, 11);
    let open = |envelopes: &mut Envelopes<RingSuite>, mut datagram: Vec<u8>| {
        let opened = envelopes.open(place(HERE), &mut datagram, Instant::ZERO);
        opened.map(|(way, _)| way)
    };
    let early = open(&mut envelopes, asking.request());
    assert_eq!(early, Err(Counter::DiscardUnknownKey));
    assert!(envelopes.set_keys(first, Some(ring(7)), Instant::ZERO));
    let way = open(&mut envelopes, asking.request()).unwrap();
    let request = |pair| WitnessRequest {
        pair,
        node: NodeId(NODE),
        ..asked(0)
    };
    assert_eq!(envelopes.permits(way, &request(7)), Ok(()));
    let other = envelopes.permits(way, &request(8));
    assert_eq!(other, Err(Counter::DiscardWrongNode));
    assert!(
        !envelopes.set_keys(first + 1, Some(ring(7)), Instant::ZERO),
        "whose a request is, could not be told"
    );
    assert!(envelopes.set_keys(first + 1, Some(ring(8)), Instant::ZERO));
    assert!(
        envelopes.set_keys(first, Some(ring(9)), Instant::ZERO),
        "a new one"
    );
    let over = open(&mut envelopes, asking.request());
    assert_eq!(over, Err(Counter::DiscardUnknownKey));
}

#[test]
fn who_asks_with_a_key_is_answered_with_it_on_its_own_link() {
    let (mut first, mut second) = (Asking::new(1, 11), Asking::new(2, 12));
    let requests = vec![first.request(), second.request()];
    let lens = requests[0].len();
    let (mut answers, _) = answers(&[1, 2], false, requests);
    assert_eq!(answers.len(), 2);
    for (node, answer) in [&mut first, &mut second].into_iter().zip(&mut answers) {
        assert!(answer.len() < lens, "an answer is shorter than its request");
        let opened = node.opener.open(&node.keys, answer, Instant::ZERO).unwrap();
        assert!(matches!(parse(opened), Ok(Packet::WitnessReply(_))));
    }
}

#[test]
fn who_asks_otherwise_gets_no_answer_and_is_counted_under_its_cause() {
    let mut asking = Asking::new(1, 11);
    let once = asking.request();
    let mut changed = asking.request();
    changed[30] ^= 1;
    let mut misdirected = asking.request();
    misdirected[7] = 1;
    let requests = vec![
        once.clone(),
        once,
        changed,
        misdirected,
        Asking::new(3, 13).request(),
        // For another pair, and for another node.
        asking.request_for(2, NODE),
        asking.request_for(1, 1),
        request(0).to_vec(),
        vec![0x77; 60],
    ];
    let (answers, counters) = answers(&[1, 2], false, requests);
    assert_eq!(answers.len(), 1);
    for counter in [
        Counter::DiscardReplayed,
        Counter::DiscardForged,
        Counter::DiscardMisdirected,
        Counter::DiscardUnknownKey,
        Counter::DiscardUnprotected,
        Counter::DiscardUnknownType,
    ] {
        assert_eq!(counters.get(counter), 1, "{}", counter.name());
    }
    assert_eq!(counters.get(Counter::DiscardWrongNode), 2);
}

#[test]
fn a_witness_that_also_serves_open_pairs_answers_each_as_it_asked() {
    let mut asking = Asking::new(1, 11);
    let other = WitnessRequest {
        pair: 7,
        ..asked(0)
    };
    // In the open, nobody asks for a pair that has a key.
    let requests = vec![
        encoded(&other).to_vec(),
        request(0).to_vec(),
        asking.request(),
    ];
    let (answers, counters) = answers(&[1], true, requests);
    assert_eq!(answers.len(), 2);
    assert_eq!(counters.get(Counter::DiscardUnprotected), 1);
    assert!(matches!(parse(&answers[0]), Ok(Packet::WitnessReply(_))));
    assert!(EnvelopeHeader::is_one(&answers[1]));
}
