//! What the checkers forgive: one list, each entry with its clause and its reason, and a count of how often it was
//! used. A run prints the counts (spec/simulation.md, S-12): a checker that forgives unseen is a hole.
//!
//! An entry counts when something was seen that its checker would have named a violation without it.

use std::cell::Cell;
use std::rc::Rc;

macro_rules! exemptions {
    ($( $variant:ident, $name:literal, $clause:literal, $reason:literal; )*) => {
        /// What is forgiven.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Exemption { $( #[doc = $reason] $variant, )* }

        impl Exemption {
            /// Every one, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// Its name, which does not change.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
            /// The clause that makes it unavoidable.
            pub const fn clause(self) -> &'static str {
                match self { $(Self::$variant => $clause),* }
            }
            /// Why.
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$variant => $reason),* }
            }
        }
    };
}

exemptions! {
    ForgottenProcess, "genuine: a forgotten process", "N-7",
        "of a sender's processes but four a receiver has forgotten which datagrams it has opened";
    HealingTakesTime, "heals: healing takes time", "R-48",
        "after the last fault the pair has time until it must be redundant";
    OutputsReturn, "heals: outputs return", "R-48",
        "after the last fault that is not of one network alone, outputs have time until they must come";
    OutputsPause, "heals: outputs pause", "C-10",
        "a sound pair that loses a network may write nothing for as long as a failover takes";
    NewcomerBegins, "heals: a newcomer begins", "A-11",
        "an application that has come with a change takes a moment until it writes";
    ProcessEndsItself, "heals: a process ends by itself", "S-6",
        "a process whose cycle hangs ends itself, which is a fault like another";
    HandOverDisturbed, "hands over: disturbed", "R-48",
        "a hand-over that is ordered while the pair still heals, or is disturbed, may take as long as healing does";
    ClocksDiffer, "fresh: clocks differ", "R-1",
        "the age of a state is reckoned by two clocks, and in whole microseconds";
    InTransit, "fresh: under way", "T-33",
        "a receiver does not know how long the quickest packet was under way";
    TransitUnknown, "fresh: transit unknown", "T-33",
        "how long a packet was under way that came with the turn that began its session, nobody has noted";
    LastCycleWrittenAgain, "no bump: last cycle again", "R-49",
        "a new writer of an application that commits async may be a cycle behind, but not after an ordered hand-over";
    BegunAnew, "no bump: begun anew", "R-55",
        "who begins from the initial state and says so counts cycles from one; whether it may, continues judges";
    BeginsBesideOthers, "no bump: begins beside others", "A-12",
        "an application that has never written begins from its initial state beside others that go on";
    StoppedForLong, "no bump: stopped for long", "F-38",
        "a program that was starved for longer than its state may be used begins anew in the role that it has";
    DeadlineInherited, "channel: deadline inherited", "T-3",
        "which states a transfer has replaced, and so whose deadline it has, is known to within what was published";
    GivenUpInThisTurn, "channel: given up in this turn", "T-24",
        "what is given up for want of time at the end of a turn is told as that in the next";
    SessionEnded, "channel: session ended", "T-5",
        "a session that ends takes with it what was under way, though there was time";
    AsksMoreSlowly, "channel: asks more slowly", "T-23",
        "a sender that is not answered asks more and more slowly";
    LinksUnknown, "earliest first: links unknown", "T-14",
        "a channel none of whose networks is up, or passes full packets, sends on all of them, while one that has another one leaves them alone";
    NobodyReads, "channel: nobody reads", "A-11",
        "an application that does not run here reads nothing of what comes for it";
    NothingWritten, "continues: nothing written", "S-13",
        "before its first output an application has nothing to go on from";
    NobodyHolds, "continues: nobody holds it", "S-13",
        "no process that lives has the newest state, so nobody can go on from it";
    HotRestartUnsure, "continues: hot restart about to be over", "S-13",
        "within the drift of clocks, a period and a deadline nobody knows whether the hot restart is over";
    HotRestartOver, "continues: hot restart over", "S-13",
        "since the last output more has passed than the process bears, so nobody may go on";
    LastCycleAgain, "continues: last cycle again", "S-13",
        "a backup of an application that commits async may be a cycle behind, but not after an ordered hand-over";
    CameLate, "continues: came late", "R-67",
        "a node cannot know how long a state had waited for it while it stood still, and takes it for as old as can be";
    DeviceAway, "continues: device away", "F-17",
        "a primary with the right to write whose field device does not answer is at work, and goes on from its own state";
    BehindAcrossRoles, "continues: behind across a change of primary", "F-27",
        "whether an output of a new primary went on from the state that another holds, or began anew, neither shows";
    CutOffFromPartner, "one configuration: cut off", "R-30",
        "who has heard nothing of its partner for start_wait cannot tell one that is cut off from one that is dead";
    DisturbedByOthers, "one configuration: other faults", "S-14",
        "what a primary loses while something else is wrong may be due to that";
    ClockJumps, "assumption: clocks run", "R-1",
        "a clock that jumps, of which leases know nothing";
    ClockDrifts, "assumption: clocks agree", "R-1",
        "a clock that is off by more than leases reckon with";
    Forged, "assumption: nobody forges", "R-2",
        "datagrams from a partner's address that it did not send";
    Bent, "assumption: checksums find it", "T-37",
        "bits that turn over in states or acknowledgements where no checksum notices";
    Flooded, "assumption: floods are borne", "V-90",
        "a flood of more packets than the node bears by plan, or at a node that is not guarded";
    LiedTo, "assumption: witnesses are honest", "R-13",
        "a witness that has the keys and lies, while nodes do not hear each other";
    NoLease, "assumption: somebody grants a lease", "R-46",
        "a group without a witness, in which nobody decides between two sides of a split";
}

