//! `bumpless program show`: what stands in a program's file.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_base::Duration;
use bumpless_host::wasm::{Counts, Module};
use bumpless_host::{Kind, Limits};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{self, Failure, Outcome};

/// Tell what a program's file is, what it needs from its host, and what its state consists of
#[derive(Debug, Args)]
pub struct Show {
    /// The program's file
    file: PathBuf,
    /// Print the result as JSON (schema bumpless.program/1)
    #[arg(long)]
    pub json: bool,
}

impl Show {
    /// Runs the command.
    pub fn execute(&self) -> Outcome {
        let module = Module::open(&self.file, Default::default()).map_err(Failure::refused)?;
        let mut limits = Limits::within(Duration::from_secs(1));
        // Whatever a configuration may give it.
        limits.memory = usize::try_from(1_u64 << 32).unwrap_or(usize::MAX);
        let counts = Counts::told_by(&module, &limits).map_err(Failure::refused)?;
        if self.json {
            output::print_line(as_json(&module, counts));
        } else {
            output::print_line(as_text(&module, counts));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn as_json(module: &Module, counts: Counts) -> Value {
    let memories = module.memories();
    let memories: Vec<_> = memories
        .map(|(pages, most)| json!({"pages": pages, "pages_max": most}))
        .collect();
    json!({
        "schema": "bumpless.program/1",
        "file": module.file(),
        "kind": "wasm",
        "sha256": hexadecimal(&module.sha256()),
        "bytes": module.bytes(),
        "inputs": counts.inputs,
        "outputs": counts.outputs,
        "imports": module.imports().collect::<Vec<_>>(),
        "memories": memories,
        "mutable_globals": module.mutable_globals(),
        "changed_tables": module.changed_tables(),
    })
}

fn as_text(module: &Module, counts: Counts) -> String {
    let told = |count: Option<i32>| count.map_or("not told".into(), |count| count.to_string());
    let imports: Vec<_> = module.imports().collect();
    let imports = match &imports[..] {
        [] => "nothing".into(),
        names => names.join(", "),
    };
    let memories: Vec<_> = module.memories().map(memory).collect();
    let memories = match &memories[..] {
        [] => "none".into(),
        sizes => sizes.join(", "),
    };
    format!(
        "{}: {}\n  sha256   {}\n  bytes    {}\n  inputs   {}\n  outputs  {}\n  calls    {imports}\n  memory   {memories}\n  \
         state    {} globals and {} tables that change, and the memory",
        module.file(),
        Kind::Wasm,
        hexadecimal(&module.sha256()),
        module.bytes(),
        told(counts.inputs),
        told(counts.outputs),
        module.mutable_globals(),
        module.changed_tables(),
    )
}

fn memory((pages, most): (u64, Option<u64>)) -> String {
    match most {
        Some(most) => format!("{} KiB, at most {} KiB", pages * 64, most * 64),
        None => format!("{} KiB, and may grow", pages * 64),
    }
}

/// Bytes as hexadecimal digits.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
