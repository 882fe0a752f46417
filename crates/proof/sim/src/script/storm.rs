//! Faults drawn by the seed: every kind, alone and together, none of which breaks an assumption.

use bumpless_base::Random;
use bumpless_config::{Config, ReferenceKind, Security};

use super::{Aim, Bursts, Class, End, Fault, Junk, PathFault, Paths, Timed, borne};
use crate::streams::{Purpose, stream};
use crate::variants::LAST;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// How long a network is cut at the very end.
const LAST_CUT: u64 = 700 * MS;

/// How long before the very end the first of the orders that meet comes: the pair is sound then, and no network cut.
const FIRST_ORDER: u64 = 950 * MS;

/// How many of them come at most, and within how long one after the other: before one is carried out, or right after it.
const ORDERS: u64 = 16;
const ORDERS_MEET: u64 = 15 * MS;

/// How rough a storm is, drawn with it.
#[derive(Clone, Copy)]
pub(super) struct Roughness {
    /// Between two faults on average.
    pub(super) gap: u64,
    /// How long one lasts at most.
    pub(super) longest: u64,
}

const ROUGHNESS: [Roughness; 3] = [
    Roughness {
        gap: 2 * SECOND,
        longest: 500 * MS,
    },
    Roughness {
        gap: 500 * MS,
        longest: SECOND,
    },
    Roughness {
        gap: 150 * MS,
        longest: 3 * SECOND,
    },
];

/// The faults of `seed` between `from` and `until`; all of them have ended by then. What the pair must
/// bear goes on until `end`.
pub fn storm(config: &Config, seed: u64, from: u64, until: u64, end: u64) -> Vec<Timed> {
    let mut faults = Vec::new();
    // From a stream of their own, so that the other faults stay what they are.
    let random = stream(seed, Purpose::Storm, 2);
    Draw { config, random }.outages(from, until, &mut faults);
    let random = stream(seed, Purpose::Storm, 3);
    Draw { config, random }.orders_that_meet(end, &mut faults);
    let random = stream(seed, Purpose::Storm, 0);
    let mut draw = Draw { config, random };
    let roughness = draw.roughness();
    let mut at = from;
    loop {
        at += 1 + draw.random.below(2 * roughness.gap);
        if at + MS >= until {
            faults.extend(draw.bearable(until, end));
            return faults;
        }
        let fault = draw.fault();
        let longest = match fault {
            Fault::Pause { .. } => 20 * SECOND,
            _ => roughness.longest,
        };
        let span = if fault.is_instant() {
            0
        } else {
            draw.span(longest).min(until - at)
        };
        faults.push(Timed {
            at,
            until: at + span,
            fault,
        });
    }
}

/// An operator changes the configuration now and then, node by node, and some processes die while they
/// take its steps. Nobody runs with an old configuration besides.
pub fn change_now_and_then(seed: u64, (from, until): (u64, u64), faults: &mut Vec<Timed>) {
    faults.retain(|timed| timed.fault.reconfigures().is_none());
    let mut random = stream(seed, Purpose::Storm, 1);
    let mut at = from;
    for number in 1..=LAST {
        at += 200 * MS + random.below(4 * SECOND);
        if at + SECOND >= until {
            return;
        }
        let first = random.below(2) as usize;
        let wait = random.below(40 * MS);
        for (node, at) in [(first, at), (1 - first, at + wait)] {
            if random.chance(0.9) {
                let fault = Fault::Apply { node, number };
                faults.push(Timed {
                    at,
                    until: at,
                    fault,
                });
            }
            if random.chance(0.3) {
                let steps = random.below(14) as u32;
                let fault = Fault::CrashInChange { node, steps };
                let until = at + MS + random.below(SECOND / 2);
                faults.push(Timed { at, until, fault });
            }
        }
    }
}

