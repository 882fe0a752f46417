//! Values for which there is no plan.

use std::fmt;

use bumpless_base::{Duration, LinkSet, MAX_LINKS};
use serde::Serialize;

use super::{
    Channel, Link, Loss, MAX_BANDWIDTH, MAX_BUDGET, MAX_PERIOD, Machine, Packets, Scenario,
};

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
