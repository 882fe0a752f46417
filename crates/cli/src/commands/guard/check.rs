//! `bumpless guard check`: every error of a host's file at once, and what would keep this host from running it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bumpless_guard_daemon::{
    Config, Request, check_host, check_registration, flows_in_words, sample,
};
use bumpless_placement::{Advice, Found, Surroundings, Tree, advice, survey};
use clap::Args;
use serde_json::json;

use crate::output::{self, Outcome, placement, reception};

/// Check a host's file and print every error at once, with line and remedy; then what keeps this host from running it
///
/// A guard that runs with this file is no obstacle, and named. Exit status 0: it can run here. 1: the file is right, and something is
/// missing on this host. 2: the file is wrong.
#[derive(Debug, Args)]
pub struct Check {
    /// The host's file
    #[arg(required_unless_present = "sample")]
    config: Option<PathBuf>,
    /// Print a file in which every field is explained, and exit
    #[arg(long, conflicts_with_all = ["config", "json"])]
    sample: bool,
    /// Print the result as JSON (schema bumpless.guard.check/1)
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
        let running = running(&config, &path);
        let host = check_host(&config, running);
        let missing = host.iter().map(ToString::to_string);
        let registration = check_registration(&config, &path);
        let missing = missing.chain(registration.map(|it| it.to_string()));
        let missing: Vec<_> = missing.collect();
        match self.json {
            true => output::print_line(json!({
                "schema": "bumpless.guard.check/1",
                "ok": true,
                "problems": [],
                "flows": config.flows.len(),
                "packets_per_s": config.cost().budgets_per_s,
                "budgets_percent_of_processor": config.cost().budgets_percent(),
                "registered_percent_of_processor": config.registered_percent(),
                "cost": reception::json(&config.cost(), &config.costs()),
                "interfaces": seen(&config).iter().map(|(found, advice)| placement::json(found, advice)).collect::<Vec<_>>(),
                "runs_here": missing.is_empty(),
                "missing_here": missing,
                "running": running,
            })),
            false => print((&config, running), &path.display().to_string(), &missing),
        }
        Ok(ExitCode::from(u8::from(!missing.is_empty())))
    }
}

/// The process of the guard that runs on this host with the file at `path`.
fn running(config: &Config, path: &Path) -> Option<u32> {
    let status = super::local(config, path).ask(&Request::Status).ok()?;
    status["pid"].as_u64().and_then(|it| u32::try_from(it).ok())
}

/// The interfaces that are there, and what is to be said of their rings.
fn seen(config: &Config) -> Vec<(Found, Vec<Advice>)> {
    let with = Surroundings::with_ring(config.host.ring);
    let names = config.host.interfaces.iter();
    let found = names.map(|name| survey(&Tree::default(), name));
    let found = found.filter(|it| it.place.is_some() || it.ring.is_some());
    found
        .map(|it| {
            let advice = advice(&it, &with);
            (it, advice)
        })
        .collect()
}

fn print((config, running): (&Config, Option<u32>), name: &str, missing: &[String]) {
    output::print_line(format_args!(
        "{name} is valid: {} on {}",
        flows_in_words(config.flows.len()),
        config.host.interfaces.join(", ")
    ));
    let (load, costs) = (config.cost(), config.costs());
    load.lines(&costs).iter().for_each(output::print_line);
    output::print_line(reception::source(&costs));
    match &config.registration {
        None => output::print_line("programs may not register sockets of theirs"),
        Some(it) => output::print_line(format_args!(
            "programs of group {} may register {} sockets of theirs, whose packets take {} % of a processor besides",
            it.group, it.flows, it.processor_percent
        )),
    }
    for (found, advice) in seen(config) {
        placement::of_one(&found, &advice)
            .iter()
            .for_each(output::print_line);
    }
    for it in missing {
        output::print_line(format_args!("this host cannot run it: {it}"));
    }
    match running {
        _ if !missing.is_empty() => {}
        None => output::print_line("this host can run it"),
        Some(process) => output::print_line(format_args!(
            "this host can run it, and a guard runs with this file (process {process}): `bumpless guard reload` has it follow what was changed"
        )),
    }
}
