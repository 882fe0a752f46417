//! What the applications of a group report together, without asking each of them in every turn.

use std::iter;
use std::sync::Arc;

use bumpless_atomic_box::DirtySet;
use bumpless_base::{Epoch, Instant, ProgramStanding, Table};
use bumpless_mailbox::MemberStatus;

use super::members::Members;
use crate::membership::MemberPlace;

/// The sum of what the applications of a group report.
pub struct Aggregate {
    /// The applications whose status may differ from `known`.
    dirty: Arc<DirtySet>,
    /// The status that has been counted.
    known: Table<MemberPlace, MemberStatus>,
    unfit: usize,
    /// Applications whose program is stopped and could go on elsewhere, and those where it stays.
    seeking: usize,
    staying: usize,
    outdated: usize,
    /// Until when a node could go on that has written an output which some field device shows and no state here
    /// includes.
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

impl Aggregate {
    /// The sum for applications at `count` places that have done nothing yet and mark themselves in `dirty`.
    pub fn new(dirty: Arc<DirtySet>, count: usize) -> Self {
        Self {
            dirty,
            known: iter::repeat_n(MemberStatus::default(), count).collect(),
            unfit: 0,
            seeking: 0,
            staying: 0,
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

    /// Takes what was reported since the last call.
    pub fn gather(&mut self, members: &Members, now: Instant) {
        if !self.dirty.is_clear() {
            self.take(members, now);
        }
    }

    #[inline(never)] // Mostly nothing was reported.
    fn take(&mut self, members: &Members, now: Instant) {
        let dirty = Arc::clone(&self.dirty);
        dirty.take(|at| {
            let member = MemberPlace(at);
            if let (Some(there), Some(&known)) = (members.at(member), self.known.get(member)) {
                let status = there.mailbox.status();
                self.known[member] = status;
                self.count(known, status);
                if known.compared && !status.compared {
                    self.uncompared_since = now;
                }
                if let Some(since) = status.outdated {
                    let until = since + there.times.hot_restart;
                    self.outdated_until = self.outdated_until.max(until);
                }
            }
        });
    }

    /// Takes out what the application at `place` has reported: it is gone. Epochs stay known.
    pub fn forget(&mut self, place: MemberPlace) {
        if let Some(known) = self.known.get_mut(place) {
            let known = std::mem::take(known);
            self.count(known, MemberStatus::default());
        }
    }

    fn count(&mut self, before: MemberStatus, after: MemberStatus) {
        let count = |sum: &mut usize, before: bool, after: bool| {
            *sum = *sum + usize::from(after) - usize::from(before);
        };
        count(&mut self.unfit, !before.fit, !after.fit);
        let seeks = |status: MemberStatus| status.program == ProgramStanding::StoppedSeeksRelief;
        count(&mut self.seeking, seeks(before), seeks(after));
        let stays = |status: MemberStatus| status.program == ProgramStanding::Stopped;
        count(&mut self.staying, stays(before), stays(after));
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

    /// Whether some program has failed and is stopped here.
    pub fn any_stopped(&self) -> bool {
        self.seeking + self.staying > 0
    }

    /// Whether some program that is stopped here could go on elsewhere.
    pub fn program_seeks_relief(&self) -> bool {
        self.seeking > 0
    }

    /// Whether some application cannot run here for another reason than that its program stays stopped.
    pub fn relief_helps(&self) -> bool {
        self.unfit > self.staying
    }

    /// The field device of some application has accepted an output later than the newest state here: until when
    /// the node that has written it could still go on (`hot_restart_ms`).
    pub fn outdated_until(&self) -> Option<Instant> {
        (self.outdated > 0).then_some(self.outdated_until)
    }

    /// Whether the field device of the application at `place` has accepted such an output, and no state has come since
    /// that was seen.
    pub fn is_lacking(&self, place: MemberPlace) -> bool {
        self.known.get(place).is_some_and(|status| status.lacking)
    }

    /// A state of the application at `place` has come: it may include what its field device shows.
    pub fn note_received(&mut self, place: MemberPlace) {
        if let Some(status) = self.known.get_mut(place) {
            status.lacking = false;
        }
    }

    /// Since when some of the `count` applications have not compared their state here with their field device.
    pub fn uncompared_since(&self, count: usize) -> Option<Instant> {
        (self.compared < count).then_some(self.uncompared_since)
    }

    /// Voids what field devices showed before `now`.
    pub fn void_comparisons(&mut self, members: &Members, now: Instant) {
        for (place, status) in self.known.indices().zip(&mut self.known) {
            let mailbox = members.at(place).map(|member| &member.mailbox);
            status.compared = mailbox.is_some_and(|mailbox| mailbox.void_comparison(now));
        }
        self.compared = self.known.iter().filter(|status| status.compared).count();
        (self.uncompared_since, self.outdated_changed) = (now, true);
    }

    /// Whether what field devices show has changed for some application since this was last asked.
    pub fn take_outdated_changed(&mut self) -> bool {
        std::mem::take(&mut self.outdated_changed)
    }

    /// Whether some outputs are to be written although their state is not safe.
    pub fn any_behind(&self) -> bool {
        self.behind > 0
    }

    /// Whether no such output is to be written, and the newest state of each application is at the backup. Where there
    /// is doubt about earlier states, it must have been made in the present role.
    pub fn in_step(&self) -> bool {
        self.behind == 0 && self.undecided == 0 && self.awaiting == 0
    }
}

#[cfg(test)]
mod tests {
    use bumpless_base::{Duration, Random};
    use bumpless_mailbox::{ApplicationMailbox, StateLife};

    use super::super::members::{Counts, Member, MemberTimes};
    use super::*;

    #[test]
    fn the_sum_is_what_asking_each_application_would_give() {
        const COUNT: usize = 70;
        let dirty = Arc::new(DirtySet::new(COUNT));
        let member = |at: MemberPlace| Member {
            mailbox: Arc::new(ApplicationMailbox::marking(Arc::clone(&dirty), at.0)),
            times: MemberTimes {
                period: Duration::from_millis(1),
                hot_restart: Duration::from_secs(5),
            },
            counts: Counts::Yes,
        };
        let mut members = Members::new((0..COUNT).map(MemberPlace).map(member).collect(), COUNT);
        let mut aggregate = Aggregate::new(Arc::clone(&dirty), COUNT);
        let mut random = Random::new(7);
        let (mut shown, mut latest) = (0, Instant::ZERO);
        let mut epochs = (Epoch::default(), Epoch::default());
        for round in 0..2_000 {
            let at = MemberPlace(random.below(COUNT as u64) as usize);
            if random.chance(0.02) {
                // One goes, another comes to its place.
                aggregate.forget(at);
                members.put(at, Some(member(at)));
                continue;
            }
            let Some(Member { mailbox, .. }) = members.at(at) else {
                continue;
            };
            match random.below(10) {
                0 => aggregate.void_comparisons(&members, Instant::from_nanos(shown)),
                1 => {
                    mailbox.note_received(Instant::from_nanos(1));
                    aggregate.note_received(at);
                }
                _ => change(mailbox, round, &mut shown, &mut random),
            }
            if random.chance(0.3) {
                aggregate.gather(&members, Instant::from_nanos(shown));
                compare(&aggregate, &members, &mut latest, &mut epochs);
            }
        }
    }

    /// Something that an application or its executor says.
    fn change(mailbox: &ApplicationMailbox, round: u64, shown: &mut u64, random: &mut Random) {
        match random.below(9) {
            7 => mailbox.set_program(match random.below(3) {
                0 => ProgramStanding::Runs,
                1 => ProgramStanding::StoppedSeeksRelief,
                _ => ProgramStanding::Stopped,
            }),
            0 => mailbox.note_published(round, StateLife::default()),
            1 => mailbox.settle(round, random.chance(0.5)),
            2 => mailbox.set_fit(random.chance(0.5)),
            3 => mailbox.ask_simplex(),
            4 => mailbox.in_step(),
            5 => {
                let since = Instant::from_nanos(random.below(3));
                if random.chance(0.5) {
                    mailbox.set_undecided(Some(since));
                } else {
                    mailbox.note_decided(since);
                }
            }
            6 => {
                if random.chance(0.5) {
                    mailbox.look_at_received();
                }
                *shown += 1;
                let since = Instant::from_nanos(*shown);
                mailbox.note_compared(random.chance(0.7).then_some(since), since);
            }
            _ => {
                mailbox.note_epoch_seen(Epoch(random.below(1 << 20) as u32));
                mailbox.note_epoch_spent(Epoch(random.below(1 << 20) as u32));
            }
        }
    }

    /// Asks each application. What a device holds stays true when its application has gone: the epochs; and so does the
    /// latest that any has shown, as long as one does.
    fn compare(
        aggregate: &Aggregate,
        members: &Members,
        latest: &mut Instant,
        (seen, spent): &mut (Epoch, Epoch),
    ) {
        let each: Vec<_> = members
            .mailboxes()
            .map(|mailbox| mailbox.status())
            .collect();
        let behind = each.iter().any(|status| status.behind);
        assert_eq!(aggregate.all_fit(), each.iter().all(|status| status.fit));
        let stopped = |standing| each.iter().any(|status| status.program == standing);
        let seeks = stopped(ProgramStanding::StoppedSeeksRelief);
        assert_eq!(aggregate.program_seeks_relief(), seeks);
        let stopped = seeks || stopped(ProgramStanding::Stopped);
        assert_eq!(aggregate.any_stopped(), stopped);
        assert_eq!(aggregate.any_behind(), behind);
        assert_eq!(
            aggregate.in_step(),
            !behind && each.iter().all(|status| status.safe && !status.undecided)
        );
        let any = each.iter().any(|status| status.outdated.is_some());
        *latest = each
            .iter()
            .filter_map(|status| status.outdated)
            .fold(*latest, Instant::max);
        let until = *latest + Duration::from_secs(5);
        assert_eq!(aggregate.outdated_until(), any.then_some(until));
        let compared = each.iter().all(|status| status.compared);
        assert_eq!(aggregate.uncompared_since(each.len()).is_none(), compared);
        for (place, status) in (0..).map(MemberPlace).zip(&each) {
            assert_eq!(aggregate.is_lacking(place), status.lacking);
        }
        *seen = each
            .iter()
            .map(|status| status.epoch_seen)
            .fold(*seen, Epoch::max);
        *spent = each
            .iter()
            .map(|status| status.epoch_spent)
            .fold(*spent, Epoch::max);
        assert_eq!(
            (aggregate.epoch_seen(), aggregate.epoch_spent()),
            (*seen, *spent)
        );
    }
}
