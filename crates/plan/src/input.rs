//! What a plan is made from, and what can be wrong with it.

use std::fmt;

use bumpless_base::{Duration, LinkId, LinkSet, MAX_LINKS};
use serde::Serialize;

/// Longest period that a plan takes: with it, sums over years of cycles stay exact.
pub const MAX_PERIOD: Duration = Duration::from_secs(3600);
/// Largest bandwidth, bit/s.
pub const MAX_BANDWIDTH: u64 = 1_000_000_000_000;
/// Most retransmissions in a budget.
pub const MAX_BUDGET: u32 = 100;

/// How often frames are lost on a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Share of bits that arrive wrong; a frame with one is lost.
    BitErrors(f64),
    /// Share of frames that are lost, whatever their length.
    Frames(f64),
}

/// One network between the nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Bit/s at which the nodes send at most.
    pub bandwidth: u64,
    /// Bytes on the wire for each packet beyond its UDP payload (UDP, IP, Ethernet with preamble and gap).
    pub frame_overhead: u32,
    /// How much of `frame_overhead` an error does not hurt: preamble and gap, bytes.
    pub gap: u32,
    /// Shortest and longest time from a packet's last bit on the idle network to its acknowledgement at
    /// the sender: both ways, and the receiver's turn.
    pub round_trip: (Duration, Duration),
    /// Most bytes of a less urgent channel that cannot be overtaken any more: the pacer's burst.
    pub burst: u32,
    /// Longest frame of other traffic that may stand in the way of each burst, bytes on the wire.
    pub other_frame: u32,
    /// How often frames are lost.
    pub loss: Loss,
    /// What the nodes send besides states, before any state: heartbeats, requests, acknowledgements.
    pub background: Vec<Background>,
}

impl Link {
    /// Whether it differs from `other` by its name at most.
    pub fn is_like(&self, other: &Self) -> bool {
        let Self {
            name: _,
            bandwidth,
            frame_overhead,
            gap,
            round_trip,
            burst,
            other_frame,
            loss,
            background,
        } = self;
        (bandwidth, frame_overhead, gap, round_trip, burst)
            == (
                &other.bandwidth,
                &other.frame_overhead,
                &other.gap,
                &other.round_trip,
                &other.burst,
            )
            && (other_frame, loss, background)
                == (&other.other_frame, &other.loss, &other.background)
    }
}

/// Messages that come at a fixed interval and are sent before any state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// Bytes on the wire.
    pub bytes: u32,
    /// Between two of them.
    pub period: Duration,
    /// Position of the channel whose states they acknowledge, if that is what they are for.
    pub acknowledges: Option<usize>,
}

/// How states are cut into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// State bytes in every packet but a state's last.
    pub payload: u32,
    /// Header bytes of each packet.
    pub header: u32,
    /// Bytes of authentication of each packet.
    pub security: u32,
    /// Unacknowledged packets to one partner.
    pub in_flight_max: u32,
}

/// What the nodes themselves take for a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Processor time of a packet on one network, the slower of both nodes, nanoseconds.
    pub per_packet_ns: u64,
    /// Processor time of 1,000 bytes on one network, the slower of both nodes, nanoseconds.
    pub per_kilobyte_ns: u64,
    /// Time of a transfer that depends on nothing else: hand-overs between threads, both ends.
    pub per_transfer_ns: u64,
    /// How much later than intended a thread may go on.
    pub jitter_ns: u64,
}

/// How the packets of a channel use its networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Each packet on every one; the first copy counts.
    Replicate,
    /// Each packet on one.
    Spread,
}

/// One channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// Largest state, bytes, with everything that travels in it.
    pub size: u32,
    /// Shortest time between two states.
    pub period: Duration,
    /// From publication to acknowledgement; at most the period.
    pub deadline: Duration,
    /// Packets of one state that may be lost, the retransmission budget.
    pub budget: u32,
    /// States that may be lost in a year; `None`: not stated.
    pub accepted_loss_per_year: Option<f64>,
    /// Networks that carry it.
    pub links: LinkSet,
    /// How its packets use them.
    pub distribution: Distribution,
}

/// A sender with its channels and networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The networks; the position is the `LinkId`.
    pub links: Vec<Link>,
    /// How states are cut.
    pub packets: Packets,
    /// What the nodes take.
    pub machine: Machine,
    /// The channels, all of which one node may have to send.
    pub channels: Vec<Channel>,
}

/// Which networks are in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Those that are.
    pub up: LinkSet,
    /// Position of the one that is not; `None`: all are.
    pub without: Option<usize>,
}

/// A value for which there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where: `channel "x"`, `network "A"`.
    pub place: String,
    /// Which value.
    pub field: &'static str,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.field, self.reason)
    }
}

struct Faults {
    place: String,
    all: Vec<Fault>,
}

impl Faults {
    fn at(&mut self, place: impl Into<String>) {
        self.place = place.into();
    }

    fn unless(&mut self, right: bool, field: &'static str, reason: impl FnOnce() -> String) {
        if !right {
            let (place, reason) = (self.place.clone(), reason());
            self.all.push(Fault {
                place,
                field,
                reason,
            });
        }
    }
}

impl Scenario {
    /// What must be planned for: all networks in service first, then, of several, all but each one.
    pub fn services(&self) -> impl Iterator<Item = Service> {
        let all = LinkSet::first(self.links.len());
        let several = all.len() > 1;
        let without = all.iter().filter(move |_| several).map(move |link| {
            let mut up = all;
            up.remove(link);
            let without = Some(usize::from(link.0));
            Service { up, without }
        });
        std::iter::once(Service {
            up: all,
            without: None,
        })
        .chain(without)
    }

