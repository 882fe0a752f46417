//! What the applications of a group say together, without asking each of them in every turn.

use std::sync::Arc;

use bumpless_atomic_box::Marks;
use bumpless_base::{Epoch, Instant};
use bumpless_mailbox::Word;

use super::members::Members;

/// The sum of what the applications of a group say.
pub struct Words {
    /// The applications that may say something else than is known.
    marks: Arc<Marks>,
    known: Vec<Word>,
    unfit: usize,
    outdated: usize,
    /// Until when whoever has written what some field device shows, and what lacks here, could go on.
    outdated_until: Instant,
    outdated_changed: bool,
    compared: usize,
    uncompared_since: Instant,
    behind: usize,
    undecided: usize,
    awaiting: usize,
    epoch_seen: Epoch,
    epoch_spent: Epoch,
}

impl Words {
    /// Of applications at `count` places that have done nothing yet and mark themselves in `marks`.
    pub fn new(marks: Arc<Marks>, count: usize) -> Self {
        Self {
            marks,
            known: vec![Word::default(); count],
            unfit: 0,
            outdated: 0,
            outdated_until: Instant::ZERO,
            outdated_changed: false,
            compared: 0,
            uncompared_since: Instant::ZERO,
            behind: 0,
            undecided: 0,
            awaiting: 0,
            epoch_seen: Epoch::default(),
            epoch_spent: Epoch::default(),
        }
    }

    /// Takes what was said since the last call.
    pub fn gather(&mut self, members: &Members, now: Instant) {
        if !self.marks.is_clear() {
            self.take(members, now);
        }
    }

    #[inline(never)] // Mostly nothing was said.
    fn take(&mut self, members: &Members, now: Instant) {
        let marks = Arc::clone(&self.marks);
        marks.take(|member| {
            if let (Some(there), Some(&known)) = (members.at(member), self.known.get(member)) {
                let word = there.port.word();
                self.known[member] = word;
                self.count(known, word);
                if known.compared && !word.compared {
                    self.uncompared_since = now;
                }
                if let Some(since) = word.outdated {
                    let until = since + there.times.hot_restart;
                    self.outdated_until = self.outdated_until.max(until);
                }
            }
        });
    }

    /// Takes out what the application at `place` has said: it is gone. Epochs stay known.
    pub fn forget(&mut self, place: usize) {
        if let Some(known) = self.known.get_mut(place) {
            let known = std::mem::take(known);
            self.count(known, Word::default());
        }
    }

    fn count(&mut self, before: Word, after: Word) {
        let count = |sum: &mut usize, before: bool, after: bool| {
            *sum = *sum + usize::from(after) - usize::from(before);
        };
        count(&mut self.unfit, !before.fit, !after.fit);
        let (was, is) = (before.outdated, after.outdated);
        count(&mut self.outdated, was.is_some(), is.is_some());
        self.outdated_changed |= before.lacking != after.lacking;
        self.outdated_changed |= before.outdated != after.outdated;
        count(&mut self.compared, before.compared, after.compared);
        self.outdated_changed |= before.compared != after.compared;
        count(&mut self.behind, before.behind, after.behind);
        count(&mut self.undecided, before.undecided, after.undecided);
        count(&mut self.awaiting, !before.safe, !after.safe);
        self.epoch_seen = self.epoch_seen.max(after.epoch_seen);
        self.epoch_spent = self.epoch_spent.max(after.epoch_spent);
    }

    /// The highest epoch that a field device was seen to hold.
    pub fn epoch_seen(&self) -> Epoch {
        self.epoch_seen
    }

    /// The highest epoch in which an earlier process of this node is known to have written.
    pub fn epoch_spent(&self) -> Epoch {
        self.epoch_spent
    }

    /// Whether every application can run here.
    pub fn all_fit(&self) -> bool {
        self.unfit == 0
    }

    /// The field device of some application has accepted an output later than the newest state here: until when
    /// whoever has written it could still go on (`hot_restart_ms`).
    pub fn outdated_until(&self) -> Option<Instant> {
        (self.outdated > 0).then_some(self.outdated_until)
    }

    /// Whether that of the application at `place` has accepted one, and no state has come since that was seen.
    pub fn is_lacking(&self, place: usize) -> bool {
        self.known.get(place).is_some_and(|word| word.lacking)
    }

    /// A state of the application at `place` has come: it may include what its field device shows.
    pub fn note_received(&mut self, place: usize) {
        if let Some(word) = self.known.get_mut(place) {
            word.lacking = false;
        }
    }

    /// Since when some of the `count` that are there have not compared what is here with their field device.
    pub fn uncompared_since(&self, count: usize) -> Option<Instant> {
        (self.compared < count).then_some(self.uncompared_since)
    }

