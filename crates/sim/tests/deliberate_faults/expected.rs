//! Which checkers each fault concerns, and the world in which it shows soon.

use bumpless_base::fault::Fault;

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    /// Storms over the small pair.
    Small,
    /// Storms over states of several packets.
    Packets,
    /// Storms over cycles of a millisecond.
    Busy,
    /// What this script says.
    Scenario(&'static str),
}

/// What is expected of a fault.
pub struct Expected {
    /// The fault.
    pub fault: Fault,
    /// Where it is looked for.
    pub world: World,
    /// The checkers that may find it.
    pub by: &'static [&'static str],
}

const fn expect(fault: Fault, world: World, by: &'static [&'static str]) -> Expected {
    Expected { fault, world, by }
}

use World::{Busy, Packets, Scenario, Small};

/// Every fault, in order.
pub const EXPECTED: &[Expected] = &[
    expect(Fault::CycleCutTo16Bits, Small, &["channel"]),
    expect(Fault::ExpiryInAnotherUnit, Small, &["channel"]),
    expect(
        Fault::AckSessionNotChecked,
        Scenario("old-acknowledgements"),
        &["channel"],
    ),
    expect(Fault::AckOfAnotherCycleCounts, Small, &["channel"]),
    expect(
        Fault::AckAfterDeadlineCounts,
        Scenario("late-acknowledgements"),
        &["channel"],
    ),
    expect(Fault::DeadlineOrderReversed, Small, &["earliest first"]),
    expect(Fault::InFlightLimitIgnored, Packets, &["bounded"]),
    expect(Fault::ProbeLost, Small, &["channel"]),
    expect(
        Fault::StartedTransferOverwritten,
        Packets,
        &["channel", "whole", "earliest first"],
    ),
    expect(Fault::ExpiryStampedWhole, Small, &["channel"]),
    expect(Fault::LastPacketCutShort, Small, &["channel"]),
    expect(
        Fault::SessionNotChecked,
        Small,
        &["channel", "forward", "fresh"],
    ),
    expect(Fault::CyclesComparedPlainly, Small, &["channel"]),
    expect(Fault::BlockOffByOne, Packets, &["channel"]),
    expect(
        Fault::ExpiryIgnoredAtDelivery,
        Scenario("half-a-state"),
        &["fresh", "channel"],
    ),
    expect(Fault::BufferSwappedEarly, Packets, &["whole", "channel"]),
    expect(Fault::PayloadMisplaced, Packets, &["whole"]),
    expect(Fault::DuplicateCounted, Packets, &["whole", "channel"]),
    expect(Fault::CyclesMixed, Packets, &["whole", "channel"]),
    expect(Fault::ForcedAckIgnored, Small, &["channel"]),
    expect(Fault::SessionKept, Small, &["channel", "heals"]),
    expect(Fault::NoticesPileUp, Busy, &["bounded"]),
    expect(
        Fault::EarlierProcessBelieved,
        Small,
        &["heals", "one writer"],
    ),
    expect(Fault::LeaseNeverEnds, Small, &["one writer"]),
    expect(Fault::PromiseForgotten, Small, &["one writer"]),
    expect(Fault::PromiseCountedFromHearing, Small, &["one writer"]),
    expect(
        Fault::LeaseCountedFromAnswer,
        Scenario("lease"),
        &["one writer"],
    ),
    expect(Fault::EpochNotRaised, Small, &["one writer"]),
    // A witness refuses the second who uses an epoch, so the pair may never heal either.
    expect(Fault::EpochsNotApart, Small, &["one writer", "heals"]),
    expect(Fault::OldStateTakesOver, Small, &["no bump", "continues"]),
    expect(Fault::AloneUnasked, Small, &["no bump", "continues"]),
    expect(Fault::OneSilentLinkIsEnough, Small, &["heals"]),
    expect(Fault::ChangeMadeAlone, Scenario("change"), &["never apart"]),
    expect(
        Fault::ConfigurationNotCompared,
        Scenario("newcomer"),
        &["one configuration"],
    ),
    expect(
        Fault::PromisesKeptAtLapse,
        Scenario("late-answers"),
        &["one writer"],
    ),
    expect(
        Fault::LeaseKeptAtYield,
        Scenario("yielding"),
        &["one writer"],
    ),
    expect(
        Fault::AloneForgottenAtLapse,
        Scenario("forgotten-alone"),
        &["no bump", "continues"],
    ),
    expect(
        Fault::ClaimNotJudged,
        Scenario("unjudged-claim"),
        &["no bump", "continues"],
    ),
    expect(
        Fault::WriterNotWaitedFor,
        Scenario("writer-cut-off"),
        &["continues"],
    ),
    expect(
        Fault::StallCountsAsWaiting,
        Scenario("writer-long-unheard"),
        &["continues"],
    ),
    expect(Fault::WitnessGrantsTwice, Small, &["one writer"]),
    expect(
        Fault::WitnessIgnoresMark,
        Scenario("alone"),
        &["no bump", "continues"],
    ),
    expect(Fault::OutputBeforeAck, Small, &["no bump", "continues"]),
    expect(Fault::TwoCyclesBehind, Busy, &["no bump", "continues"]),
    expect(Fault::OlderStateLoaded, Small, &["no bump", "continues"]),
    expect(Fault::ColdStartWithState, Small, &["no bump"]),
    expect(Fault::DeviceNotAsked, Small, &["no bump", "continues"]),
    expect(Fault::PermitNotAskedAgain, Small, &["one writer"]),
    expect(Fault::CycleNotCounted, Small, &["no bump"]),
    expect(
        Fault::OwnStateAlwaysKept,
        Scenario("long-outage"),
        &["continues"],
    ),
    expect(
        Fault::HeldNotCompared,
        Scenario("held-not-compared"),
        &["continues"],
    ),
    expect(
        Fault::DoubtNotPassedOn,
        Scenario("device-away-in-doubt"),
        &["no bump"],
    ),
    expect(Fault::FailedLinkStopsOthers, Small, &["heals"]),
    expect(Fault::SecondLinkNotRead, Small, &["heals"]),
    expect(
        Fault::HandOverUndrained,
        Scenario("hand-overs"),
        &["no bump", "continues"],
    ),
    expect(
        Fault::FreshStateThrownAway,
        Small,
        &["no bump", "continues"],
    ),
    expect(Fault::OwnStateForgotten, Small, &["continues"]),
    expect(Fault::PermitLeftBehind, Small, &["one writer"]),
];
