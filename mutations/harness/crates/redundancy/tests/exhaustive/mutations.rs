//! What is made wrong in the machines, and the smallest exploration that finds it.

use super::explore::{cut_once, first_counterexample};
use super::model::Roles;
use super::plan::{Budget, Fault, Plan};
use bumpless_redundancy::ReferenceKind::Witness;

/// The mutations of the roles, sorted.
fn all() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mutations");
    let paths = std::fs::read_dir(folder).expect("a folder of patches");
    let paths = paths.map(|entry| entry.expect("an entry").path());
    let of_roles = paths.filter_map(|path| {
        let name = path
            .file_name()?
            .to_str()?
            .strip_suffix(".patch")?
            .to_owned();
        let patch = std::fs::read_to_string(&path).expect("a patch");
        patch.contains("\nLayer: redundancy").then_some(name)
    });
    let mut all: Vec<_> = of_roles.collect();
    all.sort();
    all
}

/// `BUMPLESS_MUTATION` names some of them.
#[test]
fn mutations_of_the_roles_are_found() {
    let one = || Plan::new(&[Witness], 1);
    let two = || Plan::new(&[Witness; 2], 2);
    let wanted = std::env::var("BUMPLESS_MUTATION").ok();
    let is_wanted = |name: &String| wanted.as_ref().is_none_or(|w| w.contains(name));
    for mutation in all().into_iter().filter(is_wanted) {
        let mutation: &'static str = mutation.leak();
        let long = || one().with_long_lease();
        let explorations = [
            ("any 1", Roles::settled(one(), Budget::any(1))),
            ("any 1, long lease", Roles::settled(long(), Budget::any(1))),
            ("from the start", Roles::cold(one(), Budget::NOTHING)),
            (
                "any 1, two witnesses",
                Roles::settled(two(), Budget::any(1)),
            ),
            (
                "2 cuts, long lease",
                Roles::settled(long(), Budget::only(2, &[Fault::Cut])),
            ),
            (
                "crash and copy",
                Roles::settled(one(), Budget::only(2, &[Fault::Crash, Fault::Copy])),
            ),
            ("cut once, 3", cut_once(one())),
        ];
        let found = explorations.into_iter().find_map(|(name, mut roles)| {
            roles.broken = Some(mutation);
            Some((name, first_counterexample(roles)?))
        });
        println!("## {mutation}: {found:?}");
    }
}
