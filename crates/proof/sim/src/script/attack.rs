//! An attacker who has a network, or a witness: drawn by the seed besides a storm, none of which breaks an assumption.

use bumpless_config::{Config, ReferenceKind, Security};

use super::assumptions::hear_each_other;
use super::storm::Draw;
use super::{End, Fault, Junk, Lie, PathFault, Paths, Timed};
use crate::streams::{Purpose, stream};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// Longest time for which what was sent is held back: across processes, roles and sessions.
const HELD: u64 = 20 * SECOND;

/// What the attacker does between `from` and `until`. In one world of three a witness is the attacker's, and the faults are left
/// out that keep nodes from hearing each other: what a liar can do then is judged as if there were none.
pub fn attack_now_and_then(
    config: &Config,
    seed: u64,
    (from, until): (u64, u64),
    faults: &mut Vec<Timed>,
) {
    let random = stream(seed, Purpose::Storm, 5);
    let mut draw = Draw { config, random };
    let witnesses = config.references.iter();
    let has_witness = witnesses
        .clone()
        .any(|it| matches!(it.kind, ReferenceKind::Witness(_)));
    let network = draw.network();
    // The attacker's own network is one that nodes need not hear each other on.
    let has_witness = has_witness && config.networks.len() > 1;
    if has_witness && draw.random.below(3) == 0 {
        for at in (0..faults.len()).rev() {
            let of_it = faults[at].fault.network().is_none_or(|it| it == network);
            if !of_it || !hear_each_other(config, &faults[at..=at]) {
                faults.remove(at);
            }
        }
        draw.lies((from, until), faults);
    }
    draw.attacks(network, (from, until), faults);
}

impl Draw<'_> {
    /// Each witness lies now and then.
    fn lies(&mut self, (from, until): (u64, u64), faults: &mut Vec<Timed>) {
        for (reference, it) in self.config.references.iter().enumerate() {
            let ReferenceKind::Witness(_) = it.kind else {
                continue;
            };
            let mut at = from;
            loop {
                at += MS + self.random.below(2 * SECOND);
                let ends = (at + self.span(5 * SECOND)).min(until);
                if at + MS >= until {
                    break;
                }
                let lie =
                    self.one_of(&[Lie::Grants, Lie::Grants, Lie::Old, Lie::Fresh, Lie::Repeats]);
                faults.push(Timed {
                    at,
                    until: ends,
                    fault: Fault::Liar { reference, lie },
                });
                at = ends;
            }
        }
    }

    /// What is sent on `network` is held back, repeated, spliced, led elsewhere or sent as something earlier.
    fn attacks(&mut self, network: usize, (from, until): (u64, u64), faults: &mut Vec<Timed>) {
        let mut at = from;
        loop {
            at += MS + self.random.below(2 * SECOND);
            if at + MS >= until {
                return;
            }
            let (fault, longest) = match self.random.below(3) {
                0 => (self.holds(network), HELD),
                _ => (self.sends(network), 2 * SECOND),
            };
            let ends = (at + self.span(longest)).min(until);
            faults.push(Timed {
                at,
                until: ends,
                fault,
            });
        }
    }

    fn holds(&mut self, network: usize) -> Fault {
        let (from, to) = (self.end(), self.end());
        Fault::Path {
            paths: Paths {
                network: Some(network),
                from: self.random.chance(0.5).then_some(from),
                to: self
                    .random
                    .chance(0.5)
                    .then_some(to)
                    .filter(|to| *to != from),
                both: self.random.chance(0.5),
            },
            fault: PathFault::Hold,
        }
    }

    fn sends(&mut self, network: usize) -> Fault {
        Fault::Junk {
            network,
            to: End::Node(self.node()),
            rate: self.one_of(&[500, 5_000]),
            kind: match self.config.security {
                Security::Open => Junk::Replay,
                _ => self.one_of(&[
                    Junk::Replay,
                    Junk::Redirected,
                    Junk::Spliced,
                    Junk::Spliced,
                    Junk::Downgraded,
                ]),
            },
        }
    }
}