/// How many entries the list has.
const COUNT: usize = Exemption::ALL.len();

/// How often each exemption was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgiven([u64; COUNT]);

impl Default for Forgiven {
    fn default() -> Self {
        Self([0; COUNT])
    }
}

impl Forgiven {
    /// How often `exemption` was used.
    pub const fn get(&self, exemption: Exemption) -> u64 {
        self.0[exemption as usize]
    }

    /// Adds what another run has forgiven.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }

    /// Every exemption with its count, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = (Exemption, u64)> {
        Exemption::ALL.iter().copied().zip(self.0)
    }
}

/// Where the checkers of one world count what they forgive.
#[derive(Clone, Debug)]
pub struct Tally(Rc<[Cell<u64>; COUNT]>);

impl Default for Tally {
    fn default() -> Self {
        Self(Rc::new([const { Cell::new(0) }; COUNT]))
    }
}

impl Tally {
    /// `exemption` was used.
    #[inline]
    pub fn count(&self, exemption: Exemption) {
        let count = &self.0[exemption as usize];
        count.set(count.get() + 1);
    }

    /// What was forgiven so far.
    pub fn forgiven(&self) -> Forgiven {
        Forgiven(std::array::from_fn(|at| self.0[at].get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_every_entry_has_its_clause_and_its_reason() {
        let mut names: Vec<_> = Exemption::ALL.iter().map(|it| it.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COUNT);
        for exemption in Exemption::ALL {
            assert!(!exemption.clause().is_empty() && exemption.reason().len() > 20);
        }
    }

    #[test]
    fn whoever_forgives_counts_in_the_same_tally_and_runs_add_up() {
        let tally = Tally::default();
        let other = tally.clone();
        tally.count(Exemption::NobodyHolds);
        other.count(Exemption::NobodyHolds);
        other.count(Exemption::HotRestartOver);
        let mut all = tally.forgiven();
        all.merge(&other.forgiven());
        assert_eq!(all.get(Exemption::NobodyHolds), 4);
        assert_eq!(all.iter().map(|(_, count)| count).sum::<u64>(), 6);
    }
}
