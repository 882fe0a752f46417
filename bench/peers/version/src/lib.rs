//! For build scripts: the version of the library that a peer is built with.

use std::fs;
use std::process::Command;

/// Sets `PEER_VERSION` to the version of a crate in this workspace's `Cargo.lock`.
///
/// # Panics
///
/// If the lock file does not name the crate.
pub fn from_lock(package: &str) {
    let lock = "../Cargo.lock";
    println!("cargo::rerun-if-changed={lock}");
    let text = fs::read_to_string(lock).expect("Cargo.lock of the workspace can be read");
    let entry = format!("name = \"{package}\"\nversion = \"");
    let version = text
        .split_once(&entry)
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(version, _)| version)
        .unwrap_or_else(|| panic!("Cargo.lock has no package {package}"));
    println!("cargo::rustc-env=PEER_VERSION={version}");
}

/// The version that pkg-config knows.
///
/// # Panics
///
/// If pkg-config does not know the library.
pub fn from_pkg_config(library: &str) -> String {
    let output = Command::new("pkg-config")
        .args(["--modversion", library])
        .output()
        .expect("pkg-config runs: install the package pkg-config");
    assert!(
        output.status.success(),
        "pkg-config does not know {library}: `build.sh` names the package to install"
    );
    let version = String::from_utf8_lossy(&output.stdout);
    version.trim().to_owned()
}
