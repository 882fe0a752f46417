//! Changing the applications while the data plane runs. Whoever orders it has prepared everything; here it
//! is put in its place, and what was there goes back with the answer, so that nothing is allocated or
//! freed on this thread.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

use bumpless_base::{Duration, Instant};
use bumpless_redundancy::{PrepareRefused, WithdrawRefused};
use bumpless_transfer::{ChannelPlace, ExchangeError, ReceiverReplacement, SenderReplacement};

use super::drivers::Drivers;
use super::members::{Member, MemberTimes};
use super::{ChannelRuntime, DataPlane};
use crate::membership::Membership;

/// What a change of the configuration waits for: set by the data plane, read by whoever makes the change.
#[derive(Debug, Default)]
pub struct ChangeBoard {
    due: AtomicBool,
    withdrawn: AtomicBool,
    followed: AtomicBool,
    waits: OnceLock<Thread>,
}

impl ChangeBoard {
    /// The calling thread is woken when something changes here.
    pub fn register(&self) {
        let _ = self.waits.set(thread::current());
    }

    /// Whether both nodes are ready; reported once.
    pub fn take_due(&self) -> bool {
        self.due.swap(false, Ordering::AcqRel)
    }

    /// Whether the partner has given the change up; reported once.
    pub fn take_withdrawn(&self) -> bool {
        self.withdrawn.swap(false, Ordering::AcqRel)
    }

    /// Whether the partner has the configuration in force, too, or is silent; reported once.
    pub fn take_followed(&self) -> bool {
        self.followed.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn set_due(&self) {
        self.set(&self.due);
    }

    pub(super) fn set_withdrawn(&self) {
        self.set(&self.withdrawn);
    }

    pub(crate) fn set_followed(&self) {
        self.set(&self.followed);
    }

    fn set(&self, what: &AtomicBool) {
        what.store(true, Ordering::Release);
        if let Some(thread) = self.waits.get() {
            thread.unpark();
        }
    }
}

/// What an application takes with it to its place, or from it.
#[derive(Default)]
pub struct Occupant {
    /// In the sender.
    pub sender: Option<SenderReplacement>,
    /// In the receiver.
    pub receiver: Option<ReceiverReplacement>,
    /// On the data plane.
    pub runtime: Option<ChannelRuntime>,
    /// In its group.
    pub member: Option<Member>,
}

/// A step in a change. What it puts in is replaced by what was there.
pub enum ChangeOrder {
    /// Tell the partner that the configuration with this fingerprint is prepared.
    Prepare {
        /// Its fingerprint.
        next: u64,
        /// It was found prepared when the node started.
        resumed: bool,
    },
    /// Give up what is prepared.
    Withdraw,
    /// The change that is due could not be written to the disk.
    NotMade,
    /// What is prepared is in force: applications come, each to a place that is vacant.
    Switch {
        /// The places, and who comes.
        arrivals: Vec<(ChannelPlace, Occupant)>,
    },
    /// These applications are about to go.
    Discount {
        /// Their places.
        places: Vec<ChannelPlace>,
    },
    /// An application goes on with other times.
    Retime {
        /// Its place.
        place: ChannelPlace,
        /// Its times in its group.
        times: MemberTimes,
        /// How long after a state its next one is overdue.
        expect_within: Duration,
    },
    /// The executors of these applications have ended.
    Dismiss {
        /// The places; the answer brings back their members.
        leavers: Vec<(ChannelPlace, Occupant)>,
    },
    /// What is left of them goes.
    Clear {
        /// The places, each with an occupant that is vacant.
        leavers: Vec<(ChannelPlace, Occupant)>,
    },
}

/// Why a step was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRefused {
    /// The pair cannot change to it at present.
    Prepare(PrepareRefused),
    /// It cannot be given up.
    Withdraw(WithdrawRefused),
    /// A place does not take who was to come.
    Exchange(ExchangeError),
}

impl fmt::Display for ChangeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prepare(refused) => refused.fmt(f),
            Self::Withdraw(refused) => refused.fmt(f),
            Self::Exchange(refused) => refused.fmt(f),
        }
    }
}

/// The step as it was ordered, with what was there before, and whether it was taken.
pub struct ChangeAnswer {
    /// The step; to be dropped elsewhere.
    pub order: ChangeOrder,
    /// Whether it was taken.
    pub result: Result<(), ChangeRefused>,
}

