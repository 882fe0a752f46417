//! Rules of the house that a machine can check: the direction of dependencies, the licences of
//! what is shipped, and the sources of the cores.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Folders of `crates` from the bottom up: a crate depends on crates of its own folder and of those before it.
const FOLDERS: &[&str] = &["cores", "linux", "product", "proof", "cli"];

/// The one crate of the cores with `unsafe` code: the hand-over of a box between threads takes one block of it.
const CORE_WITH_UNSAFE_CODE: &str = "atomic-box";

/// What tests everywhere may use although its folder is above theirs.
const FOR_TESTS: &str = "bumpless-testing";

/// Folders of source whose files stand in circles, which only the apparatus may have. One that is mended leaves the list.
const IN_CIRCLES: &[&str] = &[
    "proof/bench/src",
    "proof/bench/src/calibrate",
    "proof/sim/src",
    "proof/sim/src/promise",
    "proof/sim/src/script",
];

/// Licences under which a dependency can be shipped with Bumpless.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "0BSD",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("workspace root")
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Where the folder of the crate at `manifest` stands in `FOLDERS`. What is outside `crates` is proof.
fn height(manifest: &str) -> usize {
    let below = Path::new(manifest).strip_prefix(root().join("crates"));
    let folder = below.map_or("proof".into(), |path| {
        path.iter().next().expect("a folder").to_string_lossy()
    });
    let found = FOLDERS.iter().position(|&name| name == folder);
    found.unwrap_or_else(|| {
        panic!("crates/{folder} is no layer: add it to FOLDERS and to ARCHITECTURE.md")
    })
}

/// Crates of this project: name, height of the folder, dependencies on one another (name, whether for tests only).
type Crates = BTreeMap<String, (usize, Vec<(String, bool)>)>;

fn crates() -> Crates {
    let metadata = metadata();
    let own = metadata["packages"].as_array().expect("packages").iter();
    own.filter(|package| package["source"].is_null())
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("dependencies");
            let named = |dependency: &Value| {
                let for_tests = text(dependency, "kind") == "dev";
                (text(dependency, "name").to_owned(), for_tests)
            };
            let height = height(text(package, "manifest_path"));
            let dependencies = dependencies.iter().map(named).collect();
            (text(package, "name").to_owned(), (height, dependencies))
        })
        .collect()
}

/// Dependencies that go up, from one folder to a later one.
fn upward(crates: &Crates) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, (height, dependencies)) in crates {
        for (target, for_tests) in dependencies {
            let above = crates.get(target).is_some_and(|(other, _)| other > height);
            if above && !(*for_tests && target == FOR_TESTS) {
                wrong.push(format!("{name} depends on {target}"));
            }
        }
    }
    wrong
}

/// Crates that reach themselves by their dependencies, those of tests included.
fn in_circles(crates: &Crates) -> Vec<String> {
    let reaches_itself = |name: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![name]);
        while let Some((_, dependencies)) = open.pop().and_then(|next| crates.get(next)) {
            let targets = dependencies.iter().map(|(target, _)| target);
            open.extend(targets.filter(|target| seen.insert(*target)));
        }
        seen.contains(name)
    };
    crates
        .keys()
        .filter(|name| reaches_itself(name))
        .cloned()
        .collect()
}

#[test]
fn dependencies_point_downward_only() {
    let mut crates = crates();
    assert!(crates.len() > 15, "{:?}", crates.keys());
    assert_eq!(upward(&crates), [""; 0]);
    assert_eq!(in_circles(&crates), [""; 0]);

    let core = crates.get_mut("bumpless-wire").expect("a core");
    core.1.push(("bumpless-node".to_owned(), true));
    assert_eq!(upward(&crates), ["bumpless-wire depends on bumpless-node"]);
    assert!(in_circles(&crates).contains(&"bumpless-wire".to_owned()));
}

/// Whether an SPDX expression can be met with the licences in `LICENCES`.
fn can_ship(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    expression
        .split(" AND ")
        .all(|all| all.split(" OR ").any(|one| LICENCES.contains(&one.trim())))
}

