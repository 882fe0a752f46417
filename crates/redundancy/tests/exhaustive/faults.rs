//! What is made wrong in the machines, and the smallest exploration that finds it.

use super::explore::first_counterexample;
use super::model::{HEALS, HISTORY, ONE_WRITER, Roles};
use super::plan::{Budget, Fault, Plan};
use bumpless_base::fault::Fault as Deliberate;
use bumpless_redundancy::ReferenceKind::Witness;

#[derive(Clone, Copy, Debug)]
enum Search {
    Any1,
    Any1LongLease,
    TwoCutsLongLease,
    CrashAndCopy,
}

use Search::{Any1, Any1LongLease, CrashAndCopy, TwoCutsLongLease};

impl Search {
    fn roles(self) -> Roles {
        let short = Plan::new(&[Witness], 1);
        let long = short.clone().with_long_lease();
        let crash_and_copy = [Fault::Crash, Fault::Copy];
        match self {
            Any1 => Roles::settled(short, Budget::any(1)),
            Any1LongLease => Roles::settled(long, Budget::any(1)),
            TwoCutsLongLease => Roles::settled(long, Budget::only(2, &[Fault::Cut])),
            CrashAndCopy => Roles::settled(short, Budget::only(2, &crash_and_copy)),
        }
    }
}

const FOUND: &[(Deliberate, Search, &str)] = &[
    (Deliberate::EarlierProcessBelieved, CrashAndCopy, HEALS),
    (Deliberate::LeaseNeverEnds, Any1, ONE_WRITER),
    (Deliberate::PromiseForgotten, Any1LongLease, ONE_WRITER),
    (Deliberate::PromiseCountedFromHearing, Any1, ONE_WRITER),
    (Deliberate::LeaseCountedFromAnswer, Any1, ONE_WRITER),
    (Deliberate::EpochNotRaised, Any1, HISTORY),
    (Deliberate::AloneUnasked, Any1, HISTORY),
    (
        Deliberate::PromisesKeptAtLapse,
        TwoCutsLongLease,
        ONE_WRITER,
    ),
    (Deliberate::WitnessGrantsTwice, TwoCutsLongLease, ONE_WRITER),
    (Deliberate::WitnessIgnoresMark, TwoCutsLongLease, HISTORY),
];

/// No small exploration finds these; the simulator does (`docs/deliberate-faults.md`).
const LEFT_TO_THE_SIMULATOR: &[Deliberate] = &[
    Deliberate::EpochsNotApart,
    Deliberate::OldStateTakesOver,
    Deliberate::OneSilentLinkIsEnough,
    Deliberate::ChangeMadeAlone,
    Deliberate::ConfigurationNotCompared,
    Deliberate::LeaseKeptAtYield,
    Deliberate::AloneForgottenAtLapse,
    Deliberate::ClaimNotJudged,
    Deliberate::WriterNotWaitedFor,
    Deliberate::StallCountsAsWaiting,
    Deliberate::HeldNotCompared,
];

#[test]
fn deliberate_faults_of_the_roles_are_found() {
    for &(fault, search, property) in FOUND {
        let mut roles = search.roles();
        roles.broken = Some(fault);
        let found = first_counterexample(roles);
        assert_eq!(found, Some(property), "{fault:?} in {search:?}");
    }
}

/// The others are searched to their end by `any_single_fault_of_a_settled_pair_leaves_one_writer_and_heals`.
#[test]
fn the_searches_for_deliberate_faults_find_nothing_without_them() {
    for search in [TwoCutsLongLease, CrashAndCopy] {
        assert_eq!(first_counterexample(search.roles()), None, "{search:?}");
    }
}

#[test]
fn every_deliberate_fault_of_the_roles_is_in_one_of_the_lists() {
    let found = FOUND.iter().map(|&(fault, ..)| fault);
    let mut listed: Vec<_> = found.chain(LEFT_TO_THE_SIMULATOR.iter().copied()).collect();
    listed.sort_unstable();
    let all = Deliberate::ALL.iter().copied();
    let mut ours: Vec<_> = all
        .filter(|f| f.place().starts_with("redundancy"))
        .collect();
    ours.sort_unstable();
    assert_eq!(listed, ours);
}
