//! What a seed makes: hosts, networks, flows, and which faults come when.

use bumpless_base::{Duration, Instant, Random};
use bumpless_iprp::{Flow, Mode, Side, TCP, Timing, UDP};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Faults come until then.
pub const FAULTS_UNTIL: Duration = Duration::from_millis(2_500);
/// By then all is as it should be again.
const HEALED_AT: Duration = Duration::from_millis(3_900);
/// Then it ends.
const END: Duration = Duration::from_millis(4_300);
/// Worlds of seeds with this bit advertise so seldom that a sender whose receiver is gone finds that out by asking (I-41).
pub const SLOW: u64 = 1 << 40;

pub const PORT: u16 = 5_000;
/// The group of each family.
pub const fn group(ipv6: bool) -> IpAddr {
    match ipv6 {
        false => IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3)),
        true => IpAddr::V6(Ipv6Addr::new(0xff35, 0, 0, 0, 0, 0, 1, 2)),
    }
}

pub fn at(span: Duration) -> Instant {
    Instant::from_nanos(1_000_000_000) + span
}

/// Much quicker than the paper's, so that much happens.
const TIMING: Timing = Timing {
    advertise_every: Duration::from_millis(200),
    back_off: Duration::from_millis(60),
    retry: Duration::from_millis(40),
    inactivity: Duration::from_millis(500),
    key_lifetime: Duration::from_millis(450),
};

/// That of a slow world. Strangers are forgotten as soon as in the others: while they hold every place of a candidate, nobody is found again.
const SLOW_TIMING: Timing = Timing {
    advertise_every: Duration::from_secs(5),
    back_off: Duration::from_millis(60),
    retry: Duration::from_millis(40),
    inactivity: Duration::from_millis(500),
    key_lifetime: Duration::from_secs(12),
};
/// By then a receiver that is there has been found again in a slow world, and then it ends.
const SLOW_HEALED_AT: Duration = Duration::from_millis(9_000);
const SLOW_END: Duration = Duration::from_millis(9_600);
/// Receivers are away so much longer there.
const LONGER: u64 = 5;

#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// Of 1,000 datagrams so many are lost, and so many come twice.
    pub loss: u64,
    pub twice: u64,
    pub delay: Duration,
    pub jitter: Duration,
    pub cuts: Vec<(Instant, Instant)>,
}

#[derive(Clone, Copy, Debug)]
pub struct FlowPlan {
    pub flow: Flow,
    pub from: usize,
    pub to: Option<usize>,
    pub every: Duration,
    /// It pauses from here to there.
    pub pause: (Instant, Instant),
    pub mode: Mode,
}

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A sender's process ends; the next one begins so much later.
    SenderRestarts(usize, Duration),
    /// A receiver's process ends; the next one begins so much later, with the same root or another one.
    ReceiverRestarts(usize, Duration, bool),
    /// A receiver's process says that it ends.
    ReceiverStops(usize, Duration),
    /// A host loses a network, and finds it again so much later.
    NetworkLeaves(usize, usize, Duration),
    /// A session's packet numbers come to their end.
    NumbersEnd(usize),
}

pub struct Plan {
    pub hosts: usize,
    pub networks: Vec<NetworkPlan>,
    pub flows: Vec<FlowPlan>,
    pub faults: Vec<(Instant, Fault)>,
    /// From here to there a host is no member of the group: it joins late, or leaves and comes back.
    pub absent: Vec<(Instant, Instant)>,
    pub max_lost: u32,
    pub control_delay: Duration,
    /// Of 100 control messages so many are lost.
    pub control_loss: u64,
    /// An attacker acts so often.
    pub attack_every: Option<Duration>,
    pub ipv6: bool,
    pub timing: Timing,
    pub healed_at: Duration,
    pub end: Duration,
}

pub fn address(ipv6: bool, host: usize, network: usize) -> IpAddr {
    let (host, network) = (host as u16 + 1, network as u16);
    match ipv6 {
        false => Ipv4Addr::new(10, network as u8, 0, host as u8).into(),
        true => Ipv6Addr::new(0xfd00, network, 0, 0, 0, 0, 0, host).into(),
    }
}

fn span(random: &mut Random, from_us: u64, to_us: u64) -> Duration {
    Duration::from_micros(from_us + random.below(to_us - from_us))
}

fn network(random: &mut Random, storm: u64) -> NetworkPlan {
    let mut plan = NetworkPlan {
        loss: [0, 0, 20, 200, 400, 800][random.below(6) as usize] * storm,
        twice: [0, 30, 200][random.below(3) as usize] * storm,
        delay: [span(random, 50, 2_000), span(random, 2_000, 120_000)][random.below(2) as usize],
        jitter: [span(random, 1, 200), span(random, 200, 30_000)][random.below(2) as usize],
        cuts: Vec::new(),
    };
    // A few cuts, or flapping.
    let (count, longest) = [(0, 1), (2, 900), (20, 60)][random.below(3) as usize];
    for _ in 0..count * storm {
        let from = at(span(random, 0, FAULTS_UNTIL.as_micros()));
        let until = from + span(random, 1_000, longest * 1_000 + 2_000);
        plan.cuts.push((from, until.min(at(FAULTS_UNTIL))));
    }
    plan
}

