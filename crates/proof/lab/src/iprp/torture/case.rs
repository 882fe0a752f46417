//! What is done: each set of conditions on the networks with each thing that befalls hosts and networks meanwhile.

use std::time::Duration;

use serde::Serialize;

use crate::iprp::relay::{Delay, Fault, Loss};

/// Networks between the hosts.
pub const NETWORKS: usize = 2;
/// The share of copies that network A loses.
const LOSS: f64 = 0.4;
/// By how much network B is behind, and up to how much copies overtake each other; in nanoseconds.
pub const SKEW_NS: u64 = 100_000_000;
pub const SPREAD_NS: u64 = 20_000_000;

/// Before an event, and after everything is as it should be again.
pub const BEFORE: Duration = Duration::from_millis(300);
pub const AFTER: Duration = Duration::from_millis(400);
/// How long a cut takes.
pub const FAULT: Duration = Duration::from_millis(700);
/// How long a flapping network is down, and how often one is.
pub const DOWN: Duration = Duration::from_millis(15);
pub const TURNS: usize = 60;
/// How long a daemon that was killed is away, the sender's and the receiver's: the latter until it is noticed (I-41), and longer.
pub const AWAY: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(2)];

/// What is wrong with the networks all the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Network A loses copies, B none.
    pub loss: bool,
    /// Network B is much slower than A.
    pub skew: bool,
    /// Copies overtake each other on both.
    pub reordering: bool,
}

impl Conditions {
    /// All of them, the harmless ones first.
    pub const ALL: [Self; 8] = {
        let mut all = [Self {
            loss: false,
            skew: false,
            reordering: false,
        }; 8];
        let mut at = 0;
        while at < all.len() {
            all[at] = Self {
                loss: at & 1 != 0,
                skew: at & 2 != 0,
                reordering: at & 4 != 0,
            };
            at += 1;
        }
        all
    };

    /// The last part of a case's name.
    pub fn name(self) -> String {
        let parts = [
            (self.loss, "loss"),
            (self.skew, "skew"),
            (self.reordering, "reordering"),
        ];
        let parts: Vec<_> = parts.iter().filter(|it| it.0).map(|it| it.1).collect();
        match parts.is_empty() {
            true => "clean".into(),
            false => parts.join("-"),
        }
    }

    /// The same for the networks.
    pub fn faults(self) -> [Fault; NETWORKS] {
        let spread_ns = if self.reordering { SPREAD_NS } else { 0 };
        let fault = |loss: bool, least_ns: u64| Fault {
            loss: match loss {
                true => Loss::Independent(LOSS),
                false => Loss::None,
            },
            delay: Delay {
                least_ns,
                spread_ns,
            },
            ..Fault::default()
        };
        let behind = if self.skew { SKEW_NS } else { 0 };
        [fault(self.loss, 0), fault(false, behind)]
    }

    /// How long a copy takes at most, nanoseconds.
    pub const fn longest_ns(self) -> u64 {
        let skew = if self.skew { SKEW_NS } else { 0 };
        skew + if self.reordering { SPREAD_NS } else { 0 }
    }
}

/// What befalls hosts and networks in mid-stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Nothing,
    /// Nothing passes on network A for a while.
    Cut,
    /// Networks take turns: one is down while the other is up.
    Flapping,
    /// The sending daemon ends in order and begins anew.
    SenderRestarts,
    /// The receiving one.
    ReceiverRestarts,
    /// The sending daemon is killed and begins anew.
    SenderKilled,
    /// The receiving one.
    ReceiverKilled,
    /// Packet numbers come to their end.
    NumbersEnd,
}

impl Event {
    pub const ALL: [Self; 8] = [
        Self::Nothing,
        Self::Cut,
        Self::Flapping,
        Self::SenderRestarts,
        Self::ReceiverRestarts,
        Self::SenderKilled,
        Self::ReceiverKilled,
        Self::NumbersEnd,
    ];