/// A node is flooded now and then with as much as it bears by plan at most, from strangers and sometimes, with two networks or more, from its
/// partner's address; the last floods of strangers go on until the `end`, those of a forger until `heals`, which leaves the pair the time to heal.
pub fn flood_now_and_then(
    config: &Config,
    seed: u64,
    (from, end, heals): (u64, u64, u64),
    faults: &mut Vec<Timed>,
) {
    /// What a run of many seeds has time for.
    const MOST: u64 = 200_000;
    let random = stream(seed, Purpose::Storm, 4);
    let mut draw = Draw { config, random };
    let mut at = from;
    loop {
        at += MS + draw.random.below(SECOND);
        let until = (at + draw.span(SECOND)).min(end);
        if at + MS >= end {
            return;
        }
        let node = draw.node();
        let network = draw.network();
        let aim = draw.one_of(&[
            Aim::DataPort,
            Aim::ClosedPort,
            Aim::Fragments,
            Aim::Icmp,
            Aim::Resolution,
        ]);
        let forged = config.networks.len() > 1 && draw.random.chance(0.2);
        let bears = borne(config, node).min(MOST);
        let rate = draw.one_of(&[bears / 100, bears / 10, bears]);
        let bytes = draw.one_of(&[0, 18, 1400]);
        let is_there = config.nodes[node].addresses[network].is_some();
        // Who forges must leave the pair the time to heal at the end.
        if rate > 0 && is_there && (!forged || until < heals) {
            let fault = Fault::Flood {
                network,
                node,
                aim,
                forged,
                rate,
                bytes,
            };
            faults.push(Timed { at, until, fault });
        }
        at = until;
    }
}

/// What draws faults.
pub(super) struct Draw<'a> {
    pub(super) config: &'a Config,
    pub(super) random: Random,
}