    /// The same, but of networks that are alike only the first is missing once: what holds without it holds without
    /// each of the others.
    pub fn different_services(&self) -> impl Iterator<Item = Service> {
        let all = LinkSet::first(self.links.len());
        self.services().filter(move |service| {
            let missing = service.without.map(|link| LinkId(link as u8));
            missing.is_none_or(|link| self.is_first_alike(link, all))
        })
    }

    /// Whether no earlier network of `among` could take the place of `link`: the same in everything but its name, and
    /// with the same channels. What holds on one of those, or without it, holds on, or without, the others.
    pub fn is_first_alike(&self, link: LinkId, among: LinkSet) -> bool {
        let mut earlier = among.iter().filter(|other| other.0 < link.0);
        !earlier.any(|other| self.are_alike(link, other))
    }

    fn are_alike(&self, one: LinkId, other: LinkId) -> bool {
        let of = |id: LinkId| self.links.get(usize::from(id.0));
        let (Some(first), Some(second)) = (of(one), of(other)) else {
            return false;
        };
        let carried =
            |channel: &Channel| channel.links.contains(one) == channel.links.contains(other);
        first.is_like(second) && self.channels.iter().all(carried)
    }

    /// Everything for which there is no plan; none of it can become a wrong yes.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = Faults {
            place: String::new(),
            all: Vec::new(),
        };
        faults.at("networks");
        faults.unless(
            (1..=MAX_LINKS).contains(&self.links.len()),
            "number",
            || format!("{} given; give 1 to {MAX_LINKS}", self.links.len()),
        );
        self.links.iter().for_each(|link| link.check(&mut faults));
        faults.at("packets");
        let Packets {
            payload,
            header,
            security,
            in_flight_max,
        } = self.packets;
        faults.unless((1..=65_535).contains(&payload), "payload", || {
            format!("is {payload} bytes; give 1 to 65535")
        });
        faults.unless(header <= 65_535 && security <= 65_535, "header", || {
            format!("is {header} bytes and {security} of authentication; give at most 65535 each")
        });
        faults.unless(in_flight_max > 0, "in_flight_max", || {
            "is 0; give at least 1".into()
        });
        self.machine.check(&mut faults);
        let all = LinkSet::first(self.links.len());
        self.channels
            .iter()
            .for_each(|channel| channel.check(all, &mut faults));
        faults.all
    }
}

impl Link {
    fn check(&self, faults: &mut Faults) {
        faults.at(format!("network {:?}", self.name));
        let bandwidth = self.bandwidth;
        faults.unless(
            (1..=MAX_BANDWIDTH).contains(&bandwidth),
            "bandwidth",
            || {
                format!(
                    "is {bandwidth} bit/s; give 1 to {MAX_BANDWIDTH}, what the slowest hop carries"
                )
            },
        );
        let (least, most) = self.round_trip;
        faults.unless(least <= most && most <= MAX_PERIOD, "round_trip", || {
            format!("is from {least} to {most}; give a least that is not above the most, at most {MAX_PERIOD}")
        });
        let (name, share) = match self.loss {
            Loss::BitErrors(share) => ("bit_error_rate", share),
            Loss::Frames(share) => ("frame_loss", share),
        };
        faults.unless((0.0..1.0).contains(&share), name, || {
            format!("is {share}; give a share from 0 to below 1")
        });
        for background in &self.background {
            faults.unless(background.period > Duration::ZERO, "background", || {
                "comes with a period of 0; give a longer one".into()
            });
        }
    }
}

impl Machine {
    fn check(&self, faults: &mut Faults) {
        let most = MAX_PERIOD.as_nanos();
        let given = [
            ("per_packet_ns", self.per_packet_ns),
            ("per_kilobyte_ns", self.per_kilobyte_ns),
            ("per_transfer_ns", self.per_transfer_ns),
            ("jitter_ns", self.jitter_ns),
        ];
        faults.at("machine");
        for (field, nanos) in given {
            faults.unless(nanos <= most, field, || {
                format!("is {nanos} ns; give at most {most}")
            });
        }
    }
}

impl Channel {
    fn check(&self, all: LinkSet, faults: &mut Faults) {
        faults.at(format!("channel {:?}", self.name));
        let (period, deadline) = (self.period, self.deadline);
        faults.unless(
            period > Duration::ZERO && period <= MAX_PERIOD,
            "period",
            || format!("is {period}; give more than 0 and at most {MAX_PERIOD}"),
        );
        faults.unless(deadline > Duration::ZERO, "deadline", || {
            "is 0; give more".into()
        });
        faults.unless(deadline <= period, "deadline", || {
            format!("{deadline} is longer than the period, {period}; give at most the period: a state is replaced in the next cycle")
        });
        faults.unless(self.budget <= MAX_BUDGET, "retransmissions", || {
            format!("is {}; give at most {MAX_BUDGET}", self.budget)
        });
        if let Some(accepted) = self.accepted_loss_per_year {
            faults.unless(
                accepted > 0.0 && accepted.is_finite(),
                "accepted_loss_per_year",
                || format!("is {accepted}; give a number above 0, such as 1e-6"),
            );
        }
        let known = self.links.intersection(all) == self.links;
        faults.unless(known && !self.links.is_empty(), "networks", || {
            "names none, or one that is not there; name at least one".into()
        });
    }
}
