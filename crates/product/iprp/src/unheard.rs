//! Networks on which nothing of a group comes while another one brings its packets. Who sends to a group cannot know: its receivers are not
//! asked, since each would answer. A member sees by itself on which of the networks that it shares with the sender copies come.

use std::net::IpAddr;

use bumpless_base::{Duration, Instant};
use bumpless_iprp::{Ind, MAX_NETWORKS, Networks, Receiver, ReceiverSession, Scope};
use bumpless_secure::Suite;

/// After so long without a copy...
const SILENT: Duration = Duration::from_secs(5);
/// ...while other networks have brought so many at least, a network is told of.
const COPIES: u64 = 20;
/// Sessions that are looked at in one go.
const SLICE: usize = 64;
/// Between two goes of a round, and between two rounds.
const NEXT: Duration = Duration::from_millis(10);
const ROUND: Duration = Duration::from_secs(1);

/// A network of a session on which nothing comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unheard {
    /// The network.
    pub ind: Ind,
    /// For how long, as far as it was looked at.
    pub lasts: Duration,
    /// How many copies have come on others in that time.
    pub copies: u64,
}

/// It begins (`Some`), or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whose packets.
    pub source: IpAddr,
    /// Which packets.
    pub scope: Scope,
    /// On which network.
    pub ind: Ind,
    /// What is known of its silence.
    pub begins: Option<Unheard>,
}

/// What was seen of a network of a session.
#[derive(Clone, Copy, Debug)]
struct Seen {
    ind: Ind,
    /// Copies that came on it, and on others when the last one had, or since when others bring any.
    came: u64,
    others: u64,
    since: Instant,
    told: bool,
    /// In which round it was looked at. What was not in the round before is begun anew: a session of which nothing comes is not
    /// among those that are looked at.
    round: u64,
}

impl Seen {
    /// What is to be told, when it is as `fresh` says: that nothing comes, or that something does again.
    fn look(&mut self, fresh: Self) -> Option<Option<Unheard>> {
        // Less than before is another session's at the same place.
        let is_stale = fresh.round > self.round + 1;
        self.round = fresh.round;
        if fresh.came != self.came || fresh.others < self.others || is_stale && !self.told {
            let was_told = self.told;
            *self = fresh;
            return was_told.then_some(None);
        }
        if self.told {
            return None;
        }
        if fresh.others == self.others {
            // Then it is the flow that pauses.
            *self = fresh;
            return None;
        }
        let unheard = self.unheard(fresh.since, fresh.others);
        self.told = unheard.lasts >= SILENT && unheard.copies >= COPIES;
        self.told.then_some(Some(unheard))
    }

    fn unheard(&self, now: Instant, others: u64) -> Unheard {
        Unheard {
            ind: self.ind,
            lasts: now.since(self.since),
            copies: others.saturating_sub(self.others),
        }
    }
}

/// The networks of the session at one place.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    of: Option<(IpAddr, Scope)>,
    /// Networks that the sender has named, a bit each.
    named: u16,
    networks: [Option<Seen>; MAX_NETWORKS],
}

impl Row {
    fn become_of(&mut self, of: (IpAddr, Scope)) {
        if self.of != Some(of) {
            *self = Self {
                of: Some(of),
                ..Self::default()
            };
        }
    }

    /// Looks at the networks `own` of this host, on which so many copies of the session have come; what changes is told.
    fn look(
        &mut self,
        (now, round): (Instant, u64),
        own: impl Fn(Ind) -> bool,
        came: impl Fn(Ind) -> u64,
        mut tell: impl FnMut(Ind, Option<Unheard>),
    ) {
        let named = self.named;
        let inds = || (0..Ind::COUNT as u8).filter_map(Ind::new);
        let is_shared = |ind: Ind| named >> ind.get() & 1 != 0 && own(ind);
        for place in &mut self.networks {
            *place = place.filter(|seen| is_shared(seen.ind));
        }
        let all: u64 = inds().map(&came).sum();
        for ind in inds().filter(|ind| is_shared(*ind)) {
            let fresh = Seen {
                ind,
                came: came(ind),
                others: all - came(ind),
                since: now,
                told: false,
                round,
            };
            let mut places = self.networks.iter();
            let found = places.position(|it| it.is_some_and(|it| it.ind == ind));
            let free = self.networks.iter().position(Option::is_none);
            if let Some(place) = found.or(free).and_then(|at| self.networks.get_mut(at))
                && let Some(changed) = place.get_or_insert(fresh).look(fresh)
            {
                tell(ind, changed);
            }
        }
    }
}