impl Draw<'_> {
    pub(super) fn roughness(&mut self) -> Roughness {
        ROUGHNESS[self.random.below(3) as usize]
    }

    /// Mostly short, sometimes long: each power of two is as likely.
    pub(super) fn span(&mut self, longest: u64) -> u64 {
        let doublings = (longest / MS).max(1).ilog2() + 1;
        let scale = MS << self.random.below(doublings.into());
        (scale + self.random.below(scale)).min(longest)
    }

    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.below(choices.len() as u64) as usize]
    }

    pub(super) fn node(&mut self) -> usize {
        self.random.below(self.config.nodes.len() as u64) as usize
    }

    pub(super) fn network(&mut self) -> usize {
        self.random.below(self.config.networks.len() as u64) as usize
    }

    fn application(&mut self) -> usize {
        self.random.below(self.config.applications.len() as u64) as usize
    }

    pub(super) fn end(&mut self) -> End {
        let references = self.config.references.len();
        if references > 0 && self.random.chance(0.3) {
            End::Reference(self.random.below(references as u64) as usize)
        } else {
            End::Node(self.node())
        }
    }

    pub(super) fn paths(&mut self) -> Paths {
        let network = self.network();
        let from = self.end();
        let to = self.end();
        Paths {
            network: (!self.random.chance(0.25)).then_some(network),
            from: self.random.chance(0.6).then_some(from),
            // No path leads from an end to itself.
            to: self
                .random
                .chance(0.6)
                .then_some(to)
                .filter(|to| *to != from),
            both: self.random.chance(0.5),
        }
    }

    fn fault(&mut self) -> Fault {
        match self.random.below(26) {
            0..=10 => Fault::Path {
                paths: self.paths(),
                fault: self.path_fault(),
            },
            11..=13 => Fault::Pause {
                node: self.node(),
                in_turn: self.random.chance(0.5),
            },
            14..=15 => Fault::Crash {
                node: self.node(),
                reboot: self.random.chance(0.3),
            },
            16 if !self.config.references.is_empty() => Fault::Witness {
                reference: self.random.below(self.config.references.len() as u64) as usize,
            },
            17 => {
                let hung = self.random.chance(0.5);
                let node = self.node();
                Fault::Device {
                    application: self.application(),
                    node: hung.then_some(node),
                    late: self.random.chance(0.5),
                }
            }
            18 => Fault::Switchover {
                node: self.node(),
                group: self.random.below(self.config.groups.len() as u64) as usize,
            },
            19 => {
                let rate = self.one_of(&[500, 5_000]);
                self.junk(rate)
            }
            20 => Fault::Slow {
                node: self.node(),
                by: self.one_of(&[200_000, 2 * MS, 8 * MS]),
            },
            21 => Fault::SlowApplication {
                node: self.node(),
                application: self.application(),
                by: self.one_of(&[MS, 5 * MS, 30 * MS]),
                jumps: self.random.chance(0.5),
            },
            22 => Fault::Buffer {
                node: self.node(),
                bytes: self.one_of(&[0, 3_000, 20_000]),
            },
            23 => Fault::Unreachable {
                node: self.node(),
                network: self.network(),
            },
            24 => Fault::OldConfiguration { node: self.node() },
            _ => self.rate(),
        }
    }

    /// In one world of two: once the pair is sound again, somebody orders a switchover, and others more of them while that
    /// is made or has just been.
    fn orders_that_meet(&mut self, end: u64, faults: &mut Vec<Timed>) {
        if self.random.chance(0.5) {
            return;
        }
        let group = self.random.below(self.config.groups.len() as u64) as usize;
        let mut at = end - FIRST_ORDER + self.random.below(FIRST_ORDER / 4);
        for _ in 0..2 + self.random.below(ORDERS - 1) {
            let fault = Fault::Switchover {
                node: self.node(),
                group,
            };
            faults.push(Timed {
                at,
                until: at,
                fault,
            });
            at += self.random.below(ORDERS_MEET);
        }
    }

    /// Junk while the pair heals, or at the very end a network that fails.
    fn bearable(&mut self, until: u64, end: u64) -> Option<Timed> {
        match self.random.below(4) {
            0 => Some(Timed {
                at: until,
                until: end,
                fault: self.junk(500),
            }),
            1 if self.config.networks.len() > 1 => Some(Timed {
                at: end.saturating_sub(LAST_CUT).max(until),
                until: end,
                fault: Fault::Path {
                    paths: Paths {
                        network: Some(self.network()),
                        from: None,
                        to: None,
                        both: true,
                    },
                    fault: PathFault::Cut,
                },
            }),
            _ => None,
        }
    }

    /// At a node, or now and then at a witness.
    fn junk(&mut self, rate: u64) -> Fault {
        let network = self.network();
        let node = End::Node(self.node());
        let here = |at: &usize| {
            let reference = &self.config.references[*at];
            usize::from(reference.network.0) == network
                && matches!(reference.kind, ReferenceKind::Witness(_))
        };
        let witness = (0..self.config.references.len()).find(here);
        let witness = witness.filter(|_| self.random.chance(0.25));
        Fault::Junk {
            network,
            to: witness.map_or(node, End::Reference),
            rate,
            kind: self.one_of(match self.config.security {
                // Who can forge takes the pair over.
                Security::Open => &[Junk::Noise, Junk::Replay, Junk::Replay],
                Security::Protected(_) | Security::Certificates(_) => &[
                    Junk::Noise,
                    Junk::Replay,
                    Junk::Replay,
                    Junk::Forged,
                    Junk::Redirected,
                    Junk::Stripped,
                ],
            }),
        }
    }

    /// A clock that wanders within what leases reckon with.
    fn rate(&mut self) -> Fault {
        let most = i64::from(self.config.timing.clock_drift_ppm) * 1000 / 2;
        Fault::Clock {
            end: self.end(),
            ppb: self.random.below(2 * most as u64 + 1) as i64 - most,
            ahead: 0,
        }
    }

    fn path_fault(&mut self) -> PathFault {
        match self.random.below(16) {
            0..=3 => PathFault::Cut,
            4..=5 => PathFault::Loss {
                share: self.one_of(&[0.01, 0.1, 0.3, 0.7]),
                class: Class::All,
            },
            6 => PathFault::Loss {
                share: 1.0,
                class: self.one_of(&[
                    Class::First,
                    Class::Last,
                    Class::Middle,
                    Class::Acknowledgements,
                    Class::Heartbeats,
                    Class::Witness,
                ]),
            },
            7..=8 => PathFault::Bursts(Bursts {
                enter: self.one_of(&[0.001, 0.02]),
                leave: self.one_of(&[0.5, 0.1, 0.02]),
                within: self.one_of(&[1.0, 1.0, 0.5]),
                between: self.one_of(&[0.0, 0.0, 0.01]),
            }),
            9 => PathFault::Delay {
                by: self.one_of(&[0, 300_000, 2 * MS, 15 * MS]),
                jitter: self.one_of(&[0, MS, 10 * MS]),
            },
            10 => PathFault::Duplicate {
                share: self.one_of(&[0.1, 1.0]),
            },
            11 => PathFault::Reorder {
                share: self.one_of(&[0.05, 0.5]),
                by: self.one_of(&[200_000, 5 * MS, 100 * MS]),
            },
            12 => PathFault::Corrupt {
                share: self.one_of(&[0.05, 0.5]),
                unnoticed: false,
                class: Class::All,
                bit: None,
            },
            13 => PathFault::Truncate {
                share: self.one_of(&[0.05, 0.5]),
            },
            14 => PathFault::Bandwidth {
                bits: self.one_of(&[1_000_000, 10_000_000, 100_000_000]),
            },
            _ => PathFault::Flap {
                period: self.one_of(&[2 * MS, 10 * MS, 100 * MS]),
            },
        }
    }
}
