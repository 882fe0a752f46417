//! `bumpless iprp check`: every error of a host's file at once, and what would keep this host from running it.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_iprp_daemon::{Attachment, Config, Found, RunError, check_host, sample};
use clap::Args;
use serde_json::json;

use crate::output::{self, Outcome};

/// Check a host's file and print every error at once, with line and remedy; then what keeps this host from running it
///
/// Exit status 0: it can run here. 1: the file is right, and something is missing on this host. 2: the file is wrong.
#[derive(Debug, Args)]
pub struct Check {
    /// The host's file
    #[arg(required_unless_present = "sample")]
    config: Option<PathBuf>,
    /// Print a file in which every field is explained, and exit
    #[arg(long, conflicts_with_all = ["config", "json"])]
    sample: bool,
    /// Print the result as JSON (schema bumpless.iprp.check/1)
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let Some(path) = self.config.filter(|_| !self.sample) else {
            output::print_line(sample().trim_end());
            return Ok(ExitCode::SUCCESS);
        };
        let config = super::load(&path, self.json)?;
        let host = check_host(&config, &path);
        if self.json {
            let missing: Vec<_> = host
                .as_ref()
                .err()
                .into_iter()
                .flatten()
                .map(RunError::to_string)
                .collect();
            output::print_line(json!({
                "schema": "bumpless.iprp.check/1",
                "ok": true,
                "problems": [],
                "monitors": config.monitors.len(),
                "groups": config.groups.iter().map(|it| it.address.to_string()).collect::<Vec<_>>(),
                "runs_here": host.is_ok(),
                "missing_here": missing,
                "networks": host.as_ref().map(|found| found.networks.iter().map(network).collect::<Vec<_>>()).unwrap_or_default(),
                "certificate": host.as_ref().ok().and_then(|found| found.certificate.as_ref()).map(|it| json!({
                    "name": it.name,
                    "ends": it.ends,
                    "notes": it.notes,
                })),
            }));
        } else {
            print(&config, &path.display().to_string(), &host);
        }
        Ok(ExitCode::from(u8::from(host.is_err())))
    }
}

fn network(it: &Attachment) -> serde_json::Value {
    json!({"ind": it.ind.get(), "interface": it.interface, "address": it.address.to_string(), "mtu": it.mtu})
}

fn print(config: &Config, name: &str, host: &Result<Found, Vec<RunError>>) {
    output::print_line(format_args!(
        "{name} is valid: {} rules for networks, {} for ports, {} groups",
        config.networks.len(),
        config.monitors.len(),
        config.groups.len()
    ));
    match host {
        Ok(Found {
            networks,
            certificate,
        }) => {
            if let Some(it) = certificate {
                output::print_line(format_args!(
                    "  has the certificate of {}, until {}",
                    it.name, it.ends
                ));
                for note in &it.notes {
                    output::print_line(format_args!("weakness: {note}"));
                }
            }
            for it in networks {
                output::print_line(format_args!(
                    "  network {}: {} on {}, packets of {} bytes",
                    it.ind.get(),
                    it.address,
                    it.interface,
                    it.mtu
                ));
            }
            if networks.len() < 2 {
                output::print_line(
                    "weakness: this host is on one network, so nothing is redundant",
                );
            }
            output::print_line("this host can run it");
        }
        Err(errors) => {
            for error in errors {
                output::print_line(format_args!("this host cannot run it: {error}"));
            }
        }
    }
}