fn flow(random: &mut Random, hosts: usize, ipv6: bool, port: u16) -> FlowPlan {
    let from = random.below(hosts as u64) as usize;
    let to = (from + 1 + random.below(hosts as u64 - 1) as usize) % hosts;
    let side = [Side::Destination, Side::Source][random.below(2) as usize];
    let (source_port, destination_port) = match side {
        Side::Destination => (40_000 + port, port),
        Side::Source => (port, 40_000 + port),
    };
    let paused = at(span(random, 0, 2_000_000));
    FlowPlan {
        flow: Flow {
            protocol: [UDP, TCP][random.below(2) as usize],
            source: address(ipv6, from, 0),
            destination: address(ipv6, to, 0),
            source_port,
            destination_port,
        },
        from,
        to: Some(to),
        every: span(random, 2_000, 20_000),
        pause: (paused, paused + span(random, 0, 1_200_000)),
        mode: Mode::Redundant,
    }
}

/// A host's absence from the group: none, from the beginning on, or later.
fn absence(random: &mut Random) -> (Instant, Instant) {
    let from = span(random, 0, 1_500_000);
    let until = from + span(random, 0, 900_000);
    match random.below(3) {
        0 => (at(from), at(from)),
        1 => (at(Duration::ZERO), at(until)),
        _ => (at(from), at(until)),
    }
}

fn fault(random: &mut Random, hosts: usize, networks: usize) -> Fault {
    let host = random.below(hosts as u64) as usize;
    let network = random.below(networks as u64) as usize;
    let gone = span(random, 0, 400_000);
    match random.below(9) {
        0 | 1 => Fault::SenderRestarts(host, gone),
        2 | 3 => Fault::ReceiverRestarts(host, gone, true),
        4 | 5 => Fault::ReceiverRestarts(host, gone, false),
        6 => Fault::ReceiverStops(host, gone),
        7 => Fault::NetworkLeaves(host, network, gone),
        _ => Fault::NumbersEnd(host),
    }
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x1b9);
        let hosts = [2, 3, 3, 5][random.below(4) as usize];
        let ipv6 = random.below(3) == 0;
        let count = 1 + random.below(3);
        let networks: Vec<_> = (0..count).map(|_| network(&mut random, 1)).collect();
        let mut flows: Vec<_> = (0..1 + random.below(3))
            .map(|at| flow(&mut random, hosts, ipv6, PORT + at as u16))
            .collect();
        if hosts > 2 && random.below(2) == 0 {
            let mut to_group = flow(&mut random, hosts, ipv6, PORT + 7);
            to_group.flow.destination = group(ipv6);
            to_group.flow.protocol = UDP;
            to_group.to = None;
            flows.push(to_group);
        }
        if random.below(4) == 0 {
            flows.iter_mut().for_each(|flow| flow.mode = Mode::Standby);
        }
        let faults = (0..random.below(7))
            .map(|_| {
                let when = at(span(&mut random, 100_000, 2_100_000));
                (when, fault(&mut random, hosts, networks.len()))
            })
            .collect();
        let absent = (0..hosts).map(|_| absence(&mut random)).collect();
        let mut plan = Self {
            hosts,
            networks,
            flows,
            faults,
            absent,
            max_lost: [64, 1_024][random.below(2) as usize],
            control_delay: span(&mut random, 100, 30_000),
            control_loss: [0, 0, 30][random.below(3) as usize],
            attack_every: (random.below(2) == 0).then(|| span(&mut random, 1_000, 20_000)),
            ipv6,
            timing: TIMING,
            healed_at: HEALED_AT,
            end: END,
        };
        // Some worlds have flows whose packets are further apart than questions (I-41).
        if random.below(4) == 0 {
            for flow in &mut plan.flows {
                flow.every = span(&mut random, 20_000, 400_000);
            }
            // Strangers who come more often than a flow's packets take each place of a candidate before it does.
            plan.attack_every = plan.attack_every.map(|every| every * 20);
        }
        if seed & SLOW != 0 {
            plan.become_slow();
        }
        plan
    }

    fn become_slow(&mut self) {
        self.timing = SLOW_TIMING;
        (self.healed_at, self.end) = (SLOW_HEALED_AT, SLOW_END);
        for (_, fault) in &mut self.faults {
            if let Fault::ReceiverRestarts(_, gone, _) | Fault::ReceiverStops(_, gone) = fault {
                *gone = *gone * LONGER;
            }
        }
    }
}
