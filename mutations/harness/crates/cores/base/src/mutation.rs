//! The switch of the mutations: all are built in, and each thread switches on at most one.

extern crate std;

use core::cell::Cell;
use std::borrow::ToOwned;
use std::format;
use std::path::Path;
use std::println;
use std::string::String;
use std::vec::Vec;

std::thread_local! {
    static ON: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Whether the mutation of this name is switched on in this thread.
#[inline]
pub fn is_on(name: &str) -> bool {
    ON.get() == Some(name)
}

/// From here on, this thread runs with this mutation, or with none.
pub fn switch_on(name: Option<&'static str>) {
    ON.set(name);
}

/// Which of the mutations are searched for: from which on, and every which. `BUMPLESS_SLICE=K/N` is every Nth from
/// the Kth on, counted from 0; all without it.
///
/// # Panics
/// If the variable says anything else.
pub fn slice() -> (usize, usize) {
    let Ok(said) = std::env::var("BUMPLESS_SLICE") else {
        return (0, 1);
    };
    let parsed = said
        .split_once('/')
        .and_then(|(first, step)| Some((first.parse().ok()?, step.parse().ok()?)));
    match parsed {
        Some((first, step)) if first < step => (first, step),
        _ => std::panic!("BUMPLESS_SLICE is K/N with K below N, not {said}"),
    }
}

/// One deliberate mistake of a world of its own: the patch's name, and the checkers that may find it.
struct Mutation {
    name: &'static str,
    found_by: Vec<String>,
}

/// Those whose patch names `world`.
fn all_of(world: &str) -> Vec<Mutation> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../mutations");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of patches") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if !text.contains(&format!("\nWorld: {world}\n")) {
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
                .map(ToOwned::to_owned)
                .collect(),
        });
    }
    all.sort_by_key(|mutation| mutation.name);
    all
}

/// Looks for each mutation of `world`, in at most so many seeds, by `run`, which says `CHECKER: what` if something is wrong.
/// There are at least so many. With `sliced`, for those that `BUMPLESS_SLICE` names.
///
/// # Panics
/// One is not found, or not by a checker that it concerns, or the same seeds find something without it.
pub fn find_all(
    world: &str,
    (seeds, least, sliced): (u64, usize, bool),
    run: impl Fn(u64) -> Result<(), String>,
) {
    let all = all_of(world);
    assert!(all.len() >= least, "{} patches", all.len());
    let (mut wrong, mut most) = (Vec::new(), 0);
    let (first, step) = if sliced { slice() } else { (0, 1) };
    for Mutation { name, found_by } in all.into_iter().skip(first).step_by(step) {
        switch_on(Some(name));
        let found = (0..seeds).find_map(|seed| run(seed).err().map(|what| (seed, what)));
        switch_on(None);
        match found {
            None => wrong.push(format!("{name} is not found by {seeds} seeds")),
            Some((seed, what)) => {
                println!("{name}: {} seeds: {what}", seed + 1);
                most = most.max(seed + 1);
                let by = |by: &String| what.starts_with(&format!("{by}: "));
                if !found_by.iter().any(by) {
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
