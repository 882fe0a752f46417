//! `bumpless check`: every error of a configuration at once, or the sample file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::output::{self, Outcome};

/// Check a configuration and print every error at once, with line and remedy
#[derive(Debug, Args)]
pub struct Check {
    /// The pair's configuration file
    #[arg(required_unless_present = "sample")]
    config: Option<PathBuf>,
    /// Print a sample configuration in which every field is explained, and exit
    #[arg(long, conflicts_with_all = ["config", "json"])]
    sample: bool,
    /// Print the result as JSON (schema bumpless.check/1)
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let Some(path) = self.config.filter(|_| !self.sample) else {
            output::print_line(bumpless_config::sample().trim_end());
            return Ok(ExitCode::SUCCESS);
        };
        let config = output::load(&path, self.json)?;
        let fingerprint = format!("{:016x}", config.fingerprint());
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.check/1",
                "ok": true,
                "pair": config.pair,
                "fingerprint": fingerprint,
                "problems": [],
                "weaknesses": config.weaknesses,
            }));
            return Ok(ExitCode::SUCCESS);
        }
        for weakness in &config.weaknesses {
            output::print_line(format_args!("weakness: {weakness}"));
        }
        output::print_line(format_args!(
            "{} is valid: pair '{}', {} nodes, {} networks, {} applications, fingerprint {fingerprint}",
            path.display(),
            config.pair,
            config.nodes.len(),
            config.networks.len(),
            config.applications.len(),
        ));
        output::print_line("`bumpless plan` says whether every state can be in time");
        Ok(ExitCode::SUCCESS)
    }
}
