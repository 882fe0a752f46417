//! `bumpless wan script`: outages and impairments of a network that is up, by script.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use bumpless_wan::emulation::{self, Played};
use bumpless_wan::{Script as Outages, Step, Topology};
use clap::Args;
use serde_json::{Value, json};

use super::impairment::{told, words};
use super::links::refused;
use super::network::{Name, named};
use super::{listed, read};
use crate::output::{self, Failure, INTERRUPTED, Outcome};
use crate::stop;

/// Cut, heal and impair links as a script says, and tell each step when it is done
///
/// The script is JSON (schema bumpless.wan-script/1), times in seconds from the beginning; links and nodes are named as for `cut`:
///
/// {"schema": "bumpless.wan-script/1", "outages": [{"at_s": 10, "for_s": 15, "what": ["b01a", "b02a:b02b"]}],
///  "impairments": [{"at_s": 30, "for_s": 60, "what": ["s01-1-1"], "loss_percent": 0.5, "rate_mbit": 10}]}
///
/// It takes root, and ends with the last of them; Ctrl-C ends it earlier, and what it has cut and impaired is as before. Links that
/// are cut when it begins stay so.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Script {
    #[command(flatten)]
    name: Name,
    /// The script
    file: PathBuf,
    /// Print the result as JSON (schema bumpless.wan-script-result/1)
    #[arg(long)]
    pub json: bool,
}

impl Script {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let text = read(&self.file).map_err(Failure::usage)?;
        let (running, topology) = self.name.running()?;
        let mut script = Outages::from_json(&text, &topology)
            .map_err(|wrong| Failure::usage(listed(&self.file.display().to_string(), &wrong)))?;
        let refused = |error: io::Error| refused(&self.name, &error);
        let before = emulation::outages(&running, &topology).map_err(refused)?;
        script.without(&before);
        if !before.is_empty() {
            let before = names(&topology, &before);
            output::warn(format_args!(
                "cut already, and left so: {}",
                before.join(", ")
            ));
        }
        let stop = stop::stop_flag()?;
        let played = emulation::play(
            (&running, &topology),
            &script,
            &|| stop.load(Ordering::Relaxed),
            |step| {
                if !self.json {
                    output::print_line(step_told(&topology, step));
                }
            },
        );
        let played = played.map_err(refused)?;
        if self.json {
            output::print_line(self.result(&topology, &script, &played));
        } else if !played.complete {
            output::print_line("stopped; what it had cut and impaired is as before");
        }
        Ok(match played.complete {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(INTERRUPTED),
        })
    }

    fn result(&self, topology: &Topology, script: &Outages, played: &Played) -> Value {
        let steps = script.steps().iter().zip(&played.done).map(|(step, done)| {
            json!({
                "due_s": step.at.as_secs_f64(),
                "done_s": done.as_secs_f64(),
                "cut": names(topology, &step.cut),
                "whole": names(topology, &step.heal),
                "impaired": impaired(topology, step),
                "as_before": names(topology, &as_before(step)),
            })
        });
        json!({
            "schema": "bumpless.wan-script-result/1",
            "name": self.name.name,
            "complete": played.complete,
            "steps": steps.collect::<Vec<_>>(),
        })
    }
}

fn names(topology: &Topology, links: &[usize]) -> Vec<String> {
    links.iter().map(|&link| named(topology, link)).collect()
}

/// Links that are impaired from a step on, and how, for programs.
fn impaired(topology: &Topology, step: &Step) -> Vec<Value> {
    let impaired = step.impair.iter().filter_map(|&(link, impairment)| {
        let mut told = told(impairment?);
        told["link"] = json!(named(topology, link));
        Some(told)
    });
    impaired.collect()
}

/// Links that are impaired from a step on as they were before the script.
fn as_before(step: &Step) -> Vec<usize> {
    let back = step.impair.iter().filter(|(_, it)| it.is_none());
    back.map(|(link, _)| *link).collect()
}

fn step_told(topology: &Topology, step: &Step) -> String {
    let part = |what: &str, links: &[usize]| match links {
        [] => String::new(),
        links => format!("; {what}: {}", names(topology, links).join(", ")),
    };
    let impaired = step.impair.iter().filter_map(|&(link, impairment)| {
        let name = named(topology, link);
        Some(format!("; {name} {}", words(impairment?)))
    });
    format!(
        "{:.3} s{}{}{}{}",
        step.at.as_secs_f64(),
        part("cut", &step.cut),
        part("whole", &step.heal),
        impaired.collect::<String>(),
        part("impaired as before", &as_before(step)),
    )
}
