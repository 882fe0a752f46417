//! What both nodes' data planes are given, and whether that is right.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::COUNTS_WITHIN;
use crate::service::{Carried, Host, PartnerState};
use crate::{Profile, Ring};

pub type Verdict = Result<(), String>;

/// What may pass between a change of a clock and a handshake that was judged before it.
const JUDGED_BEFORE: Duration = Duration::from_secs(2);

/// Who is in a node's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Who should be.
    Partner,
    /// A node of another pair of the site, which says that it is the partner.
    OfOtherPair,
    /// A node of another authority by the partner's name.
    OfOtherAuthority,
    /// One with the partner's certificate, which says that it is of another pair.
    SaysOtherName,
}

/// What an observer knows of a node.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Who is there.
    pub occupant: Occupant,
    /// The number of the certificate that it shows.
    pub number: usize,
    /// So many of the partner's certificates its list names, since when.
    pub names: usize,
    pub since: Instant,
    /// Days by which its clock is off, since when.
    pub days: i64,
    pub set: Instant,
    /// Whether its configuration differs from the other's.
    pub differs: bool,
}

/// What one node's data plane has.
#[derive(Default)]
pub struct Seen {
    ring: Vec<[u8; 32]>,
    seals: bool,
    /// What it has opened with since its process began, and what nodes in this place ever have.
    opened: BTreeSet<[u8; 32]>,
    ever: BTreeSet<[u8; 32]>,
    /// Whether the other's limits came since the last secret that seals.
    limits: bool,
    /// A secret has come since the last turn, and one seals that did not.
    fresh: bool,
    agreed: bool,
    /// The number of the certificate of who shares the ring.
    with: usize,
    /// So many orders are not taken.
    pub refuses: u32,
    state: PartnerState,
    /// What it is to say of a proposal.
    due: Option<Result<(), String>>,
    /// What it has answered.
    answers: BTreeSet<(String, bool)>,
    asked: String,
}

impl Seen {
    fn refuses(&mut self) -> bool {
        let refuses = self.refuses > 0;
        self.refuses = self.refuses.saturating_sub(1);
        refuses
    }
}

/// Both, as an observer sees them.
#[derive(Default)]
pub struct Pair {
    pub seen: [Seen; 2],
    honest: [bool; 2],
    /// What was found wrong between two turns.
    pub problems: Vec<String>,
    /// Lists that cannot be used which were brought.
    pub unsound: u64,
}

impl Pair {
    /// Another process begins at `at`.
    pub fn begins(&mut self, at: usize) {
        let seen = &mut self.seen[at];
        let (ever, answers, refuses) = (
            std::mem::take(&mut seen.ever),
            std::mem::take(&mut seen.answers),
            seen.refuses,
        );
        *seen = Seen {
            ever,
            answers,
            refuses,
            ..Seen::default()
        };
    }

    fn takes(&mut self, at: usize, ring: &Ring) {
        let secrets: Vec<[u8; 32]> = ring.secrets.iter().map(|secret| **secret).collect();
        let both_honest = self.honest == [true; 2];
        let (seen, other) = match &mut self.seen {
            [seen, other] if at == 0 => (seen, &*other),
            [other, seen] => (seen, &*other),
        };
        seen.fresh |= secrets.iter().any(|it| !seen.opened.contains(it));
        if ring.seals && !(seen.seals && seen.ring.first() == secrets.first()) {
            seen.agreed = true;
            if !std::mem::take(&mut seen.limits) {
                self.problems
                    .push("limits: it seals without knowing what the other end can take".into());
            }
        }
        seen.opened.extend(secrets.iter().copied());
        seen.ever.extend(secrets.iter().copied());
        if both_honest && ring.seals && !other.ever.contains(&secrets[0]) {
            self.problems
                .push("opened first: it seals with what the other end does not open".into());
        }
        let sealed = other.ring.first().filter(|_| other.seals && both_honest);
        if let Some(sealed) = sealed
            && seen.opened.contains(sealed)
            && !secrets.contains(sealed)
        {
            self.problems
                .push("opens: it opens no more what the other end seals with".into());
        }
        (seen.ring, seen.seals) = (secrets, ring.seals);
    }

