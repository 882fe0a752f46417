//! `bumpless iprp ping`: loss and round trip to another host, network by network.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use bumpless_iprp_daemon::Request;
use clap::Args;
use serde_json::Value;

use super::{another_host, daemon};
use crate::output::{self, Failure, Outcome};

/// Between two looks at what has come.
const LOOK: Duration = Duration::from_millis(50);

/// Measure loss and round trip to a host that runs iPRP, on each network
///
/// Exit status 1 if the host does not answer on some network.
#[derive(Debug, Args)]
pub struct Ping {
    /// The file of this host, whose daemon sends the probes
    config: PathBuf,
    /// An address of the other host
    host: IpAddr,
    /// Rounds; each has a probe on every network
    #[arg(long, short, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    count: u32,
    /// Milliseconds between two rounds
    #[arg(long, short, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    every: u32,
    /// Print the result as JSON (schema bumpless.iprp.ping/1)
    #[arg(long)]
    json: bool,
}

impl Ping {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let host = another_host(self.host)?;
        let daemon = daemon(&self.config, self.json)?;
        let begun = daemon.ask(&Request::Ping {
            host,
            count: self.count,
            every_ms: self.every,
        })?;
        let id = begun["id"].as_u64().and_then(|id| u32::try_from(id).ok());
        let id = id.ok_or_else(|| {
            Failure::refused("the daemon is of another version: run the same release")
        })?;
        let mut told = Vec::new();
        let result = loop {
            thread::sleep(LOOK);
            let result = daemon.ask(&Request::PingResult { id })?;
            if !self.json {
                print_new(&result, &mut told);
            }
            if result["ended"] == true {
                break result;
            }
        };
        if let Some(trouble) = result["trouble"].as_str() {
            return Err(Failure::refused(trouble));
        }
        match self.json {
            true => output::print_line(&result),
            false => print_sum(&result),
        }
        let networks = list(&result["networks"]);
        let dead = networks.iter().any(|it| it["answered"] == 0);
        Ok(ExitCode::from(u8::from(dead)))
    }
}

/// Prints the answers that have come since the last look; `told` has how many were, by network.
fn print_new(result: &Value, told: &mut Vec<usize>) {
    for (at, network) in list(&result["networks"]).iter().enumerate() {
        if told.len() <= at {
            told.push(0);
        }
        let trips = list(&network["round_trips_us"]);
        for trip in trips.iter().skip(told[at]) {
            output::print_line(format_args!(
                "network {} to {}: {:.0} us",
                network["ind"],
                network["to"].as_str().unwrap_or("?"),
                trip.as_f64().unwrap_or_default()
            ));
        }
        told[at] = trips.len();
    }
}

fn print_sum(result: &Value) {
    let us = |value: &Value| {
        value
            .as_f64()
            .map_or("-".to_owned(), |us| format!("{us:.0}"))
    };
    for network in list(&result["networks"]) {
        output::print_line(format_args!(
            "network {}: {} sent, {} lost; round trip least {}, median {}, most {} us",
            network["ind"],
            network["sent"],
            network["lost"],
            us(&network["least_us"]),
            us(&network["median_us"]),
            us(&network["most_us"])
        ));
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