/// How many copies of a session have come that were sent on a network.
fn came(session: &ReceiverSession<'_>, ind: Ind) -> u64 {
    let mut all = session.arrivals();
    let found = all.find(|(of, _)| *of == ind);
    found.map_or(0, |(_, it)| it.first + it.duplicate + it.very_late)
}

/// The networks of all sessions of groups.
pub struct Watch {
    /// By place.
    rows: Vec<Row>,
    /// Which place is looked at next, and when.
    place: usize,
    due: Instant,
    /// How many times all were looked at.
    round: u64,
}

impl Watch {
    /// Of so many sessions at most; none where there are no groups. Memory is reserved for all of them here.
    pub fn new(sessions: usize) -> Self {
        Self {
            rows: Vec::with_capacity(sessions),
            place: 0,
            round: 0,
            due: match sessions {
                0 => Instant::FAR_FUTURE,
                _ => Instant::ZERO,
            },
        }
    }

    /// When [`look`](Self::look) is to be called.
    pub const fn due(&self) -> Instant {
        self.due
    }

    fn row(&mut self, place: usize, of: (IpAddr, Scope)) -> Option<&mut Row> {
        if place >= self.rows.capacity() {
            return None;
        }
        if self.rows.len() <= place {
            self.rows.resize(place + 1, Row::default());
        }
        let row = self.rows.get_mut(place)?;
        row.become_of(of);
        Some(row)
    }

    /// The sender of a session has said on which networks it is.
    pub fn named(&mut self, session: &ReceiverSession<'_>, networks: &Networks) {
        let (source, scope) = (session.source(), session.scope());
        if !scope.is_multicast() {
            return;
        }
        let is_v4 = scope.destination.is_ipv4();
        let carries = networks.iter().filter(|it| it.address.is_ipv4() == is_v4);
        let named = carries.fold(0, |bits, it| bits | 1 << it.ind.get());
        if let Some(row) = self.row(session.session.0 as usize, (source, scope)) {
            row.named = named;
        }
    }

    /// Looks at some sessions, if it is time.
    pub fn look<S: Suite>(
        &mut self,
        now: Instant,
        receiver: &Receiver<S>,
        mut tell: impl FnMut(Change),
    ) {
        if now < self.due {
            return;
        }
        let (first, round) = (self.place, self.round);
        let rest = receiver.sessions();
        let rest = rest.filter(|it| it.session.0 as usize >= first);
        let mut looked = 0;
        for session in rest.take(SLICE) {
            let (place, scope) = (session.session.0 as usize, session.scope());
            self.place = place + 1;
            looked += 1;
            if !scope.is_multicast() {
                continue;
            }
            let source = session.source();
            let is_v4 = scope.destination.is_ipv4();
            let address = |ind: Ind| receiver.networks().get(ind);
            let own = |ind: Ind| address(ind).is_some_and(|it| it.is_ipv4() == is_v4);
            let Some(row) = self.row(place, (source, scope)) else {
                continue;
            };
            row.look(
                (now, round),
                own,
                |ind| came(&session, ind),
                |ind, begins| {
                    tell(Change {
                        source,
                        scope,
                        ind,
                        begins,
                    });
                },
            );
        }
        self.due = now + NEXT;
        if looked < SLICE {
            (self.place, self.due) = (0, now + ROUND);
            self.round += 1;
        }
    }

