//! Generates the topic types from their IDL and compiles the peer.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../c-peer/c");
    let version = peer_version::from_pkg_config("CycloneDDS");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let status = Command::new("idlc")
        .arg("-o")
        .arg(&out)
        .arg("src/topics.idl")
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "idlc cannot translate src/topics.idl: install the package cyclonedds-tools"
    );
    cc::Build::new()
        .file(out.join("topics.c"))
        .warnings(false)
        .opt_level(3)
        .compile("topics");
    cc::Build::new()
        .files(["src/peer.c", "src/domain.c"])
        .include("../c-peer/c")
        .include(&out)
        .define("PEER_VERSION", format!("\"{version}\"").as_str())
        .opt_level(3)
        .warnings_into_errors(true)
        .compile("peer");
    println!("cargo::rustc-link-lib=static=topics");
    println!("cargo::rustc-link-lib=ddsc");
}
