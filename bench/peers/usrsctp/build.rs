//! Compiles the peer against the library that pkg-config knows.

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../c-peer/c");
    let version = peer_version::from_pkg_config("usrsctp");
    cc::Build::new()
        .files(["src/peer.c", "src/assembly.c"])
        .include("../c-peer/c")
        .define("PEER_VERSION", format!("\"{version}\"").as_str())
        .opt_level(3)
        .warnings_into_errors(true)
        .compile("peer");
    println!("cargo::rustc-link-lib=usrsctp");
}