    /// Networks of a session on which nothing comes.
    pub fn of(&self, now: Instant, session: &ReceiverSession<'_>) -> Vec<Unheard> {
        let of = (session.source(), session.scope());
        let row = self.rows.get(session.session.0 as usize);
        let Some(row) = row.filter(|it| it.of == Some(of)) else {
            return Vec::new();
        };
        let all: u64 = session.arrivals().map(|(ind, _)| came(session, ind)).sum();
        let told = row.networks.iter().flatten().filter(|it| it.told);
        told.map(|it| it.unheard(now, all - came(session, it.ind)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ind(number: u8) -> Ind {
        Ind::new(number).unwrap()
    }

    /// What is told of a session that two networks are to bring, in seconds in each of which so many copies come on them.
    fn told(seconds: impl IntoIterator<Item = (u64, u64)>) -> Vec<(usize, u8, bool)> {
        let mut row = Row {
            named: 1 << 3 | 1 << 5,
            ..Row::default()
        };
        let (mut came, mut told) = ([0, 0], Vec::new());
        for (second, more) in seconds.into_iter().enumerate() {
            came = [came[0] + more.0, came[1] + more.1];
            let now = Instant::ZERO + Duration::from_secs(second as u64);
            let count = |ind: Ind| match ind.get() {
                3 => came[0],
                5 => came[1],
                _ => 0,
            };
            row.look(
                (now, second as u64),
                |_| true,
                count,
                |ind, begins| {
                    told.push((second, ind.get(), begins.is_some()));
                },
            );
        }
        told
    }

    #[test]
    fn a_network_that_brings_nothing_while_another_one_does_is_told_of_and_when_it_is_back() {
        let seconds = (0..30).map(|second| match second {
            5..15 => (50, 0),
            _ => (50, 50),
        });
        // The last one came in second 4.
        assert_eq!(told(seconds), [(9, 5, true), (15, 5, false)]);
        // From the beginning on.
        assert_eq!(told((0..9).map(|_| (0, 50))), [(5, 3, true)]);
    }

    #[test]
    fn a_flow_that_pauses_comes_seldom_or_on_both_networks_is_no_networks_fault() {
        assert_eq!(told((0..60).map(|_| (50, 50))), []);
        assert_eq!(
            told((0..60).map(|second| if second % 20 < 3 { (9, 9) } else { (0, 0) })),
            []
        );
        assert_eq!(told((0..60).map(|_| (0, 0))), []);
        // A pause, and then the slower network's copies come four seconds later.
        let late = (0..30).map(|second| match second {
            10..20 => (0, 0),
            20..24 => (50, 0),
            _ => (50, 50),
        });
        assert_eq!(told(late), []);
        // Three in five seconds prove nothing yet, twenty do.
        let seldom = told((0..60).map(|second| (u64::from(second % 2 == 0), 0)));
        assert_eq!(seldom.len(), 1);
        assert!(seldom[0].0 > 35, "{seldom:?}");
    }

    /// A session of which nothing comes any more is not among those that are looked at.
    #[test]
    fn a_pause_in_which_nobody_looked_is_no_networks_silence() {
        let mut row = Row {
            named: 1 << 3 | 1 << 5,
            ..Row::default()
        };
        let mut look = |second: u64, came: (u64, u64), told: &mut Vec<u64>| {
            let now = Instant::ZERO + Duration::from_secs(second);
            let count = |ind: Ind| match ind.get() {
                3 => came.0,
                5 => came.1,
                _ => 0,
            };
            row.look((now, second), |_| true, count, |_, _| told.push(second));
        };
        let mut told = Vec::new();
        (0..10).for_each(|second| look(second, (second * 50, second * 50), &mut told));
        // Of the faster network 30 copies are there when it is looked at again.
        look(3_600, (480, 450), &mut told);
        look(3_601, (530, 500), &mut told);
        assert!(told.is_empty(), "{told:?}");
        // What is silent then is told of after as long as any other.
        (3_602..3_620)
            .for_each(|second| look(second, (530 + (second - 3_601) * 50, 500), &mut told));
        assert_eq!(told, [3_606]);
    }

    #[test]
    fn a_network_that_one_of_both_does_not_have_is_not_missed() {
        let mut row = Row {
            named: 1 << 3,
            ..Row::default()
        };
        for second in 0..30 {
            let now = Instant::ZERO + Duration::from_secs(second);
            let count = |ind: Ind| if ind == ind_of_both() { second * 50 } else { 0 };
            row.look((now, second), |_| true, count, |_, _| panic!("told"));
        }
        row.named = 1 << 3 | 1 << 5;
        for second in 30..60 {
            let now = Instant::ZERO + Duration::from_secs(second);
            let count = |ind: Ind| if ind == ind_of_both() { second * 50 } else { 0 };
            row.look(
                (now, second),
                |it| it == ind_of_both(),
                count,
                |_, _| panic!("told"),
            );
        }
    }

    fn ind_of_both() -> Ind {
        ind(3)
    }
}
