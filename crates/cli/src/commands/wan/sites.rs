//! `bumpless wan sites`: a pair across sites of the network, of which one ends again and again.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use bumpless_base::Duration;
use bumpless_lab::sites::{Ending, Sites, SitesOptions, SitesResult, run_sites};
use bumpless_wan::Topology;
use bumpless_wan::emulation::Place;
use clap::Args;

use super::Network;
use super::kept::{self, Keeping};
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// End sites of a pair that is spread over the network, again and again, and judge it by what the field device saw
///
/// Two controllers in the control centres, a witness and a field device in substations, each a process of its own, with the times
/// that the plan has for the distance. No output of two writers or of an older state may be accepted, and none may be missing for
/// longer than the plan says (spec/wan.md, U-70 and further). It takes root, and leaves nothing. Exit status 0: every site ended and no
/// promise was broken. 1: one was, or the plan has no times for the distance. 2: wrong usage, places among it. 130: ended early.
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    network: Network,
    /// Name of the network meanwhile
    #[arg(long, default_value = "sites")]
    name: String,
    /// Where everybody is, any of left=SITE,right=SITE,witness=SITE,field=SITE; the others are in control centres and substations
    #[arg(long, value_name = "NAME=SITE", value_delimiter = ',', value_parser = assignment)]
    sites: Vec<(String, String)>,
    /// How many sites end
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    failures: u32,
    /// Only these ends, in turn: primary-killed, primary-cut, ordered, backup-killed, backup-cut
    #[arg(long, value_name = "END", value_delimiter = ',', value_parser = ending)]
    endings: Vec<Ending>,
    /// Between two heartbeats
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = millis)]
    heartbeat_ms: f64,
    /// Between two cycles, unless the distance asks for more
    #[arg(long, value_name = "MS", default_value_t = 20.0, value_parser = millis)]
    period_ms: f64,
    /// The lease, if the plan asks for none that is longer
    #[arg(long, value_name = "MS", value_parser = millis)]
    lease_ms: Option<f64>,
    /// What all chance is drawn from; the time if left out
    #[arg(long)]
    seed: Option<u64>,
    /// Write sites.json and table.txt into this directory
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// End nothing: show a kept sites.json again
    #[arg(long, value_name = "FILE")]
    show: Option<PathBuf>,
    /// Print the result as JSON (schema bumpless.wan-sites/1)
    #[arg(long)]
    pub json: bool,
}

/// One of `--sites`.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name @ ("left" | "right" | "witness" | "field"), site)) => {
            Ok((name.into(), site.into()))
        }
        _ => Err("write left=SITE, right=SITE, witness=SITE or field=SITE".to_owned()),
    }
}

fn ending(text: &str) -> Result<Ending, String> {
    Ending::named(text).ok_or_else(|| format!("give {}", Ending::ALL.map(Ending::name).join(", ")))
}

/// Milliseconds.
pub fn millis(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ms) if (1.0..=10_000.0).contains(&ms) => Ok(ms),
        _ => Err("give milliseconds from 1 to 10000".to_owned()),
    }
}

/// So many milliseconds.
pub fn span(ms: f64) -> Duration {
    Duration::from_nanos((ms * 1e6) as u64)
}

/// Where everybody is on this network, those that are given and the others.
pub fn placed(topology: &Topology, given: &[(String, String)]) -> Result<Sites, Failure> {
    let mut sites = Sites::of(topology).map_err(Failure::usage)?;
    for (at, (name, site)) in given.iter().enumerate() {
        if given[..at].iter().any(|(known, _)| known == name) {
            return Err(Failure::usage(format_args!(
                "--sites: {name} is given twice; say once where it is"
            )));
        }
        let place = match name.as_str() {
            "left" => &mut sites.nodes[0],
            "right" => &mut sites.nodes[1],
            "witness" => &mut sites.witness,
            _ => &mut sites.field,
        };
        place.clone_from(site);
    }
    sites.check(topology).map_err(Failure::usage)?;
    Ok(sites)
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let keeping = Keeping {
            output: self.output.as_deref(),
            show: self.show.as_deref(),
            json: self.json,
        };
        kept::run(keeping, || self.end_sites())
    }

    fn end_sites(&self) -> Result<SitesResult, Failure> {
        kept::without_pool(&self.network, "the pair has")?;
        let topology = self.network.topology()?;
        let sites = placed(&topology, &self.sites)?;
        let options = SitesOptions {
            binary: env::current_exe().map_err(Failure::refused)?,
            place: Place::new(&self.name).map_err(Failure::usage)?,
            topology,
            sites,
            heartbeat: span(self.heartbeat_ms),
            period: span(self.period_ms),
            lease: self.lease_ms.map(span),
            failures: self.failures,
            endings: match self.endings.is_empty() {
                true => Ending::ALL.to_vec(),
                false => self.endings.clone(),
            },
            seed: self.seed.unwrap_or_else(kept::time_as_seed),
            stop: Arc::clone(&stop::stop_flag()?),
        };
        // A line for each tenth.
        let tell = |done: usize, of: usize| {
            if done * 10 / of > (done - 1) * 10 / of {
                output::warn(format_args!("{done} of {of} sites have ended"));
            }
        };
        run_sites(&options, &tell).map_err(Failure::refused)
    }
}
