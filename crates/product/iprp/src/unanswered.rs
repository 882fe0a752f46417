//! Networks of a session on which nothing is answered while something is on another one of it: copies leave there and are lost, and the flow
//! does not feel it until the other one is lost as well.
//!
//! All copies that ask do so at once on each network that has one, so what one network answers and another one does not is the network's. Sessions are
//! looked at some at a time, so that ten thousand of them do not hold up packets.

use bumpless_base::{Duration, Instant};
use bumpless_iprp::{Ind, MAX_NETWORKS, PathStatus, Scope, Sender};
use bumpless_secure::Suite;

/// After so long without an answer...
const SILENT: Duration = Duration::from_secs(5);
/// ...to so many questions at least, a network is told of.
const QUESTIONS: u64 = 5;
/// Sessions that are looked at in one go.
const SLICE: usize = 64;
/// Between two goes of a round, and between two rounds.
const NEXT: Duration = Duration::from_millis(10);
const ROUND: Duration = Duration::from_secs(1);

/// A network of a session that answers nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The network.
    pub ind: Ind,
    /// For how long, as far as it was looked at.
    pub lasts: Duration,
    /// How many questions have had no answer in that time.
    pub questions: u64,
}

/// It begins (`Some`), or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Of which session.
    pub scope: Scope,
    /// On which network.
    pub ind: Ind,
    /// What is known of its silence.
    pub begins: Option<Unanswered>,
}

/// What was seen of a network of a session.
#[derive(Clone, Copy, Debug)]
struct Seen {
    ind: Ind,
    answered: u64,
    /// Questions by the time of the last answer, or since the others answer, and when that was seen.
    asked: u64,
    since: Instant,
    /// The last look has not found several questions without an answer.
    answers: bool,
    told: bool,
}

impl Seen {
    const fn new(path: &PathStatus, now: Instant) -> Self {
        Self {
            ind: path.ind,
            answered: path.departures.answered,
            asked: path.departures.asked,
            since: now,
            answers: false,
            told: false,
        }
    }

    const fn unanswered(&self, now: Instant, path: &PathStatus) -> Unanswered {
        Unanswered {
            ind: self.ind,
            lasts: now.since(self.since),
            questions: path.departures.asked.saturating_sub(self.asked),
        }
    }

    /// Whether it was told of and has answered since.
    fn look(&mut self, now: Instant, path: &PathStatus) -> bool {
        let answered = path.departures.answered > self.answered;
        if answered {
            let was_told = self.told;
            *self = Self::new(path, now);
            self.answers = true;
            return was_told;
        }
        self.answers &= self.unanswered(now, path).questions < QUESTIONS;
        false
    }
}

/// The networks of the session at one place.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    scope: Option<Scope>,
    networks: [Option<Seen>; MAX_NETWORKS],
}

impl Row {
    fn seen(&self, ind: Ind) -> Option<&Seen> {
        self.networks.iter().flatten().find(|it| it.ind == ind)
    }

    fn seen_mut(&mut self, ind: Ind) -> Option<&mut Seen> {
        let mut all = self.networks.iter_mut().flatten();
        all.find(|it| it.ind == ind)
    }

    fn become_of(&mut self, scope: Scope) {
        if self.scope != Some(scope) {
            *self = Self {
                scope: Some(scope),
                ..Self::default()
            };
        }
    }

    /// Looks at the networks of the session; what changes is told.
    fn look(
        &mut self,
        now: Instant,
        (scope, suspended): (Scope, bool),
        paths: impl Iterator<Item = PathStatus> + Clone,
        tell: &mut impl FnMut(Change),
    ) {
        self.become_of(scope);
        let usable = || paths.clone().filter(|it| it.usable);
        for place in &mut self.networks {
            *place = place.filter(|seen| usable().any(|it| it.ind == seen.ind));
        }
        for path in usable() {
            if self.has_answered_again(now, &path) {
                let (ind, begins) = (path.ind, None);
                tell(Change { scope, ind, begins });
            }
        }
        let mut all = self.networks.iter().flatten();
        let another = !suspended && all.any(|it| it.answers);
        for path in usable() {
            let begins = self.falls_silent(now, &path, another);
            if begins.is_some() {
                let ind = path.ind;
                tell(Change { scope, ind, begins });
            }
        }
    }

    /// Whether a network that was told of has answered since.
    fn has_answered_again(&mut self, now: Instant, path: &PathStatus) -> bool {
        if self.seen(path.ind).is_none() {
            let mut places = self.networks.iter_mut();
            if let Some(free) = places.find(|it| it.is_none()) {
                *free = Some(Seen::new(path, now));
            }
        }
        let Some(seen) = self.seen_mut(path.ind) else {
            return false;
        };
        // Numbers that are less than before are another session's at the same place.
        if path.departures.asked < seen.asked {
            *seen = Seen::new(path, now);
        }
        seen.look(now, path)
    }

    /// What is to be told of a network that has answered nothing while another one has.
    fn falls_silent(
        &mut self,
        now: Instant,
        path: &PathStatus,
        another: bool,
    ) -> Option<Unanswered> {
        let seen = self.seen_mut(path.ind);
        let seen = seen.filter(|it| !it.answers && !it.told)?;
        if !another {
            // Then it is the receiver that does not answer.
            *seen = Seen::new(path, now);
            return None;
        }
        let unanswered = seen.unanswered(now, path);
        seen.told = unanswered.lasts >= SILENT && unanswered.questions >= QUESTIONS;
        seen.told.then_some(unanswered)
    }
}

/// The networks of all sessions.
pub struct Watch {
    /// By place.
    rows: Vec<Row>,
    /// Which place is looked at next, and when.
    place: usize,
    due: Instant,
}

impl Watch {
    /// Of so many sessions at most. Memory is reserved for all of them here.
    pub fn new(sessions: usize) -> Self {
        Self {
            rows: Vec::with_capacity(sessions),
            place: 0,
            due: Instant::ZERO,
        }
    }

    /// When [`look`](Self::look) is to be called.
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// Looks at some sessions, if it is time.
    pub fn look<S: Suite>(
        &mut self,
        now: Instant,
        sender: &Sender<S>,
        mut tell: impl FnMut(Change),
    ) {
        if now < self.due {
            return;
        }
        let first = self.place;
        let rest = sender.sessions();
        let rest = rest.filter(|it| it.session.0 as usize >= first);
        let mut looked = 0;
        for session in rest.take(SLICE) {
            let place = session.session.0 as usize;
            if self.rows.len() <= place {
                self.rows.resize(place + 1, Row::default());
            }
            let of = (session.scope(), session.is_suspended());
            let paths: [Option<PathStatus>; MAX_NETWORKS] = {
                let mut all = session.paths();
                std::array::from_fn(|_| all.next())
            };
            self.rows[place].look(now, of, paths.iter().flatten().copied(), &mut tell);
            self.place = place + 1;
            looked += 1;
        }
        self.due = now + NEXT;
        if looked < SLICE {
            (self.place, self.due) = (0, now + ROUND);
        }
    }

    /// Networks of the session at `place` that answer nothing.
    pub fn of(
        &self,
        now: Instant,
        (place, scope): (usize, Scope),
        paths: &[PathStatus],
    ) -> Vec<Unanswered> {
        let row = self.rows.get(place).filter(|it| it.scope == Some(scope));
        let of = |path: &PathStatus| {
            let seen = row?.seen(path.ind).filter(|it| it.told)?;
            Some(seen.unanswered(now, path))
        };
        paths.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests;
