//! Packets of applications replicated on two networks, and the first copies handed on.

use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};

use bumpless_base::{Duration, Instant};
use bumpless_iprp::{
    Discard, FEEDBACK_LEN, Flow, Group, Ind, MAX_MESSAGE, MAX_OVERHEAD, Mode, Monitored, Network,
    Networks, Origin, PeerId, Receiver, ReceiverLimits, ReceiverSetup, Replication, Sender,
    SenderLimits, SenderSetup, SessionId, Side, TCP, Timing, UDP,
};
use bumpless_secure::{Nonce, RingSuite, Secret, Suite, Tag};

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const PORT: u16 = 5_000;
/// The paper's datagrams (IX-A).
const PAYLOAD: [u8; 280] = [7; 280];
/// Each packet is of another session.
const SESSIONS: u16 = 100;
pub const PACKETS: u64 = SESSIONS as u64;

/// Members of a group have backed off by then.
const BEGUN: Instant = Instant::from_nanos(1_001_000_000);
const APART: Duration = Duration::from_micros(200);
const BACK_OFF: Duration = Duration::from_millis(1);

/// What kind of packets. A type each, so that what is counted of one does not hang on what there is of the others.
trait Kind {
    const PROTOCOL: u8 = UDP;
    const DESTINATION: [u8; 4] = [10, 1, 0, 2];
}

struct Datagrams;
struct ToGroup;
struct Segments;

impl Kind for Datagrams {}
impl Kind for ToGroup {
    const DESTINATION: [u8; 4] = GROUP;
}
impl Kind for Segments {
    const PROTOCOL: u8 = TCP;
}

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

const GROUP: [u8; 4] = [239, 1, 2, 3];

fn groups() -> Vec<Group> {
    vec![Group {
        address: GROUP.into(),
        secrets: vec![Secret::new([9; 32])],
    }]
}

fn flow<K: Kind>(session: u16) -> Flow {
    Flow {
        protocol: K::PROTOCOL,
        source: IpAddr::from([10, 1, 0, 1]),
        destination: IpAddr::from(K::DESTINATION),
        source_port: 40_000,
        destination_port: PORT + session,
    }
}

/// A segment of TCP, at whose beginning its ports stand.
fn segment(session: u16) -> [u8; PAYLOAD.len()] {
    let (flow, mut segment) = (flow::<Segments>(session), PAYLOAD);
    segment[..2].copy_from_slice(&flow.source_port.to_be_bytes());
    segment[2..4].copy_from_slice(&flow.destination_port.to_be_bytes());
    segment
}

impl<S: Suite> Pair<S> {
    fn new<K: Kind>() -> Self {
        let setup = SenderSetup {
            networks: networks(1),
            groups: groups(),
            limits: SenderLimits {
                kept_packets: 64,
                ..SenderLimits::default()
            },
            seed: 1,
        };
        let sender = Sender::new(setup).expect("a sound setup");
        let setup = ReceiverSetup {
            networks: networks(2),
            monitored: vec![Monitored {
                protocol: K::PROTOCOL,
                side: Side::Destination,
                first: PORT,
                last: PORT + SESSIONS,
            }],
            groups: groups(),
            root: Secret::new([1; 32]),
            key_number: 0,
            timing: Timing {
                back_off: BACK_OFF,
                ..Timing::default()
            },
            limits: ReceiverLimits::default(),
            seed: 2,
        };
        let receiver = Receiver::new(setup, NOW).expect("a sound setup");
        let mut pair = Self { sender, receiver };
        (0..SESSIONS).for_each(|session| pair.begin(&flow::<K>(session)));
        pair
    }

    fn begin(&mut self, flow: &Flow) {
        self.receiver.handle_monitored(NOW, flow);
        let (mut message, mut answer) = ([0; MAX_MESSAGE], [0; MAX_MESSAGE]);
        let origin = |host| Origin {
            peer: PeerId(host),
            address: IpAddr::from([10, 1, 0, host as u8]),
        };
        while let Some(outgoing) = self.receiver.poll_advertisement(BEGUN, &mut message) {
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
fn exchange<S: Suite, K: Kind>(rounds: u64, discards: bool) {
    let mut pair = Pair::<S>::new::<K>();
    let Pair { sender, receiver } = &mut pair;
    let segments: Vec<_> = (0..SESSIONS).map(segment).collect();
    let from = SocketAddr::from(([10, 1, 0, 1], 1_001));
    let mut scratch = [0; PAYLOAD.len() + MAX_OVERHEAD];
    let mut arrived = [0; PAYLOAD.len() + MAX_OVERHEAD];
    for round in 0..rounds {
        for session in 0..SESSIONS {
            let flow = flow::<K>(session);
            let payload = match K::PROTOCOL {
                TCP => &segments[usize::from(session)],
                _ => &PAYLOAD,
            };
            // Asked once for all.
            let now = if round == 0 { NOW } else { Instant::ZERO };
            let mut copies = 0;
            let result = sender.replicate(now, &flow, payload, &mut scratch, |copy| {
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
    exchange::<RingSuite, Datagrams>(rounds, false);
}

pub fn replicate_and_discard(rounds: u64) {
    exchange::<RingSuite, Datagrams>(rounds, true);
}

pub fn replicate_open(rounds: u64) {
    exchange::<Open, Datagrams>(rounds, false);
}

pub fn replicate_and_discard_open(rounds: u64) {
    exchange::<Open, Datagrams>(rounds, true);
}

pub fn replicate_and_discard_of_group_open(rounds: u64) {
    exchange::<Open, ToGroup>(rounds, true);
}

pub fn replicate_and_discard_segments_open(rounds: u64) {
    exchange::<Open, Segments>(rounds, true);
}

/// One network carries: each packet is kept until its answer has come.
pub fn keep_in_standby_open(rounds: u64) {
    let Pair {
        mut sender,
        mut receiver,
    } = Pair::<Open>::new::<Datagrams>();
    (0..SESSIONS).for_each(|at| sender.set_mode(SessionId(at.into()), Mode::Standby));
    let from = SocketAddr::from(([10, 1, 0, 1], 1_001));
    let mut scratch = [0; PAYLOAD.len() + MAX_OVERHEAD];
    let mut arrived = [0; PAYLOAD.len() + MAX_OVERHEAD];
    let mut answer = [0; FEEDBACK_LEN];
    let mut now = BEGUN;
    for _ in 0..rounds {
        for session in 0..SESSIONS {
            // The first answers of sessions are tried, so many in a time.
            now += APART;
            let flow = flow::<Datagrams>(session);
            let result = sender.replicate(now, &flow, &PAYLOAD, &mut scratch, |copy| {
                let datagram = &mut arrived[..copy.bytes.len()];
                datagram.copy_from_slice(copy.bytes);
                let result = receiver.handle_data(now, Some(copy.ind), from, datagram);
                assert!(result.is_ok());
            });
            let expected = Replication::Copies {
                count: 1,
                kept: true,
            };
            assert_eq!(result, expected);
            while receiver.poll_feedback(&mut answer).is_some() {
                let taken = sender.handle_feedback(now, &mut answer);
                taken.expect("an answer that counts");
            }
        }
    }
}
