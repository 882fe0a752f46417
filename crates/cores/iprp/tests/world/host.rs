//! One host: a sender and a receiver, each of which may be down.

use bumpless_base::{Instant, Random};
use bumpless_iprp::{
    Group, Ind, Monitored, Network, Networks, Receiver, ReceiverLimits, ReceiverSetup, Sender,
    SenderLimits, SenderSetup, Side, TCP, UDP,
};
use bumpless_secure::Secret;

use crate::check::Life;
use crate::plan::{PORT, Plan, address, group};
use crate::suite::TestSuite;

pub const CANDIDATES: usize = 8;
pub const KEPT: usize = 256;

pub struct Host {
    pub index: usize,
    pub sender: Option<Sender<TestSuite>>,
    pub receiver: Option<Receiver<TestSuite>>,
    pub sender_life: u32,
    pub life: Life,
    pub key_number: u32,
    /// Which networks it is on.
    pub on: Vec<bool>,
    /// When it is woken next.
    pub wake: Instant,
}

pub fn ind(network: usize) -> Ind {
    Ind::new(network as u8 + 10).expect("a discriminator")
}

fn groups() -> Vec<Group> {
    let one = |ipv6| Group {
        address: group(ipv6),
        secrets: vec![Secret::new([9 + u8::from(ipv6); 32])],
    };
    [false, true].map(one).into()
}

fn monitored() -> Vec<Monitored> {
    let range = |protocol, side| Monitored {
        protocol,
        side,
        first: PORT,
        last: PORT + 9,
    };
    let both = [Side::Destination, Side::Source];
    both.into_iter()
        .flat_map(|side| [range(UDP, side), range(TCP, side)])
        .collect()
}

impl Host {
    pub fn new(index: usize, plan: &Plan, now: Instant, random: &mut Random) -> Self {
        let mut host = Self {
            index,
            sender: None,
            receiver: None,
            sender_life: 0,
            life: Life {
                host: index,
                number: 0,
                root: 0,
                began: now,
            },
            key_number: random.below(1 << 32) as u32,
            on: vec![true; plan.networks.len()],
            wake: Instant::FAR_FUTURE,
        };
        host.start_sender(plan, random);
        host.start_receiver(plan, now, random, false);
        host
    }

    pub fn networks(&self, ipv6: bool) -> Networks {
        let there = (0..self.on.len()).filter(|&network| self.on[network]);
        let networks: Vec<_> = there
            .map(|network| Network {
                ind: ind(network),
                address: address(ipv6, self.index, network),
            })
            .collect();
        Networks::new(&networks).expect("sound networks")
    }

    pub fn start_sender(&mut self, plan: &Plan, random: &mut Random) {
        self.sender_life += 1;
        let sender = Sender::new(SenderSetup {
            networks: self.networks(plan.ipv6),
            groups: groups(),
            limits: SenderLimits {
                sessions: 16,
                kept_packets: KEPT,
                kept_len: 200,
            },
            seed: random.next_u64(),
        });
        self.sender = Some(sender.expect("a sound setup"));
    }

    pub fn start_receiver(
        &mut self,
        plan: &Plan,
        now: Instant,
        random: &mut Random,
        keeps_root: bool,
    ) {
        if !keeps_root {
            self.life.root += 1;
        }
        self.life.number += 1;
        self.life.began = now;
        self.key_number = self.key_number.wrapping_add(1);
        let root = [self.life.root as u8, self.index as u8];
        let receiver = Receiver::new(
            ReceiverSetup {
                networks: self.networks(plan.ipv6),
                monitored: monitored(),
                groups: groups(),
                root: Secret::new([root; 16].concat().try_into().expect("32 bytes")),
                key_number: self.key_number,
                timing: plan.timing,
                limits: ReceiverLimits {
                    sessions: 16,
                    candidates: CANDIDATES,
                    max_lost: plan.max_lost,
                },
                seed: random.next_u64(),
            },
            now,
        );
        self.receiver = Some(receiver.expect("a sound setup"));
    }

    pub fn timeout(&self) -> Instant {
        let sender = self.sender.as_ref().map(Sender::poll_timeout);
        let receiver = self.receiver.as_ref().map(Receiver::poll_timeout);
        let both = [sender, receiver].into_iter().flatten();
        both.min().unwrap_or(Instant::FAR_FUTURE)
    }
}
