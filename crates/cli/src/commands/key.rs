//! `bumpless key`: the secret that the computers of a pair share.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bumpless_node::key_file;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::output::{self, Failure, Outcome};

/// Make the secret that protects a pair's messages, or tell which one a file has
///
/// Every node and witness of the pair needs the same file. No command prints a secret.
#[derive(Debug, Args)]
pub struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a file with a random secret that only this user may read; one that is there is never overwritten
    New(File),
    /// Print the identifier of the secret in a file: the same on every computer that has the same secret
    Show(File),
}

#[derive(Debug, Args)]
struct File {
    /// The key file
    file: PathBuf,
    /// Print the result as JSON (schema bumpless.key/1)
    #[arg(long)]
    json: bool,
}

impl Key {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (Action::New(File { json, .. }) | Action::Show(File { json, .. })) = self.action;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        match self.action {
            Action::New(File { file, json }) => {
                let id = key_file::create(&file).map_err(Failure::refused)?;
                output::done(format_args!("{} was made", file.display()));
                tell(&file, id, json);
                if !json {
                    output::print_line(next(&file));
                }
            }
            Action::Show(File { file, json }) => {
                let ring = key_file::load(std::slice::from_ref(&file), Path::new(""))
                    .map_err(|errors| Failure::refused(key_file::told(&errors)))?;
                tell(&file, ring.sealing(), json);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn tell(file: &Path, id: u16, as_json: bool) {
    let file = file.display();
    if as_json {
        let (file, id) = (file.to_string(), format!("{id:04x}"));
        let told = json!({"schema": "bumpless.key/1", "file": file, "identifier": id});
        output::print_line(told);
    } else {
        output::print_line(format_args!("{file} has the key {id:04x}"));
    }
}

/// What to do with a key that was made.
fn next(file: &Path) -> String {
    format!(
        "Copy it to the other computers of the pair, witnesses included, by a way that nobody else can read, such as\n    \
         scp -p {} OTHER:\n\
         Name it to nodes by keys = [...] in [security] of their configuration, and to witnesses with --key.",
        file.display()
    )
}
