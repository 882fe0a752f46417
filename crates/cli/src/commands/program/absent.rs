//! What takes the place of what tells of WebAssembly modules where the interpreter is not built in.

use std::path::PathBuf;

use clap::Args;

use crate::output::{Failure, Outcome};

/// Not in this build: it takes `cargo build --release --features wasm`
#[derive(Debug, Args)]
pub struct Absent {
    /// The program's file
    file: PathBuf,
    /// What a build with it would take
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl Absent {
    /// Says what is missing.
    pub fn execute(&self) -> Outcome {
        let failure = Failure::refused(format_args!(
            "{}: this bumpless was built without WebAssembly; build it with: cargo build --release --features wasm",
            self.file.display()
        ));
        Err(failure.in_json(self.rest.iter().any(|word| word == "--json")))
    }
}
