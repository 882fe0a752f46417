//! What the head of each patch under `mutations/` says.

use std::path::{Path, PathBuf};

/// Worlds of a part's own, in its own tests.
const OTHER_WORLDS: [&str; 3] = ["iprp", "sessions", "states"];

/// One deliberate mistake, and what is expected of the checkers.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// The patch's name, by which it is switched on.
    pub name: String,
    /// What is wrong with it: the patch's first line.
    pub what: String,
    /// The layer in which it is.
    pub layer: String,
    /// Where it is looked for: `small`, `packets`, `busy`, a script of this folder, or one of `scenarios`.
    pub world: String,
    /// The checkers that may find it.
    pub found_by: Vec<String>,
    /// Further worlds in which it is found, each with the checker: lines `Also in: WORLD, by CHECKER`.
    pub also: Vec<(String, String)>,
}

impl Mutation {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a patch");
        let (head, _) = text.split_once("\ndiff ").expect("a head, then a diff");
        let value = |key: &str| {
            let mut values = head.lines().filter_map(|line| line.strip_prefix(key));
            let value = values.next();
            let value = value.unwrap_or_else(|| panic!("{}: no line `{key}`", path.display()));
            value.trim().to_owned()
        };
        Self {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            what: head.lines().next().expect("a sentence").to_owned(),
            layer: value("Layer:"),
            world: value("World:"),
            also: head
                .lines()
                .filter_map(|line| line.strip_prefix("Also in: ")?.split_once(", by "))
                .map(|(world, by)| (world.to_owned(), by.to_owned()))
                .collect(),
            found_by: value("Found by:").split(", ").map(str::to_owned).collect(),
        }
    }

    /// All of the pair's, by layer and name.
    pub fn all() -> Vec<Self> {
        let others = Self::of_other_worlds();
        let mut all = Self::every();
        all.retain(|mutation| !others.iter().any(|it| it.name == mutation.name));
        all
    }

    /// Those that are found by the tests of a part's own world.
    pub fn of_other_worlds() -> Vec<Self> {
        let mut all = Self::every();
        all.retain(|mutation| OTHER_WORLDS.contains(&&*mutation.world));
        all
    }

    fn every() -> Vec<Self> {
        let entries = std::fs::read_dir(root().join("mutations")).expect("a folder of patches");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_patch = |path: &PathBuf| path.extension().is_some_and(|e| e == "patch");
        let mut all: Vec<_> = paths.filter(is_patch).map(|p| Self::read(&p)).collect();
        all.sort_by(|a, b| (&a.layer, &a.name).cmp(&(&b.layer, &b.name)));
        all
    }
}

/// The folder of the whole tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}
