//! `bumpless wan impair`: links of a network that is up that carry less than they might.

use std::process::ExitCode;

use bumpless_wan::emulation;
use bumpless_wan::{Impairment, LOSSES, RATE_MAX, millionths};
use clap::{ArgGroup, Args};
use serde_json::json;

use super::impairment::{told, words};
use super::links::{meant, refused};
use super::network::{Name, named};
use crate::output::{self, Outcome};

/// Make links lose packets at random, or carry at most so much a second, in each direction
///
/// What is given is all that is wrong with these links from here on: what is not given is taken back, and all of it by --none. Links
/// that are cut stay cut. What the kernel refuses of it changes none of them.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how").required(true).multiple(true))]
pub struct Impair {
    #[command(flatten)]
    name: Name,
    /// A node, with all of its links, or a link as NODE:NODE
    #[arg(required = true, value_name = "LINK-OR-NODE")]
    what: Vec<String>,
    /// Packets that are lost, of a hundred, in steps of 0.0001; not given: none
    #[arg(long, value_name = "PERCENT", group = "how", value_parser = percent)]
    loss_percent: Option<u32>,
    /// What passes at most, Mbit/s; of what is above it 50 ms wait, ten frames at least, and the rest is lost; not given: all
    #[arg(long, value_name = "MBIT", group = "how", value_parser = clap::value_parser!(u32).range(1..=i64::from(RATE_MAX)))]
    rate_mbit: Option<u32>,
    /// They carry everything that the machine does
    #[arg(long, group = "how", conflicts_with_all = ["loss_percent", "rate_mbit"])]
    none: bool,
    /// Print the result as JSON (schema bumpless.wan-impairment/1)
    #[arg(long)]
    pub json: bool,
}

/// Millionths of a share in percent.
fn percent(text: &str) -> Result<u32, String> {
    let share = text.parse().ok().and_then(millionths);
    share.ok_or_else(|| format!("it is {LOSSES}"))
}

impl Impair {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (running, topology) = self.name.running()?;
        let links = meant(&topology, &self.what)?;
        let impairment = Impairment {
            loss_millionths: self.loss_percent.unwrap_or(0),
            rate_mbit: self.rate_mbit,
        };
        emulation::impair(&running, &topology, &links, impairment)
            .map_err(|error| refused(&self.name, &error))?;
        let names: Vec<_> = links.iter().map(|&link| named(&topology, link)).collect();
        if self.json {
            let mut told = told(impairment);
            told["schema"] = json!("bumpless.wan-impairment/1");
            told["name"] = json!(self.name.name);
            told["links"] = json!(names);
            output::print_line(told);
        } else {
            output::print_line(format_args!("{}: {}", words(impairment), names.join(", ")));
        }
        Ok(ExitCode::SUCCESS)
    }
}
