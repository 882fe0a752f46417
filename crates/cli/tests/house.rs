//! Rules of the house that a machine can check: the direction of dependencies, the licences of
//! what is shipped, and the sources of the cores.

#[path = "house/folders.rs"]
mod folders;
#[path = "house/lengths.rs"]
mod lengths;
#[path = "house/paths.rs"]
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use folders::Source;

/// Folders of `crates` from the bottom up: a crate depends on crates of its own folder and of those before it.
const FOLDERS: &[&str] = &["cores", "linux", "product", "proof", "cli"];

/// The one crate of the cores with `unsafe` code: the hand-over of a box between threads takes one block of it.
const CORE_WITH_UNSAFE_CODE: &str = "atomic-box";

/// What tests everywhere may use although its folder is above theirs.
const FOR_TESTS: &str = "bumpless-testing";

/// Folders of source with the modules in them that stand in circles, which only the apparatus may have. One that is
/// mended leaves the list.
const IN_CIRCLES: &[(&str, &[&str])] = &[
    ("proof/bench/src", &["conversation", "peer"]),
    ("proof/bench/src/calibrate", &["run", "verify"]),
    (
        "proof/sim/src",
        &[
            "application",
            "changing",
            "check",
            "echo",
            "exchange",
            "host",
            "network",
            "script",
            "variants",
        ],
    ),
    (
        "proof/sim/src/promise",
        &["climb", "cores", "judge", "search", "world"],
    ),
    (
        "proof/sim/src/script",
        &["entry", "forms", "kinds", "scenario"],
    ),
];

/// Modules of which another one shows or, for tests, takes all that there is. What that one does not have itself is
/// taken for theirs.
const WHOLE: &[&str] = &[
    "product/config/src: model::* in ",
    "proof/bench/src: paper::tables::* in paper",
    "proof/lab/src: runlog::* in runlog::synthetic",
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
    metadata_with(&[])
}

fn metadata_with(features: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(features)
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
        while let Some(next) = open.pop() {
            let Some((_, dependencies)) = crates.get(next) else {
                continue;
            };
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
    let circle = in_circles(&crates);
    for crate_in_it in ["bumpless-wire", "bumpless-redundancy", "bumpless-node"] {
        let found = circle.iter().any(|name| name == crate_in_it);
        assert!(found, "{crate_in_it} is in the circle: {circle:?}");
    }
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
    let wrong: Vec<_> = metadata_with(&["--all-features"])["packages"]
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
fn what_runs_modules_is_built_only_when_it_is_asked_for() {
    let names = |features: &[&str]| -> BTreeSet<String> {
        let all = metadata_with(features);
        let packages = all["packages"].as_array().expect("packages").iter();
        packages
            .map(|package| text(package, "name").to_owned())
            .collect()
    };
    let engines = |names: BTreeSet<String>| ["wasmi", "wasmtime"].map(|name| names.contains(name));
    assert_eq!(engines(names(&[])), [false, false]);
    let wasm = ["--features", "bumpless-cli/wasm"];
    assert_eq!(engines(names(&wasm)), [true, false]);
    assert_eq!(engines(names(&["--all-features"])), [true, true]);
}

#[test]
fn the_python_package_has_the_version_of_this_one() {
    let file = root().join("crates/product/program/python/pyproject.toml");
    let told = std::fs::read_to_string(file).expect("the package's file");
    let version = format!("version = {:?}", env!("CARGO_PKG_VERSION"));
    assert!(told.lines().any(|line| line == version), "not {version}");
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

/// The folders of source, by crate.
fn sources() -> Vec<PathBuf> {
    let folders = FOLDERS.iter().map(|name| root().join("crates").join(name));
    let list = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path())
    };
    let below = folders.flat_map(|folder| list(folder.clone()).chain([folder]));
    let mut sources: Vec<_> = below
        .map(|it| it.join("src"))
        .filter(|it| it.is_dir())
        .collect();
    sources.sort();
    sources
}

/// The modules of the folder `room` that reach themselves.
fn circles_of(source: &Source, room: &[String]) -> Vec<String> {
    let crates = source.dependencies(room).into_iter();
    let crates = crates.map(|(name, on)| {
        (
            name,
            (0, on.into_iter().map(|other| (other, false)).collect()),
        )
    });
    in_circles(&crates.collect())
}

#[test]
fn files_of_a_folder_depend_one_way() {
    let (mut found, mut globs, mut rooms) = (Vec::new(), Vec::new(), 0);
    for src in sources() {
        let source = Source::read(&src);
        let name = src
            .strip_prefix(root().join("crates"))
            .expect("a crate")
            .to_string_lossy();
        globs.extend(
            source
                .globs()
                .into_iter()
                .map(|glob| format!("{name}: {glob}")),
        );
        for room in source.folders() {
            rooms += 1;
            let circle = circles_of(&source, &room);
            if !circle.is_empty() {
                found.push(([&[name.to_string()], &room[..]].concat().join("/"), circle));
            }
        }
    }
    println!("{rooms} folders, {} exempted", IN_CIRCLES.len());
    assert!(rooms > 40, "{rooms}");
    assert_eq!(globs, WHOLE);
    let known = |(room, modules): &(&str, &[&str])| {
        (
            (*room).to_owned(),
            modules.iter().map(ToString::to_string).collect(),
        )
    };
    let known: Vec<(String, Vec<String>)> = IN_CIRCLES.iter().map(known).collect();
    assert_eq!(found, known, "{found:#?}");
}

#[test]
fn no_file_of_a_core_or_of_a_node_is_long_and_no_function() {
    let crates = root().join("crates");
    let mut files = Vec::new();
    for folder in ["cores", "product/node"] {
        lengths::files_in(&crates.join(folder), &mut files);
    }
    assert!(files.len() > 100, "{}", files.len());
    let mut long = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(&crates).unwrap().display();
        let lines = text.lines().count();
        if lines > lengths::FILE_MAX {
            long.push(format!("{name}: {lines} lines"));
        }
        let functions = lengths::long_functions(&text);
        long.extend(
            functions.map(|(function, lines)| format!("{name}: {function}, {lines} lines")),
        );
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}