    /// What devices showed before `now` says nothing any more.
    pub fn void_comparisons(&mut self, members: &Members, now: Instant) {
        for (place, word) in self.known.iter_mut().enumerate() {
            let port = members.at(place).map(|member| &member.port);
            word.compared = port.is_some_and(|port| port.void_comparison(now));
        }
        self.compared = self.known.iter().filter(|word| word.compared).count();
        (self.uncompared_since, self.outdated_changed) = (now, true);
    }

    /// Whether that has changed for some application since this was asked last.
    pub fn take_outdated_changed(&mut self) -> bool {
        std::mem::take(&mut self.outdated_changed)
    }

    /// Whether some outputs are to be written although their state is not safe.
    pub fn any_behind(&self) -> bool {
        self.behind > 0
    }

    /// Whether none is, and of each application the newest state, made in the present role if there is doubt about
    /// earlier ones, is at the backup.
    pub fn in_step(&self) -> bool {
        self.behind == 0 && self.undecided == 0 && self.awaiting == 0
    }
}

#[cfg(test)]
mod tests {
    use bumpless_base::{Duration, Random};
    use bumpless_mailbox::{ApplicationPort, StateLife};

    use super::super::members::{Counts, Member, MemberTimes};
    use super::*;

    #[test]
    fn the_sum_is_what_asking_each_application_would_give() {
        const COUNT: usize = 70;
        let marks = Arc::new(Marks::new(COUNT));
        let member = |at| Member {
            port: Arc::new(ApplicationPort::marking(Arc::clone(&marks), at)),
            times: MemberTimes {
                period: Duration::from_millis(1),
                hot_restart: Duration::from_secs(5),
            },
            counts: Counts::Yes,
        };
        let mut members = Members::new((0..COUNT).map(member).collect(), COUNT);
        let mut words = Words::new(Arc::clone(&marks), COUNT);
        let mut random = Random::new(7);
        let (mut shown, mut latest) = (0, Instant::ZERO);
        let (mut seen, mut spent) = (Epoch::default(), Epoch::default());
        for round in 0..2_000 {
            let at = random.below(COUNT as u64) as usize;
            if random.chance(0.02) {
                // One goes, another comes to its place.
                words.forget(at);
                members.put(at, Some(member(at)));
                continue;
            }
            let Some(Member { port, .. }) = members.at(at) else {
                continue;
            };
            match random.below(10) {
                0 => port.note_published(round, StateLife::default()),
                1 => port.settle(round, random.chance(0.5)),
                2 => port.set_fit(random.chance(0.5)),
                3 => port.ask_alone(),
                4 => port.in_step(),
                5 => {
                    port.note_received(Instant::from_nanos(1));
                    words.note_received(at);
                }
                6 => {
                    let since = Instant::from_nanos(random.below(3));
                    if random.chance(0.5) {
                        port.set_undecided(Some(since));
                    } else {
                        port.note_decided(since);
                    }
                }
                7 => {
                    if random.chance(0.5) {
                        port.look_at_received();
                    }
                    shown += 1;
                    let since = Instant::from_nanos(shown);
                    port.note_compared(random.chance(0.7).then_some(since), since);
                }
                8 => words.void_comparisons(&members, Instant::from_nanos(shown)),
                _ => {
                    port.note_epoch_seen(Epoch(random.below(1 << 20) as u32));
                    port.note_epoch_spent(Epoch(random.below(1 << 20) as u32));
                }
            }
            if random.chance(0.3) {
                words.gather(&members, Instant::from_nanos(shown));
                let each: Vec<_> = members.ports().map(|port| port.word()).collect();
                let behind = each.iter().any(|word| word.behind);
                assert_eq!(words.all_fit(), each.iter().all(|word| word.fit));
                assert_eq!(words.any_behind(), behind);
                assert_eq!(
                    words.in_step(),
                    !behind && each.iter().all(|word| word.safe && !word.undecided)
                );
                // The latest that any device has shown counts as long as one does.
                let any = each.iter().any(|word| word.outdated.is_some());
                latest = each
                    .iter()
                    .filter_map(|word| word.outdated)
                    .fold(latest, Instant::max);
                let until = latest + Duration::from_secs(5);
                assert_eq!(words.outdated_until(), any.then_some(until));
                let compared = each.iter().all(|word| word.compared);
                assert_eq!(words.uncompared_since(each.len()).is_none(), compared);
                for (place, word) in each.iter().enumerate() {
                    assert_eq!(words.is_lacking(place), word.lacking);
                }
                // What a device holds stays true when its application has gone.
                seen = each
                    .iter()
                    .map(|word| word.epoch_seen)
                    .fold(seen, Epoch::max);
                spent = each
                    .iter()
                    .map(|word| word.epoch_spent)
                    .fold(spent, Epoch::max);
                assert_eq!((words.epoch_seen(), words.epoch_spent()), (seen, spent));
            }
        }
    }
}
