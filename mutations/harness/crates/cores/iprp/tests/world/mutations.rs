//! The world's checkers can fail: each mutation of iPRP's core is found, by a checker that it concerns.
//! Builds only in the copy that `.ci/mutations.sh` makes.

use std::path::Path;

use bumpless_base::mutation::switch_on;

use crate::run;

/// Seeds that a mutation may take.
const SEEDS: u64 = 600;

/// One deliberate mistake: the patch's name, and the checkers that may find it.
struct Mutation {
    name: &'static str,
    found_by: Vec<String>,
}

fn all() -> Vec<Mutation> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../mutations");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of patches") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if !text.contains("\nWorld: iprp\n") {
            continue;
        }
        let found_by = text
            .lines()
            .find_map(|line| line.strip_prefix("Found by: "));
        let name = path.file_stem().and_then(|name| name.to_str());
        all.push(Mutation {
            name: String::from(name.expect("a name")).leak(),
            found_by: found_by
                .expect("checkers")
                .split(", ")
                .map(str::to_owned)
                .collect(),
        });
    }
    all.sort_by_key(|mutation| mutation.name);
    all
}

#[test]
fn every_mutation_of_iprp_is_found_by_a_checker_that_it_concerns() {
    let all = all();
    assert!(all.len() >= 12, "{} patches", all.len());
    let (mut wrong, mut most) = (Vec::new(), 0);
    for Mutation { name, found_by } in all {
        switch_on(Some(name));
        let found = (0..SEEDS).find_map(|seed| run(seed).err().map(|what| (seed, what)));
        switch_on(None);
        match found {
            None => wrong.push(format!("{name} is not found by {SEEDS} seeds")),
            Some((seed, what)) => {
                println!("{name}: {} seeds: {what}", seed + 1);
                most = most.max(seed + 1);
                if !found_by
                    .iter()
                    .any(|by| what.starts_with(&format!("{by}: ")))
                {
                    wrong.push(format!("{name} is found by {what}, not by {found_by:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // What the same seeds find without a mutation would prove nothing.
    for seed in 0..most {
        assert_eq!(run(seed).err(), None);
    }
}
