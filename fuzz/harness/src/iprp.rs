//! Two hosts of iPRP, and what anybody can do to them.

use std::net::{IpAddr, SocketAddr};

use bumpless_base::{Duration, Instant};
use bumpless_iprp::{
    FEEDBACK_LEN, Flow, Ind, MAX_MESSAGE, MAX_OVERHEAD, Mode, Monitored, Network, Networks, Origin,
    PeerId, Receiver, ReceiverLimits, ReceiverSetup, Replication, Sender, SenderLimits,
    SenderSetup, SessionId, Side, TCP, Timing, UDP,
};
use bumpless_secure::{Nonce, Secret, Suite, Tag};

use crate::input::Input;

const PORT: u16 = 5_000;
const SESSIONS: usize = 4;
/// The sender has room for more than the receiver, so that it is the receiver that refuses.
const SENDER_SESSIONS: usize = 6;
const CANDIDATES: usize = 2;
const KEPT: usize = 8;
/// Longest payload.
const LONGEST: usize = 64;

/// Whoever sends has every key: what opens is as hostile as what does not.
struct Leaked;

impl Suite for Leaked {
    type Key = u8;
    const NAME: &'static [u8] = b"leaked";
    fn derive(secret: &[u8; 32], info: &[&[u8]]) -> [u8; 32] {
        let mut bytes = *secret;
        for (at, byte) in info.iter().flat_map(|part| part.iter()).enumerate() {
            bytes[at % 32] = bytes[at % 32].rotate_left(3) ^ byte;
        }
        bytes
    }
    fn key(bytes: &[u8; 32]) -> u8 {
        bytes[0]
    }
    fn seal(_key: &u8, _nonce: Nonce, _header: &[u8], _body: &mut [u8]) -> Tag {
        [0; 16]
    }
    fn open(_key: &u8, _nonce: Nonce, _header: &[u8], body: &mut [u8]) -> bool {
        // A byte that says no, so that this is reached, too.
        body.last() != Some(&0xff)
    }
}

struct World {
    now: Instant,
    sender: Sender<Leaked>,
    receiver: Receiver<Leaked>,
    restarts: u64,
    /// Genuine datagrams and messages, which can be bent.
    datagrams: Vec<Vec<u8>>,
    messages: Vec<Vec<u8>>,
    delivered: u64,
    handled: u64,
}

fn networks(host: u8, bits: u8) -> Networks {
    let some: Vec<_> = (0..3).filter(|number| bits & 1 << number != 0).collect();
    let network = |&number: &u8| Network {
        ind: Ind::new(number + 1).expect("a discriminator"),
        address: IpAddr::from([10, number, 0, host]),
    };
    Networks::new(&some.iter().map(network).collect::<Vec<_>>()).expect("sound networks")
}

fn monitored() -> Vec<Monitored> {
    let range = |protocol, side| Monitored {
        protocol,
        side,
        first: PORT,
        last: PORT + 5,
    };
    vec![
        range(UDP, Side::Destination),
        range(TCP, Side::Source),
        range(0, Side::Destination),
    ]
}

fn sender(seed: u64) -> Sender<Leaked> {
    let setup = SenderSetup {
        networks: networks(1, 3),
        groups: Vec::new(),
        limits: SenderLimits {
            sessions: SENDER_SESSIONS,
            kept_packets: KEPT,
            kept_len: LONGEST,
        },
        seed,
    };
    Sender::new(setup).expect("a sound setup")
}

fn receiver(seed: u64, now: Instant) -> Receiver<Leaked> {
    let setup = ReceiverSetup {
        networks: networks(2, 3),
        monitored: monitored(),
        groups: Vec::new(),
        root: Secret::new([1; 32]),
        key_number: seed as u32,
        timing: Timing::default(),
        limits: ReceiverLimits {
            sessions: SESSIONS,
            candidates: CANDIDATES,
            max_lost: 64,
        },
        seed,
    };
    Receiver::new(setup, now).expect("a sound setup")
}

