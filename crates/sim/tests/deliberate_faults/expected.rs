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
    /// No world shows it yet, for this reason: storms over the small pair do not.
    NotShown(&'static str),
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

const fn not_shown(fault: Fault, why: &'static str) -> Expected {
    expect(fault, World::NotShown(why), &[])
}

/// Devices of the simulator tell the stamp of what they accepted, and in doubt the executor asks them (F-27).
const DEVICE_DECIDES: &str = "the field device decides in its place (F-27)";
/// Who uses a right that he has given back is not met by another who has got it meanwhile.
const NO_SECOND_YET: &str = "no storm gives the right to another soon enough";

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
    not_shown(Fault::PromisesKeptAtLapse, NO_SECOND_YET),
    not_shown(Fault::LeaseKeptAtYield, NO_SECOND_YET),
    not_shown(Fault::AloneForgottenAtLapse, DEVICE_DECIDES),
    not_shown(Fault::ClaimNotJudged, DEVICE_DECIDES),
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
    not_shown(Fault::OwnStateAlwaysKept, DEVICE_DECIDES),
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
