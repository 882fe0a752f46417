//! Deliberate faults: one place each where the shipped code can be made wrong, so that a test can
//! show that the simulator's checkers find it (`docs/deliberate-faults.md`).
//!
//! They exist only in a build with `--cfg bumpless_deliberate_faults`, and there each thread
//! switches on its own. In any other build [`deliberate`] is a constant, and nothing is left of it.

macro_rules! faults {
    ($( $variant:ident, $place:literal, $what:literal; )*) => {
        /// What can be made wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $( #[doc = $what] $variant, )* }

        #[cfg(bumpless_deliberate_faults)]
        impl Fault {
            /// Every one.
            pub const ALL: &'static [Fault] = &[$(Fault::$variant),*];
            /// The layer in which it is.
            pub const fn place(self) -> &'static str {
                match self { $(Fault::$variant => $place),* }
            }
            /// What is wrong with it, in words.
            pub const fn what(self) -> &'static str {
                match self { $(Fault::$variant => $what),* }
            }
        }
    };
}

faults! {
    CycleCutTo16Bits, "wire", "the transfer cycle is written with its low 16 bits only";
    ExpiryInAnotherUnit, "wire", "microseconds of expiry are read as milliseconds";
    AckSessionNotChecked, "transfer, sender", "acknowledgements of another session count";
    AckOfAnotherCycleCounts, "transfer, sender", "an acknowledgement of another cycle counts for the open one";
    AckAfterDeadlineCounts, "transfer, sender", "a state is safe although its deadline has passed";
    DeadlineOrderReversed, "transfer, sender", "the latest deadline goes first";
    InFlightLimitIgnored, "transfer, sender", "packets leave for the first time beyond the in-flight limit";
    ProbeLost, "transfer, sender", "nobody asks when the last packet or its acknowledgement is lost";
    StartedTransferOverwritten, "transfer, sender", "a later state takes the buffer of a transfer that has begun";
    ExpiryStampedWhole, "transfer, sender", "every packet carries the whole expiry, not what is left of it";
    LastPacketCutShort, "transfer, sender", "the last packet lacks its last byte";
    SessionNotChecked, "transfer, receiver", "packets of another session are taken";
    CyclesComparedPlainly, "transfer, receiver", "cycles are compared as if they never wrapped";
    BlockOffByOne, "transfer, receiver", "a block of an acknowledgement ends one packet too late";
    ExpiryIgnoredAtDelivery, "transfer, receiver", "a state is delivered after it has expired";
    BufferSwappedEarly, "transfer, receiver", "a state is delivered with one packet missing";
    PayloadMisplaced, "transfer, receiver", "a payload is put one byte before its place";
    DuplicateCounted, "transfer, receiver", "a second copy of a packet counts as another packet";
    CyclesMixed, "transfer, receiver", "packets of an unfinished cycle count for the next one";
    ForcedAckIgnored, "transfer, receiver", "an acknowledgement that a packet asks for is not given";
    SessionKept, "transfer, receiver", "the session stays when the partner has started anew";
    NoticesPileUp, "transfer, receiver", "notices of states that nobody has collected pile up";
    EarlierProcessBelieved, "redundancy", "a heartbeat of a process that has ended is believed";
    LeaseNeverEnds, "redundancy", "the primary writes on when its right has run out";
    PromiseForgotten, "redundancy", "the backup takes over although its promise runs";
    PromiseCountedFromHearing, "redundancy", "a promise counts from when it was heard, not from when it was asked for";
    LeaseCountedFromAnswer, "redundancy", "a lease counts from the answer, not from the request";
    EpochNotRaised, "redundancy", "a new primary writes in its predecessor's epoch (F-26, which would hide it, is off)";
    EpochsNotApart, "redundancy", "both nodes draw from the same epochs (F-26 and R-33's last rule, which would hide it, are off)";
    OldStateTakesOver, "redundancy", "a backup that was told that its state is old takes over";
    AloneUnasked, "redundancy", "outputs leave without anybody knowing that the backup's state is old";
    OneSilentLinkIsEnough, "redundancy", "the partner counts as silent when one link is";
    ChangeMadeAlone, "redundancy", "the node that decides changes the configuration without the other's being ready";
    ConfigurationNotCompared, "redundancy", "a partner with another configuration is taken for one with the same";
    PromisesKeptAtLapse, "redundancy", "a primary that has said that its right has run out goes on using earlier promises";
    LeaseKeptAtYield, "redundancy", "a primary that has yielded at a witness goes on using its lease";
    AloneForgottenAtLapse, "redundancy", "a primary without a right says that nothing has left that the backup lacks";
    ClaimNotJudged, "redundancy", "a claim counts although nobody is asked what an earlier process of the partner did";
    WriterNotWaitedFor, "redundancy", "a node without a claim starts while whoever wrote what its field device shows could go on";
    StallCountsAsWaiting, "redundancy", "a node that stands still waits for its partner meanwhile";
    WitnessGrantsTwice, "redundancy, witness", "the role is granted while another node's lease runs";
    WitnessIgnoresMark, "redundancy, witness", "the role is granted to a node whose state is old";
    OutputBeforeAck, "controller, executor", "before_output does not wait for the acknowledgement";
    TwoCyclesBehind, "controller, executor", "async does not wait for the cycle before";
    OlderStateLoaded, "controller, executor", "an older received state replaces the node's own";
    ColdStartWithState, "controller, executor", "the application starts anew although a state was received";
    DeviceNotAsked, "controller, executor", "in doubt a state is gone on from whatever the device shows";
    PermitNotAskedAgain, "controller, executor", "the right to write is not looked at right before the write";
    CycleNotCounted, "controller, executor", "one cycle's number is used for all";
    OwnStateAlwaysKept, "controller, executor", "the node's own state of an earlier term is gone on from";
    HeldNotCompared, "redundancy, role", "a node in doubt takes the role before it has looked at its field devices";
    DoubtNotPassedOn, "node", "a primary in doubt about an application says that its partner has all that was written";
    FailedLinkStopsOthers, "node", "an error on one link keeps the other from sending";
    SecondLinkNotRead, "node", "what the second link receives is not read";
    HandOverUndrained, "meeting", "the role is handed over before the last state is safe";
    FreshStateThrownAway, "node", "executors are told to begin anew whenever their node takes the role";
    OwnStateForgotten, "node", "who leaves the role tells nobody what it holds";
    PermitLeftBehind, "node", "the executor keeps the right that its node has given up";
}

/// Whether `fault` is switched on.
#[cfg(not(bumpless_deliberate_faults))]
#[inline(always)]
pub const fn deliberate(_fault: Fault) -> bool {
    false
}

#[cfg(bumpless_deliberate_faults)]
mod switch {
    use super::Fault;
    use core::cell::Cell;

    std::thread_local! {
        static ON: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Whether `fault` is switched on in this thread.
    #[inline]
    pub fn deliberate(fault: Fault) -> bool {
        ON.get() == Some(fault)
    }

    /// From here on, this thread makes no fault but `fault`.
    pub fn switch_on(fault: Option<Fault>) {
        ON.set(fault);
    }
}

#[cfg(bumpless_deliberate_faults)]
pub use switch::{deliberate, switch_on};
