//! What is shipped with the bridges may be: the licences of all that they are built of.

use std::process::Command;

use serde_json::Value;

/// As for the product (`crates/cli/tests/house.rs`), and MPL-2.0: copyleft for each of its files. Nothing of the OPC UA
/// library is changed here, and its sources are public where the registry has them.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn can_ship(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    expression.split(" AND ").all(|all| {
        let mut choices = all.split(" OR ");
        choices.any(|one| LICENCES.contains(&one.trim()))
    })
}

#[test]
fn every_dependency_has_a_licence_that_can_be_shipped() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let wrong: Vec<_> = packages
        .iter()
        .filter(|package| !can_ship(package["license"].as_str().unwrap_or_default()))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(packages.len() > 50 && wrong.is_empty(), "{wrong:#?}");
    assert!(!can_ship("GPL-3.0-only") && !can_ship("") && !can_ship("MIT AND GPL-2.0"));
}
