//! `bumpless wan cut` and `heal`, and what all commands that change links have in common.

use std::io;
use std::process::ExitCode;

use bumpless_wan::Topology;
use bumpless_wan::emulation;
use clap::Args;
use serde_json::json;

use super::network::{Name, named};
use crate::output::{self, Failure, Outcome};

/// Links that are cut or healed.
#[derive(Debug, Args)]
pub struct Links {
    #[command(flatten)]
    name: Name,
    /// A node, with all of its links, or a link as NODE:NODE
    #[arg(required = true, value_name = "LINK-OR-NODE")]
    what: Vec<String>,
    /// Print the result as JSON (schema bumpless.wan-outage/1)
    #[arg(long)]
    pub json: bool,
}

impl Links {
    /// Makes them lose everything.
    pub fn cut(self) -> Outcome {
        self.change(true)
    }

    /// Makes them carry everything again.
    pub fn heal(self) -> Outcome {
        self.change(false)
    }

    fn change(self, cut: bool) -> Outcome {
        let (running, topology) = self.name.running()?;
        let links = meant(&topology, &self.what)?;
        let (changed, done) = if cut {
            (emulation::cut(&running, &topology, &links), "cut")
        } else {
            (emulation::heal(&running, &topology, &links), "whole")
        };
        changed.map_err(|error| refused(&self.name, &error))?;
        let names: Vec<_> = links.iter().map(|&link| named(&topology, link)).collect();
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.wan-outage/1",
                "name": self.name.name,
                "cut": cut,
                "links": names,
            }));
        } else {
            output::print_line(format_args!("{done}: {}", names.join(", ")));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The links that these words mean, each once.
pub fn meant(topology: &Topology, what: &[String]) -> Result<Vec<usize>, Failure> {
    let mut links = Vec::new();
    let mut unknown = Vec::new();
    for what in what {
        match bumpless_wan::ends_of(topology, what) {
            Ok(found) => links.extend(found),
            Err(error) => unknown.push(error),
        }
    }
    if !unknown.is_empty() {
        return Err(Failure::usage(unknown.join("; ")));
    }
    links.sort_unstable();
    links.dedup();
    Ok(links)
}

/// Why links of a network could not be changed.
pub fn refused(name: &Name, error: &io::Error) -> Failure {
    // The namespaces that were to be entered went with it.
    if name.running().is_err() {
        return Failure::refused(format_args!(
            "the network {0} has ended, and all that was cut or impaired with it; `bumpless wan up --name {0}` makes it anew",
            name.name
        ));
    }
    let status = format!(
        "`bumpless wan status --name {}` tells what is cut and impaired",
        name.name
    );
    Failure::refused(match error.kind() {
        io::ErrorKind::TimedOut => format!("{error}; try again when it has ended; {status}"),
        _ => format!("the kernel refuses: {error}; run as root, and {status}"),
    })
}