fn flow(input: &mut Input<'_>) -> Flow {
    let protocol = input.one_of(&[UDP, UDP, TCP, 0, 255]);
    let port = PORT + input.below(7) as u16;
    let (source_port, destination_port) = match protocol {
        UDP => (40_000, port),
        TCP => (port, 40_000),
        _ => (0, 0),
    };
    Flow {
        protocol,
        source: IpAddr::from([10, 0, 0, input.one_of(&[1, 1, 1, 7])]),
        destination: IpAddr::from([10, 0, 0, 2]),
        source_port,
        destination_port,
    }
}

/// One of `all` with some bytes changed, or bytes of the input.
fn bent(input: &mut Input<'_>, all: &[Vec<u8>]) -> Vec<u8> {
    if all.is_empty() || input.below(4) == 0 {
        let len = input.below(100);
        return input.take(len).to_vec();
    }
    let mut bytes = all[input.below(all.len())].clone();
    for _ in 0..input.below(4) {
        let (at, value) = (input.below(bytes.len()), input.u8());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
    let cut = input.below(bytes.len() + 1);
    if input.below(8) == 0 {
        bytes.truncate(cut);
    }
    bytes
}

impl World {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(12) {
            0 => self.now += Duration::from_millis(u64::from(input.u16())),
            1 => self.now += Duration::from_micros(u64::from(input.u16())),
            2 => self.receiver.handle_monitored(self.now, &flow(input)),
            3 | 4 => self.replicate(input),
            5 | 6 => {
                let datagram = bent(input, &self.datagrams);
                self.arrive(input, datagram);
            }
            7 => {
                let message = bent(input, &self.messages);
                self.say(input, &message);
            }
            8 => {
                let bits = input.u8();
                match input.flag() {
                    true => self.sender.set_networks(networks(1, bits)),
                    false => self.receiver.set_networks(self.now, networks(2, bits)),
                }
            }
            9 => {
                let mode = input.one_of(&[Mode::Standby, Mode::Redundant]);
                let session = SessionId(input.below(6) as u32);
                match input.below(4) {
                    0 => self.sender.skip_to_end(session, 1),
                    _ => self.sender.set_mode(session, mode),
                }
            }
            10 => self.restart(input),
            _ => {
                let all = monitored();
                let some = input.below(all.len() + 1);
                self.receiver
                    .set_monitored(&all[..some])
                    .expect("sound ranges");
            }
        }
        self.drain();
    }

    fn restart(&mut self, input: &mut Input<'_>) {
        self.restarts += 1;
        match input.flag() {
            true => self.sender = sender(self.restarts),
            false => {
                self.receiver = receiver(self.restarts, self.now);
                (self.delivered, self.handled) = (0, 0);
            }
        }
    }

    fn replicate(&mut self, input: &mut Input<'_>) {
        let flow = flow(input);
        let len = input.below(LONGEST);
        let payload = vec![input.u8(); len];
        let mut scratch = [0; LONGEST + MAX_OVERHEAD];
        let room = scratch.len() - input.below(2) * input.below(LONGEST);
        let mut copies = Vec::new();
        let result =
            self.sender
                .replicate(self.now, &flow, &payload, &mut scratch[..room], |copy| {
                    copies.push(copy.bytes.to_vec());
                });
        match result {
            Replication::Copies { count, kept } => {
                assert!(count == copies.len() && count > 0);
                assert!(!kept || count == 1, "what is kept leaves on one network");
            }
            Replication::Unreplicated => assert!(copies.is_empty(), "a packet leaves once"),
        }
        for copy in copies {
            self.arrive(input, copy.clone());
            self.keep(copy);
        }
    }

    fn keep(&mut self, datagram: Vec<u8>) {
        if self.datagrams.len() < 64 {
            self.datagrams.push(datagram);
        }
    }

    fn arrive(&mut self, input: &mut Input<'_>, mut datagram: Vec<u8>) {
        let whole = datagram.len();
        let _ = self.sender.handle_feedback(self.now, &mut datagram.clone());
        let from = SocketAddr::from(([10, 0, 0, 1], 1_001));
        let on = Ind::new(input.u8() % 20);
        let result = self.receiver.handle_data(self.now, on, from, &mut datagram);
        self.handled += 1;
        if let Ok(delivery) = result {
            self.delivered += 1;
            assert!(delivery.payload.len() < whole && delivery.flow.is_sound());
        }
        let totals = self.receiver.totals();
        assert_eq!(totals.delivered, self.delivered);
        let refused: u64 = totals.discarded.iter().sum();
        assert_eq!(
            totals.delivered + refused,
            self.handled,
            "each datagram is counted once"
        );
    }

    /// Both ends get `message`: whoever holds a certificate may say anything.
    fn say(&mut self, input: &mut Input<'_>, message: &[u8]) {
        let peer = PeerId(input.below(3) as u32);
        let address = IpAddr::from([10, 0, 0, input.one_of(&[1, 2, 7])]);
        let from = Origin { peer, address };
        let mut answer = [0; MAX_MESSAGE];
        if let Ok(len @ 1..) = self
            .sender
            .handle_message(self.now, from, message, &mut answer)
        {
            let back = Origin {
                peer: PeerId(1),
                address: IpAddr::from([10, 0, 0, 1]),
            };
            let _ = self.receiver.handle_message(self.now, back, &answer[..len]);
            if self.messages.len() < 32 {
                self.messages.push(answer[..len].to_vec());
            }
        }
        let _ = self.receiver.handle_message(self.now, from, message);
    }

    /// What a driver does after each step. Everything comes to an end.
    fn drain(&mut self) {
        self.sender.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
        let mut message = [0; MAX_MESSAGE];
        let mut turns = 0;
        while let Some(outgoing) = self.receiver.poll_advertisement(self.now, &mut message) {
            let said = message[..outgoing.len].to_vec();
            self.say(&mut Input::new(&[2, 1]), &said);
            if self.messages.len() < 32 {
                self.messages.push(said);
            }
            turns += 1;
            assert!(turns < 100, "bounded: advertisements");
        }
        let mut answer = [0; FEEDBACK_LEN];
        while self.receiver.poll_feedback(&mut answer).is_some() {
            let _ = self.sender.handle_feedback(self.now, &mut answer.clone());
            self.keep(answer.to_vec());
        }
        let mut scratch = [0; LONGEST + MAX_OVERHEAD + 1];
        turns = 0;
        while let Some(copy) = self.sender.poll_transmit(self.now, &mut scratch) {
            turns += 1;
            assert!(
                turns < 200 && !copy.bytes.is_empty(),
                "bounded: what leaves again"
            );
        }
        while self.sender.poll_event().is_some() || self.receiver.poll_event().is_some() {}
        self.check();
    }

    fn check(&self) {
        assert!(
            self.receiver.len() <= SESSIONS + CANDIDATES,
            "bounded: senders"
        );
        let replicated = self.receiver.sessions().filter(|it| it.is_replicated());
        assert!(replicated.count() <= SESSIONS, "bounded: sessions");
        let sessions = self.sender.sessions().count();
        assert!(
            sessions <= SENDER_SESSIONS,
            "bounded: sessions of the sender"
        );
        let kept: u32 = self.sender.sessions().map(|session| session.kept()).sum();
        assert!(kept as usize <= KEPT, "bounded: kept packets");
        assert!(
            self.sender.poll_timeout() > self.now,
            "a sender that is always due"
        );
        assert!(
            self.receiver.poll_timeout() > self.now,
            "a receiver that is always due"
        );
    }
}

/// Does what `bytes` say to two hosts.
///
/// # Panics
/// If a table outgrows its bounds, a datagram is not counted once, a core asks to be woken for what it has just done, or
/// does not come to an end.
pub fn run(bytes: &[u8]) {
    let now = Instant::from_nanos(1_000_000_000);
    let mut world = World {
        now,
        sender: sender(0),
        receiver: receiver(0, now),
        restarts: 0,
        datagrams: Vec::new(),
        messages: Vec::new(),
        delivered: 0,
        handled: 0,
    };
    let mut input = Input::new(bytes);
    while !input.is_empty() {
        world.step(&mut input);
    }
}
