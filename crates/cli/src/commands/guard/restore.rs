//! `bumpless guard restore`: what a node that is gone has changed of interfaces, put back.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bumpless_placement::{FOLDER, Restored, Tree, is_left, restore};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{self, Outcome};
use crate::stop;

/// Put back where packets of interfaces are worked off, as it was before a node that was killed
///
/// A node puts it back itself when it ends, a process beside it when it is killed, and its next start at the latest; this is for when none
/// of them could. What a running node has changed stays. Exit status 1: something could not be put back.
#[derive(Debug, Args)]
pub struct Restore {
    /// Wait until the standard input ends, whatever signals come, and for whoever holds a change then
    #[arg(long)]
    when_input_ends: bool,
    /// Print the result as JSON (schema bumpless.guard.restore/1)
    #[arg(long)]
    json: bool,
}

/// The command that a node runs beside itself.
pub fn keeper() -> Option<Vec<OsString>> {
    let program = std::env::current_exe().map(PathBuf::into_os_string).ok()?;
    let arguments = ["guard", "restore", "--when-input-ends"].map(OsString::from);
    Some([program].into_iter().chain(arguments).collect())
}

impl Restore {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let all = match self.when_input_ends {
            true => {
                // A service manager signals all processes of a service, also when its node has just crashed.
                stop::outlast_signals()?;
                match is_left(&mut io::stdin().lock()) {
                    true => restore((&Tree::default(), Path::new(FOLDER)), true),
                    false => Vec::new(),
                }
            }
            false => restore((&Tree::default(), Path::new(FOLDER)), false),
        };
        let is_whole = all.iter().all(|it| it.refused.is_empty());
        match self.json {
            true => output::print_line(json!({
                "schema": "bumpless.guard.restore/1",
                "ok": is_whole,
                "interfaces": all.iter().map(told).collect::<Vec<_>>(),
            })),
            false if all.is_empty() => {
                output::print_line(
                    "nothing is to be put back: no node that is gone has changed anything here",
                );
            }
            false => all.iter().flat_map(words).for_each(output::print_line),
        }
        Ok(ExitCode::from(u8::from(!is_whole)))
    }
}

fn told(it: &Restored) -> Value {
    json!({"name": it.interface, "put_back": it.put_back, "refused": it.refused})
}

fn words(it: &Restored) -> Vec<String> {
    let first = format!("{}: {} settings put back", it.interface, it.put_back);
    [first]
        .into_iter()
        .chain(it.refused.iter().cloned())
        .collect()
}
