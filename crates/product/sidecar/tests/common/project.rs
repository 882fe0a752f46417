//! A PLC project that a test may spoil, and what is built of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Tool;
use std::sync::OnceLock;

use bumpless_controller::CycleContext;
use bumpless_sidecar::plc::{BuildFault, Built, Options, build};
use bumpless_sidecar::{Command, Shape, Sidecar};
use tempfile::TempDir;

use super::{need_compiler, patient, started, workspace};

/// Built with this C compiler and the system's C++ compiler.
pub fn options(compiler: PathBuf, output: PathBuf) -> Options {
    Options {
        compiler,
        cpp_compiler: std::env::var_os("CXX").unwrap_or("c++".into()).into(),
        includes: Vec::new(),
        output,
    }
}

/// A copy of the example that a test may spoil.
pub struct Project {
    place: TempDir,
}

impl Project {
    /// A copy of the example of MATIEC's.
    pub fn new() -> Self {
        Self::of(&workspace("examples/programs/plc"))
    }

    /// A copy of this folder.
    pub fn of(folder: &Path) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let copied = Tool::new("cp")
            .arg("-R")
            .arg(folder)
            .arg(place.path().join("project"))
            .status();
        assert!(copied.is_ok_and(|status| status.success()));
        Self { place }
    }

    pub fn folder(&self) -> PathBuf {
        self.place.path().join("project")
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder().join(name), text).expect("a file");
    }

    pub fn replace(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.folder().join(name)).expect("a file");
        assert!(text.contains(from), "{name} has no {from:?}");
        self.write(name, &text.replace(from, to));
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.folder().join(name)).expect("a file");
    }

    pub fn output(&self) -> PathBuf {
        self.place.path().join("program")
    }

    pub fn build(&self) -> Result<Built, BuildFault> {
        self.build_with(need_compiler())
    }

    pub fn build_with(&self, compiler: PathBuf) -> Result<Built, BuildFault> {
        self.build_as(&options(compiler, self.output()))
    }

    pub fn build_as(&self, options: &Options) -> Result<Built, BuildFault> {
        build(&self.folder(), options, &mut |_| ())
    }

    /// What is said of it, which must have each of `parts`.
    pub fn refused(&self, parts: &[&str]) {
        let fault = self.build().expect_err("it must not be built").to_string();
        for part in parts {
            assert!(fault.contains(part), "{part:?} in {fault}");
        }
        assert!(!self.output().exists(), "nothing is left");
    }
}

pub fn shape(built: &Built) -> Shape {
    Shape {
        inputs: built.inputs.len(),
        outputs: built.outputs.len(),
        state_max: built.state_len,
    }
}

pub fn runs(built: &Built) -> Sidecar {
    started(&Command::new(&built.output), shape(built), patient())
}

pub fn built(project: &Project) -> Built {
    project.build().unwrap_or_else(|fault| panic!("{fault}"))
}

/// The example of MATIEC's as it is, built once.
pub fn example() -> &'static Built {
    static EXAMPLE: OnceLock<(Project, Built)> = OnceLock::new();
    let (_, built) = EXAMPLE.get_or_init(|| {
        need_compiler();
        let project = Project::new();
        let built = built(&project);
        (project, built)
    });
    built
}

pub fn cycle(built: &Built, sidecar: &mut Sidecar, cycle: u64, inputs: &[f64]) -> Vec<f64> {
    let mut outputs = vec![0.0; built.outputs.len()];
    let context = CycleContext {
        cycle,
        period: built.period,
    };
    sidecar
        .run_cycle(&context, inputs, &mut outputs)
        .unwrap_or_else(|fault| panic!("{fault}"));
    outputs
}
