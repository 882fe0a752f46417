//! Rules of the house that a machine can check: the direction of dependencies, the licences of
//! what is shipped, and the sources of the cores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Layers from the bottom up. A crate may depend only on crates of lower layers.
const LAYERS: &[(&str, u8)] = &[
    ("bumpless-base", 0),
    ("bumpless-drawing", 0),
    ("bumpless-exchange", 0),
    ("bumpless-trial", 0),
    ("bumpless-wire", 1),
    ("bumpless-transfer", 2),
    ("bumpless-redundancy", 2),
    ("bumpless-net-linux", 3),
    ("bumpless-config", 3),
    ("bumpless-meeting", 3),
    ("bumpless-plan", 4),
    ("bumpless-harness", 4),
    ("bumpless-controller", 4),
    ("bumpless-node", 5),
    ("bumpless-bench", 6),
    ("bumpless-sim", 6),
    ("bumpless-lab", 7),
    ("bumpless-cli", 8),
];

/// Crates that run on anything: no standard library, no unsafe code.
const CORES: &[&str] = &["base", "wire", "transfer", "redundancy"];

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

#[test]
fn dependencies_point_downward_only() {
    let layers: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let mut wrong = Vec::new();
    for package in metadata()["packages"].as_array().expect("packages") {
        let name = text(package, "name");
        if !package["source"].is_null() {
            continue;
        }
        let Some(layer) = layers.get(name) else {
            wrong.push(format!(
                "{name} has no layer: add it to LAYERS and to ARCHITECTURE.md"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let target = text(dependency, "name");
            match layers.get(target) {
                Some(lower) if lower >= layer => wrong.push(format!("{name} depends on {target}")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
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
    for core in CORES {
        let lib =
            std::fs::read_to_string(root().join(format!("crates/{core}/src/lib.rs"))).expect(core);
        for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            assert!(
                lib.contains(attribute),
                "crates/{core}/src/lib.rs lacks {attribute}"
            );
        }
    }
}
