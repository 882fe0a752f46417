//! The Python package as a wheel: built and installed with no network, it runs the example through kills.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command as Tool;

use bumpless_sidecar::{Command, Shape};
use bumpless_testing::skip;
use common::languages::ran;
use common::{patient, python, started, workspace};

/// A new environment in `place`, in which nothing is but Python and pip.
fn environment(place: &Path) -> PathBuf {
    let folder = place.join("venv");
    let made = Tool::new(python())
        .args(["-m", "venv"])
        .arg(&folder)
        .output();
    if !made.is_ok_and(|it| it.status.success()) {
        skip("needs python3 with venv and pip (Debian: python3-venv)");
    }
    folder.join("bin/python")
}

fn pip(interpreter: &Path) -> Tool {
    let mut pip = Tool::new(interpreter);
    pip.args(["-I", "-m", "pip"]);
    // What the user of this computer has set for pip is not for this test.
    pip.env("PIP_CONFIG_FILE", "/dev/null")
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    pip
}

fn the_wheel_of_this_release_runs_the_example_through_kills() {
    let place = tempfile::tempdir().expect("a folder");
    let interpreter = environment(place.path());
    let package = workspace("crates/product/program/python");
    let built = place.path().join("built");
    ran(pip(&interpreter)
        .args(["wheel", "--quiet", "--no-index", "--no-deps", "--wheel-dir"])
        .arg(&built)
        .arg(&package));
    let wheel = built.join(format!(
        "bumpless-{}-py3-none-any.whl",
        env!("CARGO_PKG_VERSION")
    ));
    assert!(wheel.is_file(), "{}", wheel.display());
    ran(pip(&interpreter)
        .args(["install", "--quiet", "--no-index"])
        .arg(&wheel));
    let code = "import bumpless, importlib.metadata as about; print(about.version('bumpless'), bumpless.__file__)";
    let told = ran(Tool::new(&interpreter).args(["-IBc", code])).stdout;
    let told = String::from_utf8_lossy(&told);
    let (version, file) = told.trim().split_once(' ').expect("both");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    assert!(Path::new(file).starts_with(place.path()), "{file}");

    // Isolated: the sources are not found by any other way.
    let level = workspace("examples/programs/python/level.py");
    let command = Command::new(interpreter).argument("-IB").script(level);
    let shape = Shape {
        inputs: 2,
        outputs: 2,
        state_max: 64,
    };
    let make = || started(&command, shape, patient());
    common::survives_kills(make, (200, 10), common::PERIOD, |cycle, inputs| {
        inputs.copy_from_slice(&[1.0 + (cycle % 50) as f64 / 100.0, 1.2]);
    });
}

fn the_wheel_is_the_same_whenever_it_is_built() {
    let package = workspace("crates/product/program/python");
    let place = tempfile::tempdir().expect("a folder");
    // Another year the second time.
    let code = "import sys, os, time; sys.path.insert(0, '.'); import build_wheel\n\
                for place in sys.argv[1:]: os.mkdir(place); build_wheel.build_wheel(place); build_wheel.build_sdist(place); \
                time.time = lambda: 2e9; time.localtime = lambda *_: time.gmtime(2e9)";
    let [one, other] = ["one", "other"].map(|name| place.path().join(name));
    ran(Tool::new(python())
        .args(["-ISBc", code])
        .args([&one, &other])
        .current_dir(package));
    let name = format!("bumpless-{}-py3-none-any.whl", env!("CARGO_PKG_VERSION"));
    let read = |folder: &Path| std::fs::read(folder.join(&name)).expect("a wheel");
    assert!(read(&one) == read(&other));
    let sources = format!("bumpless-{}.tar.gz", env!("CARGO_PKG_VERSION"));
    assert!(one.join(sources).is_file());
}

tests_and_programs!(
    the_wheel_of_this_release_runs_the_example_through_kills,
    the_wheel_is_the_same_whenever_it_is_built,
);
