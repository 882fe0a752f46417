//! A seed's channels and networks.
//!
//! Drawn first are sizes, periods, deadlines, budgets and how the channels use the networks; then how full the
//! fullest resource shall be, evenly from 0.3 to 1.3; then the bandwidth is chosen that makes it so. Whatever falls
//! outside 10 to 1000 Mbit/s is drawn again with the same fullness.

use bumpless_base::{ChannelId, Duration, LinkId, LinkSet, Random, frame};
use bumpless_plan::demand::Utilisation;
use bumpless_plan::resource::resources;
use bumpless_plan::{
    Background, Burst, Channel, Distribution, Link, Loss, Machine, Packets, Scenario,
};
use bumpless_wire::WireVersion;

use crate::streams::{Purpose, stream};

/// Of UDP, IPv4 and Ethernet with preamble and gap.
const FRAME_OVERHEAD: u32 = (frame::ETHERNET + frame::IPV4 + frame::UDP) as u32;
/// Of which an error does not hurt.
const GAP: u32 = 20;
/// Between the bounds of how full the fullest resource is, in thousandths.
pub const FULLNESS: std::ops::Range<u64> = 300..1300;
const BANDWIDTH: std::ops::RangeInclusive<u64> = 10_000_000..=1_000_000_000;
const MICROSECOND: u64 = 1_000;

/// A drawn set.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// How full the fullest resource is, thousandths.
    pub fullness: u64,
    /// The set, and the world in which it is tried.
    pub scenario: Scenario,
}

/// The set of `seed`.
pub fn draw(seed: u64) -> Drawn {
    let mut random = stream(seed, Purpose::Promise, 0);
    let fullness = FULLNESS.start + random.below(FULLNESS.end - FULLNESS.start);
    loop {
        if let Some(scenario) = attempt(&mut random, fullness) {
            return Drawn { fullness, scenario };
        }
    }
}

/// A number from `low` to `high`: each doubling is as likely as any other, and so is each number within one.
fn by_doublings(random: &mut Random, low: u64, high: u64) -> u64 {
    let doublings = u64::from((high / low).ilog2()) + 1;
    loop {
        let from = low << random.below(doublings);
        let drawn = from + random.below(from);
        if drawn <= high {
            return drawn;
        }
    }
}

fn attempt(random: &mut Random, fullness: u64) -> Option<Scenario> {
    let payload = [500, 1000, 1432][random.below(3) as usize];
    let mut scenario = Scenario {
        links: links(random),
        packets: Packets {
            payload,
            header: WireVersion::V2.header_len().into(),
            security: 0,
            in_flight_max: [512, 1024, 4096][random.below(3) as usize],
        },
        machine: Machine {
            jitter_ns: match random.below(4) {
                0 => 0,
                _ => by_doublings(random, 5 * MICROSECOND, 100 * MICROSECOND),
            },
            ..Machine::default()
        },
        channels: Vec::new(),
    };
    let manner = random.below(3);
    let count = 2 + random.below(9);
    let shortest = by_doublings(random, 2_000_000, 50_000_000);
    for at in 0..count {
        let period = by_doublings(random, shortest, (16 * shortest).min(200_000_000));
        let channel = channel(random, at, period, scenario.links.len(), manner);
        scenario.channels.push(channel);
    }
    scale(&mut scenario, fullness)?;
    for link in &mut scenario.links {
        link.burst = Burst::Paced {
            packet: link.frame_overhead + u32::from(message_max(&scenario.packets)),
            partners: 1,
        };
    }
    Some(scenario)
}

fn links(random: &mut Random) -> Vec<Link> {
    let count = 1 + random.below(2);
    let equal = random.below(2) == 0;
    let mut links = Vec::new();
    for at in 0..count {
        // In units that are scaled: half to double the first one's.
        let share = match at {
            0 => 1_000,
            _ if equal => 1_000,
            _ => by_doublings(random, 500, 2_000),
        };
        let round_trip =
            Duration::from_nanos(by_doublings(random, 40 * MICROSECOND, 400 * MICROSECOND));
        links.push(Link {
            name: ["A", "B"][at as usize].into(),
            bandwidth: share * 1_000_000,
            frame_overhead: FRAME_OVERHEAD,
            gap: GAP,
            round_trip: (round_trip, round_trip),
            answers_behind: false,
            burst: Burst::Fixed(0),
            other_frame: [0, frame::FULL.into()][random.below(2) as usize],
            loss: Loss::BitErrors(0.0),
            background: vec![Background {
                acknowledges: None,
                bytes: FRAME_OVERHEAD + 60 + random.below(100) as u32,
                period: Duration::from_nanos(by_doublings(random, 2_000_000, 20_000_000)),
            }],
        });
    }
    links
}

/// Identity of the channel at this position.
fn id(at: u64) -> ChannelId {
    match ChannelId::new(at as u16 + 1) {
        Some(id) => id,
        None => unreachable!("one more than a position is not zero"),
    }
}

fn channel(random: &mut Random, at: u64, period: u64, links: usize, manner: u64) -> Channel {
    let deadline = period * (300 + random.below(701)) / 1_000;
    let all = LinkSet::first(links);
    // All replicate, all spread, or each as it is drawn, perhaps on one network only.
    let own = match manner {
        0 | 1 => manner,
        _ => random.below(4),
    };
    let one = LinkSet::only(LinkId(random.below(links as u64) as u8));
    Channel {
        id: id(at),
        name: format!("{}", at + 1),
        size: by_doublings(random, 100, 300_000) as u32,
        period: Duration::from_nanos(period),
        deadline: Duration::from_nanos(deadline),
        budget: random.below(6) as u32,
        budget_follows: false,
        accepted_loss_per_year: None,
        links: if own < 3 { all } else { one },
        distribution: match own {
            1 | 2 => Distribution::Spread,
            _ => Distribution::Replicate,
        },
    }
}

/// Gives the networks the bandwidth with which the fullest resource is so full.
fn scale(scenario: &mut Scenario, fullness: u64) -> Option<()> {
    let full = situations(scenario)
        .flat_map(|up| resources(scenario, up))
        .map(|resource| Utilisation::of(&resource.set()).value())
        .fold(0.0, f64::max);
    for link in &mut scenario.links {
        let bandwidth = link.bandwidth as f64 * full * 1_000.0 / fullness as f64;
        link.bandwidth = bandwidth as u64;
    }
    let fit = |link: &Link| BANDWIDTH.contains(&link.bandwidth);
    scenario.links.iter().all(fit).then_some(())
}

/// Which networks are in service: all, and all but each of several.
pub fn situations(scenario: &Scenario) -> impl Iterator<Item = LinkSet> {
    let all = LinkSet::first(scenario.links.len());
    let without = all.iter().map(move |link| {
        let mut up = all;
        up.remove(link);
        up
    });
    std::iter::once(all).chain(without.filter(|up| !up.is_empty()))
}

/// The largest datagram of a state.
pub fn message_max(packets: &Packets) -> u16 {
    (packets.payload + packets.header + packets.security) as u16
}
