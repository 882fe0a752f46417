//! A sending and a receiving host on networks that lose nothing unless a test says so.
#![allow(dead_code)]

use bumpless_base::{Duration, Instant};
use bumpless_iprp::{
    FEEDBACK_LEN, Flow, Ind, MAX_MESSAGE, Monitored, Network, Networks, Origin, PeerId, Receiver,
    ReceiverLimits, ReceiverSetup, Replication, Scope, Sender, SenderLimits, SenderSetup, Side,
    Timing, UDP,
};
use bumpless_secure::{RingSuite, Secret};
use std::net::{IpAddr, SocketAddr};

pub const MS: Duration = Duration::from_millis(1);
pub const PORT: u16 = 5_000;

pub fn ind(number: u8) -> Ind {
    Ind::new(number).unwrap()
}

pub fn address(host: u8, network: u8) -> IpAddr {
    IpAddr::from([10, network, 0, host])
}

/// The networks `inds` of a host.
pub fn networks(host: u8, inds: &[u8]) -> Networks {
    let network = |&number: &u8| Network {
        ind: ind(number),
        address: address(host, number),
    };
    Networks::new(&inds.iter().map(network).collect::<Vec<_>>()).unwrap()
}

pub fn flow() -> Flow {
    Flow {
        protocol: UDP,
        source: address(1, 1),
        destination: address(2, 1),
        source_port: 40_000,
        destination_port: PORT,
    }
}

pub fn receiver_setup() -> ReceiverSetup {
    ReceiverSetup {
        networks: networks(2, &[1, 2]),
        monitored: vec![Monitored {
            protocol: UDP,
            side: Side::Destination,
            first: PORT,
            last: PORT,
        }],
        groups: Vec::new(),
        root: Secret::new([7; 32]),
        key_number: 5,
        timing: Timing::default(),
        limits: ReceiverLimits {
            sessions: 8,
            candidates: 4,
            max_lost: 1_024,
        },
        seed: 3,
    }
}

pub fn sender_setup(seed: u64) -> SenderSetup {
    SenderSetup {
        networks: networks(1, &[1, 2]),
        groups: Vec::new(),
        limits: SenderLimits {
            sessions: 8,
            kept_packets: 64,
            kept_len: 1_500,
        },
        seed,
    }
}

/// A copy on its way.
pub type Copied = (Ind, IpAddr, Vec<u8>);

pub struct Pair {
    pub sender: Sender<RingSuite>,
    pub receiver: Receiver<RingSuite>,
    pub now: Instant,
}

impl Pair {
    pub fn new() -> Self {
        Self::of(sender_setup(1), receiver_setup())
    }

    pub fn of(sender: SenderSetup, receiver: ReceiverSetup) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        Self {
            sender: Sender::new(sender).unwrap(),
            receiver: Receiver::new(receiver, now).unwrap(),
            now,
        }
    }

    /// A pair with a session for [`flow`].
    pub fn begun() -> Self {
        let mut pair = Self::new();
        pair.receiver.handle_monitored(pair.now, &flow());
        pair.control();
        assert!(pair.sender.is_replicated(&flow()));
        pair
    }

    /// Lets both say what they have to say on the secure channel; how many advertisements that were.
    pub fn control(&mut self) -> usize {
        let mut count = 0;
        let mut message = [0; MAX_MESSAGE];
        while let Some(outgoing) = self.receiver.poll_advertisement(self.now, &mut message) {
            count += 1;
            let bytes = message[..outgoing.len].to_vec();
            self.say_to_sender(&bytes);
        }
        count
    }

    pub fn say_to_sender(&mut self, bytes: &[u8]) {
        let mut answer = [0; MAX_MESSAGE];
        let from = Origin {
            peer: PeerId(2),
            address: address(2, 1),
        };
        if let Ok(len) = self
            .sender
            .handle_message(self.now, from, bytes, &mut answer)
            && len > 0
        {
            let from = Origin {
                peer: PeerId(1),
                address: address(1, 1),
            };
            let _ = self.receiver.handle_message(self.now, from, &answer[..len]);
        }
    }

    pub fn pass(&mut self, span: Duration) {
        self.now += span;
        self.sender.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
    }

    pub fn send_as(&mut self, flow: &Flow, payload: &[u8]) -> Vec<Copied> {
        let mut copies = Vec::new();
        let mut scratch = [0; 2_048];
        let result = self
            .sender
            .replicate(self.now, flow, payload, &mut scratch, |copy| {
                copies.push((copy.ind, copy.to, copy.bytes.to_vec()));
            });
        match result {
            Replication::Copies { count, .. } => assert_eq!(count, copies.len()),
            Replication::Unreplicated => assert!(copies.is_empty()),
        }
        copies
    }

    pub fn send(&mut self, payload: &[u8]) -> Vec<Copied> {
        self.send_as(&flow(), payload)
    }

    /// What the receiver makes of a copy: the payload that it hands on.
    pub fn arrive(&mut self, copy: &Copied) -> Result<Vec<u8>, bumpless_iprp::Discard> {
        let mut bytes = copy.2.clone();
        let from = SocketAddr::new(address(1, copy.0.get()), 1_001);
        let result = self
            .receiver
            .handle_data(self.now, Some(copy.0), from, &mut bytes);
        result.map(|delivery| delivery.payload.to_vec())
    }

    /// The receiver's answers reach the sender; how many counted.
    pub fn answers(&mut self) -> usize {
        let mut answer = [0; FEEDBACK_LEN];
        let mut count = 0;
        while self.receiver.poll_feedback(&mut answer).is_some() {
            count += usize::from(
                self.sender
                    .handle_feedback(self.now, &mut answer.clone())
                    .is_ok(),
            );
        }
        count
    }
}

pub fn scope() -> Scope {
    Scope {
        protocol: UDP,
        side: Side::Destination,
        port: PORT,
        destination: address(2, 1),
    }
}
