//! Packets of applications replicated on two networks, and the first copies handed on.

use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};

use bumpless_base::Instant;
use bumpless_iprp::{
    Discard, Flow, Ind, MAX_MESSAGE, MAX_OVERHEAD, Monitored, Network, Networks, Origin, PeerId,
    Receiver, ReceiverLimits, ReceiverSetup, Replication, Sender, SenderLimits, SenderSetup, Side,
    Timing, UDP,
};
use bumpless_secure::{Nonce, RingSuite, Secret, Suite, Tag};

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const PORT: u16 = 5_000;
/// The paper's datagrams (IX-A).
const PAYLOAD: [u8; 280] = [7; 280];
/// Each packet is of another session.
const SESSIONS: u16 = 100;
pub const PACKETS: u64 = SESSIONS as u64;

/// Takes everything for genuine, so that what is left is the protocol.
struct Open;

impl Suite for Open {
    type Key = ();
    const NAME: &'static [u8] = b"open";
    fn derive(secret: &[u8; 32], _info: &[&[u8]]) -> [u8; 32] {
        *secret
    }
    fn key(_bytes: &[u8; 32]) {}
    fn seal(_key: &(), _nonce: Nonce, _header: &[u8], _body: &mut [u8]) -> Tag {
        [0; 16]
    }
    fn open(_key: &(), _nonce: Nonce, _header: &[u8], _body: &mut [u8]) -> bool {
        true
    }
}

struct Pair<S: Suite> {
    sender: Sender<S>,
    receiver: Receiver<S>,
}

fn networks(host: u8) -> Networks {
    let network = |number| Network {
        ind: Ind::new(number).expect("a discriminator"),
        address: IpAddr::from([10, number, 0, host]),
    };
    Networks::new(&[network(1), network(2)]).expect("two networks")
}

fn flow(session: u16) -> Flow {
    Flow {
        protocol: UDP,
        source: IpAddr::from([10, 1, 0, 1]),
        destination: IpAddr::from([10, 1, 0, 2]),
        source_port: 40_000,
        destination_port: PORT + session,
    }
}

impl<S: Suite> Pair<S> {
    fn new() -> Self {
        let setup = SenderSetup {
            networks: networks(1),
            groups: Vec::new(),
            limits: SenderLimits::default(),
            seed: 1,
        };
        let sender = Sender::new(setup).expect("a sound setup");
        let setup = ReceiverSetup {
            networks: networks(2),
            monitored: vec![Monitored {
                protocol: UDP,
                side: Side::Destination,
                first: PORT,
                last: PORT + SESSIONS,
            }],
            groups: Vec::new(),
            root: Secret::new([1; 32]),
            key_number: 0,
            timing: Timing::default(),
            limits: ReceiverLimits::default(),
            seed: 2,
        };
        let receiver = Receiver::new(setup, NOW).expect("a sound setup");
        let mut pair = Self { sender, receiver };
        (0..SESSIONS).for_each(|session| pair.begin(session));
        pair
    }

    fn begin(&mut self, session: u16) {
        self.receiver.handle_monitored(NOW, &flow(session));
        let (mut message, mut answer) = ([0; MAX_MESSAGE], [0; MAX_MESSAGE]);
        let origin = |host| Origin {
            peer: PeerId(host),
            address: IpAddr::from([10, 1, 0, host as u8]),
        };
        while let Some(outgoing) = self.receiver.poll_advertisement(NOW, &mut message) {
            let said = &message[..outgoing.len];
            let answered = self
                .sender
                .handle_message(NOW, origin(2), said, &mut answer);
            let len = answered.expect("a sound message");
            let taken = self.receiver.handle_message(NOW, origin(1), &answer[..len]);
            taken.expect("a sound message");
        }
    }
}

/// Replicates packets; hands on the first copies and discards the second ones, too, if `discards`.
fn exchange<S: Suite>(rounds: u64, discards: bool) {
    let mut pair = Pair::<S>::new();
    let Pair { sender, receiver } = &mut pair;
    let from = SocketAddr::from(([10, 1, 0, 1], 1_001));
    let mut scratch = [0; PAYLOAD.len() + MAX_OVERHEAD];
    let mut arrived = [0; PAYLOAD.len() + MAX_OVERHEAD];
    for round in 0..rounds {
        for session in 0..SESSIONS {
            // Asked once for all.
            let now = if round == 0 { NOW } else { Instant::ZERO };
            let mut copies = 0;
            let result = sender.replicate(now, &flow(session), &PAYLOAD, &mut scratch, |copy| {
                copies += 1;
                if discards {
                    let datagram = &mut arrived[..copy.bytes.len()];
                    datagram.copy_from_slice(copy.bytes);
                    let result = receiver.handle_data(NOW, Some(copy.ind), from, datagram);
                    match copies {
                        1 => assert!(result.is_ok()),
                        _ => assert_eq!(result, Err(Discard::Duplicate)),
                    }
                } else {
                    black_box(copy.bytes);
                }
            });
            assert!(matches!(result, Replication::Copies { count: 2, .. }));
        }
    }
}

pub fn replicate(rounds: u64) {
    exchange::<RingSuite>(rounds, false);
}

pub fn replicate_and_discard(rounds: u64) {
    exchange::<RingSuite>(rounds, true);
}

pub fn replicate_open(rounds: u64) {
    exchange::<Open>(rounds, false);
}

pub fn replicate_and_discard_open(rounds: u64) {
    exchange::<Open>(rounds, true);
}
