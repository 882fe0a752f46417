//! The table of what was found (`docs/mutations.md`).

use crate::mutation::{Mutation, root};

/// How a mutation was found.
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
# Mutations

Checkers that have never failed prove little. So the shipped code is made wrong in one place at a time,
and a test shows that the simulator finds it, by a checker that it concerns, while the same worlds
without it break no invariant:

    .ci/mutations.sh                    # fails if a mutation is not found, or by another checker
    BUMPLESS_WRITE=1 .ci/mutations.sh   # and writes this page

Each mutation is a patch under `mutations/`, named after what it does. The shipped code knows of none. The
patch begins with a sentence that says what is wrong, the layer in which it is, the world in which it
shows soon and the checkers that it concerns. The script copies the tree to `target/mutations/tree`, adds
`mutations/harness` and applies every patch to the copy. Each patch adds a branch that is taken while
`bumpless_base::mutation::is_on` says its name, so that one build serves all. A patch that no longer applies,
with the others or alone, fails the script: it is made anew when the code around it changes.

Worlds are in `mutations/harness/crates/proof/sim/tests/mutations`: storms over a pair of single packets (`small`),
of several packets (`packets`) or of short cycles (`busy`), or a script. Seeds are counted from 0, each
20 simulated seconds. The two last columns are what was seen when this page was written; any change of
the shipped code may move them, so only mutations, worlds and the page's form are compared.

Two are looked for in a world of an attacker besides: `OneSilentLinkIsEnough` where witnesses lie (`liars`), `ForgedTagAccepted` where messages are put together from others (`spliced`). Other parts have seeded worlds of their own, each with its checkers, among their tests (second table).

| mutation | what is wrong | where | world | found by | seeds | simulated s |
|---|---|---|---|---|---:|---:|
";

const OTHERS: &str = "
## Worlds of parts
`iprp`: hosts that replicate packets (`crates/cores/iprp/tests/world`). `states`: what seals and opens states, and an attacker between both
(`crates/cores/secure/tests/states_world`). `sessions`: two nodes with certificates, lists and clocks, and strangers
(`crates/product/management/src/service/world`). The run prints by which seed and checker each is found.

| world | mutation | what is wrong | where | found by |
|---|---|---|---|---|
";

fn page(mutations: &[Mutation], found: &[Option<Found>]) -> String {
    let mut page = HEAD.to_owned();
    for (mutation, found) in mutations.iter().zip(found) {
        let Mutation { name, what, .. } = mutation;
        let (layer, world) = (&mutation.layer, &mutation.world);
        let Some(found) = found else { continue };
        page += &format!(
            "| `{name}` | {what} | {layer} | {world} | {} | {} | {:.1} |\n",
            found.by,
            found.seeds,
            found.simulated as f64 / 1e9
        );
    }
    page += OTHERS;
    let mut others = Mutation::of_other_worlds();
    others.sort_by(|a, b| (&a.world, &a.layer, &a.name).cmp(&(&b.world, &b.layer, &b.name)));
    for Mutation {
        name,
        what,
        layer,
        world,
        found_by,
        ..
    } in others
    {
        let found_by = found_by.join(" or ");
        page += &format!("| {world} | `{name}` | {what} | {layer} | {found_by} |\n");
    }
    page
}

/// Writes the table if `BUMPLESS_WRITE` is set and all were searched for; else the recorded one must have the rows
/// of those that were, and a row for each of `all`.
pub fn compare_or_write(all: &[Mutation], searched: &[Mutation], found: &[Option<Found>]) {
    let page = page(searched, found);
    println!("{page}");
    let path = root().join("docs/mutations.md");
    let whole = searched.len() == all.len();
    if whole && std::env::var_os("BUMPLESS_WRITE").is_some() {
        std::fs::write(&path, page).expect("the page can be written");
        return;
    }
    let recorded = std::fs::read_to_string(&path).expect("the recorded page");
    let anew = "BUMPLESS_WRITE=1 .ci/mutations.sh writes the page anew";
    let (recorded, page) = (shape(&recorded), shape(&page));
    if whole {
        assert_eq!(recorded, page, "{anew}");
    }
    for line in &page {
        assert!(recorded.contains(line), "{line} is not recorded: {anew}");
    }
    let rows = recorded.iter().filter(|line| line.starts_with("| `"));
    assert_eq!(rows.count(), all.len(), "{anew}");
}

/// The page without what was seen.
fn shape(page: &str) -> Vec<String> {
    let kept = |line: &str| {
        let cells: Vec<_> = line.split(" | ").take(4).collect();
        cells.join(" | ")
    };
    page.lines().map(kept).collect()
}