impl<D: Drivers> DataPlane<D> {
    pub(super) fn change(
        &mut self,
        order: &mut ChangeOrder,
        now: Instant,
    ) -> Result<(), ChangeRefused> {
        let redundancy = &mut self.cores.redundancy;
        match order {
            ChangeOrder::Prepare { next, resumed } => redundancy
                .prepare_configuration(*next, *resumed, now)
                .map_err(ChangeRefused::Prepare),
            ChangeOrder::Withdraw => redundancy
                .withdraw_configuration(now)
                .map_err(ChangeRefused::Withdraw),
            ChangeOrder::NotMade => {
                redundancy.configuration_not_made();
                Ok(())
            }
            ChangeOrder::Switch { arrivals } => self.switch(arrivals, now),
            ChangeOrder::Discount { places } => {
                places.iter().for_each(|&place| self.discount(place, now));
                Ok(())
            }
            ChangeOrder::Retime {
                place,
                times,
                expect_within,
            } => {
                self.retime(*place, *times, *expect_within);
                Ok(())
            }
            ChangeOrder::Dismiss { leavers } => {
                leavers.iter_mut().for_each(|leaver| self.dismiss(leaver));
                Ok(())
            }
            ChangeOrder::Clear { leavers } => leavers.iter_mut().try_for_each(|(place, leaver)| {
                self.exchange(*place, leaver, now)?;
                std::mem::swap(&mut self.channels[*place], &mut leaver.runtime);
                Ok(())
            }),
        }
    }

    /// The configuration on the disk comes into force, even if a place then refuses who comes.
    fn switch(
        &mut self,
        arrivals: &mut [(ChannelPlace, Occupant)],
        now: Instant,
    ) -> Result<(), ChangeRefused> {
        let mut result = Ok(());
        for (place, occupant) in arrivals {
            if let Err(refused) = self.exchange(*place, occupant, now) {
                result = Err(refused);
                continue;
            }
            let runtime = occupant.runtime.take();
            if let Some(Membership { group, member }) =
                runtime.as_ref().map(|runtime| runtime.membership)
                && let Some(arrival) = occupant.member.take()
            {
                self.groups[group].arrive(member, arrival);
            }
            occupant.runtime = std::mem::replace(&mut self.channels[*place], runtime);
        }
        self.cores.redundancy.configuration_switched(now);
        self.awaits_partner = true;
        result
    }

    fn exchange(
        &mut self,
        place: ChannelPlace,
        occupant: &mut Occupant,
        now: Instant,
    ) -> Result<(), ChangeRefused> {
        if let Some(sender) = occupant.sender.take() {
            occupant.sender = Some(match self.cores.sender.exchange(place, sender, now) {
                Ok(before) => before,
                Err(refused) => {
                    occupant.sender = Some(refused.replacement);
                    return Err(ChangeRefused::Exchange(refused.reason));
                }
            });
        }
        if let Some(receiver) = occupant.receiver.take() {
            occupant.receiver = Some(match self.cores.receiver.exchange(place, receiver, now) {
                Ok(before) => before,
                Err(refused) => {
                    occupant.receiver = Some(refused.replacement);
                    return Err(ChangeRefused::Exchange(refused.reason));
                }
            });
        }
        // A transfer that ended with it is told to it, not to who comes.
        self.drain_events(now);
        self.note_carriers();
        Ok(())
    }

    fn discount(&mut self, place: ChannelPlace, now: Instant) {
        if let Some(Some(runtime)) = self.channels.get(place) {
            let Membership { group, member } = runtime.membership;
            self.groups[group].discount(member, &mut self.cores.redundancy, now);
            // Its states may end at any moment.
            self.cores.receiver.set_expect_within(place, Duration::MAX);
        }
    }

    fn retime(&mut self, place: ChannelPlace, times: MemberTimes, expect_within: Duration) {
        if let Some(Some(runtime)) = self.channels.get(place) {
            let Membership { group, member } = runtime.membership;
            self.groups[group].set_times(member, times);
            self.cores.receiver.set_expect_within(place, expect_within);
        }
    }

    fn dismiss(&mut self, (place, leaver): &mut (ChannelPlace, Occupant)) {
        if let Some(Some(runtime)) = self.channels.get(*place) {
            let Membership { group, member } = runtime.membership;
            leaver.member = self.groups[group].dismiss(member);
        }
    }

    /// After a change was made here: says when the partner has made it, too, or is silent.
    pub(super) fn await_partner(&mut self) {
        if self.awaits_partner && self.cores.redundancy.partners_follow() {
            self.awaits_partner = false;
            self.surroundings.board.set_followed();
        }
    }
}
