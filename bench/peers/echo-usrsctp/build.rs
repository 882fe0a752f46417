//! Compiles the association's end against the library that pkg-config knows.

fn main() {
    println!("cargo::rerun-if-changed=src");
    let version = peer_version::from_pkg_config("usrsctp");
    println!("cargo::rustc-env=PEER_VERSION={version}");
    cc::Build::new()
        .file("src/end.c")
        .opt_level(3)
        .warnings_into_errors(true)
        .compile("end");
    println!("cargo::rustc-link-lib=usrsctp");
}
