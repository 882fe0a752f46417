//! Programs in C and Python, made with the libraries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Tool, Output};

use bumpless_sidecar::{Command, Shape};

use super::{need_compiler, python, workspace};

/// One input, one output.
pub const ONE: Shape = Shape {
    inputs: 1,
    outputs: 1,
    state_max: 4096,
};

/// The library's folder.
pub fn c() -> PathBuf {
    workspace("crates/product/program/c")
}

/// What a tool says that ends well.
pub fn ran(tool: &mut Tool) -> Output {
    let output = tool
        .output()
        .unwrap_or_else(|error| panic!("{tool:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool:?}: {said}");
    output
}

/// Compiles a C program of one file with the library.
pub fn compiled(place: &Path, text: &str) -> Command {
    let (source, program) = (place.join("program.c"), place.join("program"));
    fs::write(&source, text).expect("a file");
    let mut compiler = Tool::new(need_compiler());
    compiler
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(c());
    ran(compiler
        .arg(&source)
        .arg(c().join("bumpless.c"))
        .arg("-o")
        .arg(&program));
    Command::new(program)
}

/// A Python program that finds the package.
pub fn scripted(place: &Path, text: &str) -> Command {
    let script = place.join("program.py");
    let package = workspace("crates/product/program/python");
    let path = format!(
        "import sys; sys.path.insert(0, {:?})\n",
        package.display().to_string()
    );
    fs::write(&script, path + text).expect("a file");
    Command::new(python()).argument("-ISB").script(script)
}
