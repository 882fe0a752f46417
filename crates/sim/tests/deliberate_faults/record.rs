//! The table of what was found (`docs/deliberate-faults.md`).

use std::path::Path;

use crate::expected::{Expected, World};

/// How a fault was found.
pub struct Found {
    /// The invariant.
    pub by: &'static str,
    /// What was seen.
    pub what: String,
    /// Runs that it took.
    pub seeds: u64,
    /// Simulated time until then, nanoseconds.
    pub simulated: u64,
}

const HEAD: &str = "\
# Deliberate faults

Checkers that have never failed prove little. So the shipped code can be made wrong in one place at a
time (`bumpless_base::fault`, only in a build with `--cfg bumpless_deliberate_faults`), and a test shows
that the simulator finds it, by a checker that it concerns, while the same worlds without the fault
break no invariant:

    .ci/deliberate_faults.sh                    # fails if a fault is not found, or by another checker
    BUMPLESS_WRITE=1 .ci/deliberate_faults.sh   # and writes this page

Worlds are in `crates/sim/tests/deliberate_faults`: storms over a pair of single packets (`small`), of
several packets (`packets`) or of short cycles (`busy`), or a script. Seeds are counted from 0, each
20 simulated seconds. The two last columns are what was seen when this page was written; any change of
the shipped code may move them, so only faults, worlds and the page's form are compared.

| fault | what is wrong | where | world | found by | seeds | simulated s |
|---|---|---|---|---|---:|---:|
";

fn page(expected: &[Expected], found: &[Option<Found>]) -> String {
    let mut page = HEAD.to_owned();
    for (Expected { fault, world, .. }, found) in expected.iter().zip(found) {
        let (what, place) = (fault.what(), fault.place());
        let world = match world {
            World::Small => "small",
            World::Packets => "packets",
            World::Busy => "busy",
            World::Scenario(name) => name,
        };
        let Some(found) = found else { continue };
        page += &format!(
            "| `{fault:?}` | {what} | {place} | {world} | {} | {} | {:.1} |\n",
            found.by,
            found.seeds,
            found.simulated as f64 / 1e9
        );
    }
    page
}

/// Writes the table if `BUMPLESS_WRITE` is set; else the recorded one must list the same faults.
pub fn compare_or_write(expected: &[Expected], found: &[Option<Found>]) {
    let page = page(expected, found);
    println!("{page}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("docs/deliberate-faults.md");
    if std::env::var_os("BUMPLESS_WRITE").is_some() {
        std::fs::write(&path, page).expect("the page can be written");
        return;
    }
    let recorded = std::fs::read_to_string(&path).expect("the recorded page");
    assert_eq!(
        shape(&recorded),
        shape(&page),
        "BUMPLESS_WRITE=1 .ci/deliberate_faults.sh writes the page anew"
    );
}

/// The page without what was seen.
fn shape(page: &str) -> Vec<String> {
    let kept = |line: &str| {
        let cells: Vec<_> = line.split(" | ").take(4).collect();
        cells.join(" | ")
    };
    page.lines().map(kept).collect()
}
