//! Faults that take everything at once, one direction of it, or only what is large; newcomers with a wrong
//! configuration; and bits that no checksum notices. They come on top of a storm's other faults, in three of four.

use super::storm::{Draw, Roughness};
use super::{Class, End, Fault, PathFault, Paths, Timed, Wrong};

const MS: u64 = 1_000_000;

/// The longest half period of a flap.
const HALF_PERIOD: u64 = 40 * MS;

impl Draw<'_> {
    /// Outages between `from` and `until`; all have ended by then.
    pub(super) fn outages(&mut self, from: u64, until: u64, faults: &mut Vec<Timed>) {
        if self.random.chance(0.25) {
            return;
        }
        let Roughness { gap, longest } = self.roughness();
        let mut at = from;
        loop {
            at += 1 + self.random.below(4 * gap);
            if at + MS >= until {
                return;
            }
            let (fault, span) = self.outage(longest);
            let until = at + span.min(until - at);
            faults.push(Timed { at, until, fault });
        }
    }

    fn outage(&mut self, longest: u64) -> (Fault, u64) {
        let lease = self.config.timing.lease.as_nanos();
        let on = |paths, fault| Fault::Path { paths, fault };
        match self.random.below(8) {
            0..=1 => {
                let span = MS + self.random.below((10 * lease).saturating_sub(MS).max(1));
                (on(Paths::default(), PathFault::Cut), span)
            }
            2 => {
                let half = MS + self.random.below(HALF_PERIOD - MS);
                let fault = PathFault::Flap { period: 2 * half };
                (on(Paths::default(), fault), self.span(longest))
            }
            3..=4 => (on(self.one_way(), PathFault::Cut), self.span(longest)),
            5 => {
                let paths = self.paths();
                let fault = PathFault::Mtu {
                    bytes: self.one_of(&[150, 300, 600, 1_200]),
                };
                (on(paths, fault), self.span(longest))
            }
            6 => {
                let what = self.one_of(&[
                    Wrong::Period,
                    Wrong::Application,
                    Wrong::References,
                    Wrong::Field,
                ]);
                let node = self.node();
                let fault = Fault::WrongConfiguration { node, what };
                (fault, self.span(longest))
            }
            _ => {
                let paths = self.paths();
                let fault = PathFault::Corrupt {
                    share: self.one_of(&[0.01, 0.1, 0.5]),
                    unnoticed: true,
                    class: self.one_of(&[Class::Heartbeats, Class::Witness]),
                    bit: None,
                };
                (on(paths, fault), self.span(longest))
            }
        }
    }

    /// One direction: between two ends, or all that one node sends or is sent, on one network or on all.
    fn one_way(&mut self) -> Paths {
        let network = self.random.chance(0.5).then(|| self.network());
        let node = End::Node(self.node());
        let other = Some(self.end()).filter(|other| *other != node);
        let (from, to) = match self.random.chance(0.5) {
            true => (Some(node), other),
            false => (other, Some(node)),
        };
        // A witness is on one network only.
        let network = match other {
            Some(End::Reference(_)) => None,
            _ => network,
        };
        Paths {
            network,
            from,
            to,
            both: false,
        }
    }
}
