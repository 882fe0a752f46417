//! Compiles the counting allocation functions.

fn main() {
    println!("cargo::rerun-if-changed=c/count.c");
    cc::Build::new()
        .file("c/count.c")
        .opt_level(3)
        .warnings_into_errors(true)
        // The compiler must not take these definitions for the ones it knows and call them from themselves.
        .flag("-fno-builtin")
        .compile("peer_count");
}