#[test]
fn every_dependency_has_a_licence_that_can_be_shipped() {
    let wrong: Vec<_> = metadata()["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .filter(|package| !can_ship(text(package, "license")))
        .map(|package| {
            format!(
                "{} {}: '{}'",
                text(package, "name"),
                text(package, "version"),
                text(package, "license")
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!can_ship("GPL-3.0-only") && !can_ship("") && !can_ship("MIT AND GPL-2.0"));
}

#[test]
fn cores_use_no_standard_library_and_no_unsafe_code() {
    let mut count = 0;
    for core in std::fs::read_dir(root().join("crates/cores")).expect("the cores") {
        let core = core.expect("a core").path();
        let lib = std::fs::read_to_string(core.join("src/lib.rs")).expect("its source");
        let may_be_unsafe = core.ends_with(CORE_WITH_UNSAFE_CODE);
        let forbids = lib.contains("#![forbid(unsafe_code)]");
        assert!(lib.contains("#![no_std]"), "{core:?} lacks #![no_std]");
        assert!(forbids != may_be_unsafe, "{core:?}: unsafe code");
        count += 1;
    }
    assert!(count >= 5, "{count} cores");
}

/// The first names of the paths that begin with `prefix` in `text`: of one, or of each in braces.
fn names_after(text: &str, prefix: &str) -> Vec<String> {
    let first = |path: &str| -> String {
        let name = path.trim_start().chars();
        name.take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let ends = text.match_indices(prefix).filter(|&(at, _)| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    });
    let rest = ends.map(|(at, _)| &text[at + prefix.len()..]);
    rest.flat_map(|rest| {
        let Some(list) = rest.strip_prefix('{') else {
            return vec![first(rest)];
        };
        let (mut depth, mut names, mut begins) = (0, Vec::new(), 0);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    names.push(first(&list[begins..at]));
                    begins = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
        names
    })
    .collect()
}

/// What `file` in the folder of source `room` depends on by its code, without comments and tests.
fn depends_on(file: &Path, room: &Path, source: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("a file of source");
    let code = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let lines = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let code: Vec<_> = lines.collect();
    let code = code.join("\n");
    let inside = room.strip_prefix(source).expect("below the source");
    let of_room: String = inside
        .iter()
        .map(|name| format!("{}::", name.to_string_lossy()))
        .collect();
    let mut names = names_after(&code, &format!("crate::{of_room}"));
    let is_room = file.file_stem().is_some_and(|stem| stem == "mod");
    let below = file
        .strip_prefix(room)
        .expect("in the room")
        .components()
        .count();
    let up = "super::".repeat(below - usize::from(is_room));
    if !up.is_empty() {
        names.extend(names_after(&code, &up));
    }
    names
}

/// The modules of the folder `room` that reach themselves.
fn circles_of(room: &Path, source: &Path) -> Vec<String> {
    let mut modules: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut open = vec![room.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let inside = path.strip_prefix(room).expect("in the room");
            let module = inside.iter().next().expect("a name").to_string_lossy();
            let module = module.trim_end_matches(".rs").to_owned();
            let tests = path.ends_with("tests.rs") || module == "tests" || module == "every_order";
            let hub = ["mod", "lib", "main"].contains(&module.as_str());
            if path.extension().is_some_and(|it| it == "rs") && !tests && !hub {
                modules.entry(module).or_default().push(path);
            }
        }
    }
    let names: BTreeSet<_> = modules.keys().cloned().collect();
    let crates = modules.iter().map(|(name, files)| {
        let named = files.iter().flat_map(|file| depends_on(file, room, source));
        let others = named.filter(|other| other != name && names.contains(other));
        let dependencies = others.map(|other| (other, false)).collect();
        (name.clone(), (0, dependencies))
    });
    in_circles(&crates.collect())
}

#[test]
fn files_of_a_folder_depend_one_way() {
    let mut found = BTreeMap::new();
    let mut rooms = 0;
    let mut open = vec![(root().join("crates"), None)];
    while let Some((folder, source)) = open.pop() {
        let source = source.or_else(|| folder.ends_with("src").then(|| folder.clone()));
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let of_tests = path.ends_with("tests") || path.ends_with("examples");
            if path.is_dir() && !of_tests {
                open.push((path, source.clone()));
            }
        }
        if let Some(source) = source {
            rooms += 1;
            let circle = circles_of(&folder, &source);
            let name = folder.strip_prefix(root().join("crates")).expect("a crate");
            if !circle.is_empty() {
                found.insert(name.to_string_lossy().into_owned(), circle);
            }
        }
    }
    println!("{rooms} folders, {} exempted", IN_CIRCLES.len());
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    assert!(rooms > 40, "{rooms}");
    assert_eq!(names, IN_CIRCLES, "{found:#?}");
}