    /// Judges what both have after a turn.
    pub fn judge(&mut self, nodes: &[Facts; 2], now: Instant) -> Verdict {
        self.honest = [0, 1].map(|at| nodes[at].occupant == Occupant::Partner);
        for (at, seen) in self.seen.iter_mut().enumerate() {
            let (here, there) = (&nodes[at], &nodes[1 - at]);
            if here.occupant != Occupant::Partner {
                continue;
            }
            if std::mem::take(&mut seen.fresh) {
                seen.with = there.number;
            }
            if std::mem::take(&mut seen.agreed) {
                agrees(here, there, now)?;
            }
            let is_known = there.occupant == Occupant::Partner;
            if seen.state.connected && !is_known {
                return Err(format!(
                    "known: node {at} has a session with {:?}",
                    there.occupant
                ));
            }
            let revoked = seen.with < here.names;
            if revoked && !seen.ring.is_empty() && now > here.since + COUNTS_WITHIN {
                return Err(format!("gone: node {at} has the keys of who is revoked"));
            }
            let lost = seen.ring.is_empty() && !seen.opened.is_empty();
            if lost && !revoked {
                return Err(format!("goes on: node {at} has lost its keys"));
            }
            if lost {
                seen.opened.clear();
            }
        }
        Ok(())
    }

    /// What was proposed to the node at `to` has come to this.
    pub fn answered(&mut self, to: usize, text: &str, carried: &Carried) {
        let said = |yes| self.seen[to].answers.contains(&(text.to_owned(), yes));
        let right = match carried {
            Carried::Prepared => said(true),
            Carried::Refused(_) => said(false),
            Carried::Unanswered => true,
        };
        if !right {
            self.problems.push(format!(
                "answered: {carried:?}, which is not what was said of '{text}'"
            ));
        }
    }

    /// Whether both seal with one secret, in a session.
    pub fn is_sound(&self) -> bool {
        let [left, right] = &self.seen;
        let both = left.seals && right.seals && left.ring.first() == right.ring.first();
        both && left.state.connected && right.state.connected
    }

    pub fn states(&self) -> [&PartnerState; 2] {
        [&self.seen[0].state, &self.seen[1].state]
    }

    /// Whether what differs between both is told by both.
    pub fn told(&self, nodes: &[Facts; 2]) -> Verdict {
        for (at, state) in self.states().into_iter().enumerate() {
            if state.mismatches.is_empty() == nodes[at].differs {
                let found = &state.mismatches;
                return Err(format!("told: node {at} says of what differs: {found:?}"));
            }
        }
        Ok(())
    }
}

/// Whether the node `here` may agree on a secret with who is `there`.
fn agrees(here: &Facts, there: &Facts, now: Instant) -> Verdict {
    if there.occupant != Occupant::Partner {
        return Err(format!(
            "known: it agrees on a secret with {:?}",
            there.occupant
        ));
    }
    if there.number < here.names && now > here.since + COUNTS_WITHIN {
        return Err("gone: it agrees on a secret with who is revoked".into());
    }
    if here.days != 0 && now > here.set + JUDGED_BEFORE {
        return Err(
            "dated: it agrees on a secret by a certificate that is not valid by its clock".into(),
        );
    }
    Ok(())
}

/// The host of a node, which writes down what it is given.
pub struct Witnessed {
    at: usize,
    pair: Arc<Mutex<Pair>>,
}

impl Witnessed {
    pub fn new(at: usize, pair: &Arc<Mutex<Pair>>) -> Self {
        let pair = Arc::clone(pair);
        Self { at, pair }
    }

    fn seen<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        change(&mut self.pair.lock().unwrap().seen[self.at])
    }
}

impl Host for Witnessed {
    fn set_profile(&mut self, _: usize, _: &Profile) -> bool {
        self.seen(|seen| {
            let taken = !seen.refuses();
            seen.limits |= taken;
            taken
        })
    }

    fn set_keys(&mut self, _: usize, ring: &Ring) -> bool {
        if self.seen(Seen::refuses) {
            return false;
        }
        self.pair.lock().unwrap().takes(self.at, ring);
        true
    }

    fn forget_keys(&mut self, _: usize) -> bool {
        self.seen(|seen| {
            let taken = !seen.refuses();
            if taken {
                (seen.ring, seen.seals) = (Vec::new(), false);
            }
            taken
        })
    }

    fn changed(&mut self, _: usize, state: &PartnerState) {
        self.seen(|seen| seen.state = state.clone());
    }

    fn propose(&mut self, _: usize, text: String) {
        self.seen(|seen| {
            let word = text.split(' ').next();
            seen.due = match word {
                Some("yes") => Some(Ok(())),
                Some("no") => Some(Err("it does not fit".into())),
                _ => None,
            };
            seen.asked = text;
        });
    }

    fn proposal(&mut self, _: usize) -> Option<Result<(), String>> {
        self.seen(|seen| {
            let answer = seen.due.take()?;
            let asked = (seen.asked.clone(), answer.is_ok());
            seen.answers.insert(asked);
            Some(answer)
        })
    }
}
