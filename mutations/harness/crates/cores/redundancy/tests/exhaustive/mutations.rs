//! What is made wrong in the machines, and the smallest exploration that finds it.

use super::explore::first_counterexample;
use super::model::{HEALS, HISTORY, ONE_WRITER, Roles};
use super::plan::{Budget, Fault, Plan};
use bumpless_redundancy::ReferenceKind::Witness;
use std::path::Path;

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

const FOUND: &[(&str, Search, &str)] = &[
    ("EarlierProcessBelieved", CrashAndCopy, HEALS),
    ("LeaseNeverEnds", Any1, ONE_WRITER),
    ("PromiseForgotten", Any1LongLease, ONE_WRITER),
    ("PromiseCountedFromHearing", Any1, ONE_WRITER),
    ("LeaseCountedFromAnswer", Any1, ONE_WRITER),
    ("EpochNotRaised", Any1, HISTORY),
    ("SimplexUnasked", Any1, HISTORY),
    ("PromisesKeptAtLapse", TwoCutsLongLease, ONE_WRITER),
    ("WitnessGrantsTwice", TwoCutsLongLease, ONE_WRITER),
    ("WitnessIgnoresMark", TwoCutsLongLease, HISTORY),
];

/// No small exploration finds these; the simulator does (`docs/mutations.md`).
const LEFT_TO_THE_SIMULATOR: &[&str] = &[
    "EpochsNotApart",
    "OldStateTakesOver",
    "OneSilentLinkIsEnough",
    "ChangeMadeAlone",
    "ConfigurationNotCompared",
    "LeaseKeptAtYield",
    "SimplexForgottenAtLapse",
    "ClaimNotJudged",
    "WriterNotWaitedFor",
    "StallCountsAsWaiting",
    "HeldNotCompared",
    "SomeRanksAsAll",
    "LastWordNotHeard",
];

#[test]
fn mutations_of_the_roles_are_found() {
    let (first, step) = bumpless_base::mutation::slice();
    for &(mutation, search, property) in FOUND.iter().skip(first).step_by(step) {
        let mut roles = search.roles();
        roles.broken = Some(mutation);
        let found = first_counterexample(roles);
        assert_eq!(found, Some(property), "{mutation} in {search:?}");
    }
}

/// The others are searched to their end by `any_single_fault_of_a_settled_pair_leaves_one_writer_and_heals`.
#[test]
fn the_searches_for_mutations_find_nothing_without_them() {
    let (first, step) = bumpless_base::mutation::slice();
    for search in [TwoCutsLongLease, CrashAndCopy]
        .into_iter()
        .skip(first)
        .step_by(step)
    {
        assert_eq!(first_counterexample(search.roles()), None, "{search:?}");
    }
}

#[test]
fn every_mutation_of_the_roles_is_in_one_of_the_lists() {
    let found = FOUND.iter().map(|&(mutation, ..)| mutation);
    let mut listed: Vec<_> = found.chain(LEFT_TO_THE_SIMULATOR.iter().copied()).collect();
    listed.sort_unstable();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../mutations");
    let entries = std::fs::read_dir(folder).expect("a folder of patches");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let patches = paths.filter(|path| path.extension().is_some_and(|e| e == "patch"));
    let of_roles = patches.filter(|path| {
        let patch = std::fs::read_to_string(path).expect("a patch");
        patch.contains("\nLayer: redundancy")
    });
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut ours: Vec<_> = of_roles.map(|path| name(&path)).collect();
    ours.sort_unstable();
    assert_eq!(listed, ours);
}