    /// The first part of a case's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Cut => "cut",
            Self::Flapping => "flapping",
            Self::SenderRestarts => "sender-restarts",
            Self::ReceiverRestarts => "receiver-restarts",
            Self::SenderKilled => "sender-killed",
            Self::ReceiverKilled => "receiver-killed",
            Self::NumbersEnd => "numbers-end",
        }
    }

    /// In words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Nothing => "nothing befalls",
            Self::Cut => "network A is cut for 0.7 s",
            Self::Flapping => "networks take turns: one is down for 15 ms, then the other",
            Self::SenderRestarts => "the sending daemon ends in order and begins anew",
            Self::ReceiverRestarts => "the receiving daemon ends in order and begins anew",
            Self::SenderKilled => "the sending daemon is killed, and begins anew 0.3 s later",
            Self::ReceiverKilled => "the receiving daemon is killed, and begins anew 2 s later",
            Self::NumbersEnd => "packet numbers come to their end (2^32 - 1)",
        }
    }

    /// The daemon that ends, and whether it is killed.
    pub const fn ends(self) -> Option<(usize, bool)> {
        match self {
            Self::SenderRestarts => Some((0, false)),
            Self::ReceiverRestarts => Some((1, false)),
            Self::SenderKilled => Some((0, true)),
            Self::ReceiverKilled => Some((1, true)),
            _ => None,
        }
    }

    /// Of datagrams that were sent from so long before to so long after the event nothing is promised, nanoseconds: those that the
    /// daemon has in hand when it is killed, and those that are sealed for one that is not there until that is noticed (I-41).
    pub const fn unpromised_ns(self) -> Option<(u64, u64)> {
        const MS: u64 = 1_000_000;
        match self {
            Self::SenderKilled => Some((100 * MS, 250 * MS)),
            Self::ReceiverKilled => Some((250 * MS, 1_500 * MS)),
            _ => None,
        }
    }
}

/// Where a case is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// By the real daemons on hosts of this machine.
    Namespaces,
    /// By the product's cores in simulated time.
    Simulated,
}

/// One cell of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub place: Place,
    pub event: Event,
    pub conditions: Conditions,
}

impl Case {
    /// The whole matrix, in both places. No daemon comes to the end of its packet numbers within a human's patience.
    pub fn all() -> Vec<Self> {
        let of = |place: Place, event: Event| {
            Conditions::ALL.into_iter().map(move |conditions| Self {
                place,
                event,
                conditions,
            })
        };
        let real = Event::ALL.into_iter().filter(|it| *it != Event::NumbersEnd);
        let real = real.flat_map(|event| of(Place::Namespaces, event));
        let simulated = Event::ALL.into_iter();
        let simulated = simulated.flat_map(|event| of(Place::Simulated, event));
        real.chain(simulated).collect()
    }

    /// What it is called.
    pub fn id(self) -> String {
        let place = match self.place {
            Place::Namespaces => "",
            Place::Simulated => "simulated.",
        };
        format!("{place}{}.{}", self.event.name(), self.conditions.name())
    }

    /// One of the short run: all that is simulated; with real daemons each event under all conditions at once, and the clean networks.
    pub fn is_quick(self) -> bool {
        let [clean, .., all] = Conditions::ALL;
        let is_clean = self.event == Event::Nothing && self.conditions == clean;
        self.place == Place::Simulated || self.conditions == all || is_clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_meets_each_set_of_conditions_under_a_name_of_its_own() {
        let ids: std::collections::BTreeSet<_> = Case::all().into_iter().map(Case::id).collect();
        assert_eq!(
            ids.len(),
            (2 * Event::ALL.len() - 1) * Conditions::ALL.len()
        );
        for id in [
            "nothing.clean",
            "receiver-killed.loss-skew-reordering",
            "simulated.numbers-end.skew",
        ] {
            assert!(ids.contains(id), "{id}");
        }
    }
}
