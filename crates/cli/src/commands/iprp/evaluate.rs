//! `bumpless iprp evaluate`: the paper's tables and figure, measured here.

use std::time::Duration;

use bumpless_lab::iprp::evaluate::{Plan, evaluate};
use clap::Args;

use super::lab::{self, Form, Kept};
use crate::output::Outcome;

/// Measure losses, delays and cost as the paper does (its tables III and IV, figure 5), with its figures beside
///
/// Two hosts in namespaces of this machine, networks that lose and delay as table II says, a daemon on each host, ordinary programs
/// with datagrams of 280 bytes every 20 ms. Several flows at once shorten the time. Then networks are cut under a stream, a TCP connection
/// and a stream in standby. Needs root or user namespaces, and iproute2. Exit status 0 only if every scenario's losses lie within the 99 %
/// confidence interval of the product of the networks' losses, delays are those of first copies, no cut is felt, and programs of others
/// miss no packet of which a copy came; 130 if it was ended early, of which nothing is kept.
#[derive(Debug, Args)]
pub struct Evaluate {
    /// Measure this scenario only (may be given several times)
    #[arg(long = "scenario", value_name = "N", value_parser = clap::value_parser!(u8).range(0..=5))]
    scenarios: Vec<u8>,
    /// Flows at once
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=40))]
    flows: u8,
    /// How long each scenario takes, seconds
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// How long each cell of the table of cost takes, seconds; 0: leave it out
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(0..=60))]
    cost_seconds: u64,
    /// Measure the cost of so many sessions at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=20))]
    cost_sessions: u8,
    /// How often a network is cut under a stream and under a TCP connection, 8 to 50 times, and a quarter as often in standby; 0: leave
    /// them out
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = cuts)]
    cuts: u8,
    /// How long each program of others runs (iperf3, RTP of GStreamer, C37.118, Modbus TCP, a multicast stream), seconds; 0: leave them out
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=600))]
    traffic_seconds: u64,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    form: Form,
}

/// Fewer than that tell nothing by their ranks; of more they are not counted exactly.
fn cuts(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(count @ (0 | 8..=50)) => Ok(count),
        _ => Err("it is 8 to 50, or 0".to_owned()),
    }
}

impl Evaluate {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        self.form.tell(|means| {
            let plan = Plan {
                binary: means.binary,
                scenarios: self.scenarios.iter().copied().map(usize::from).collect(),
                flows: self.flows.into(),
                length: Duration::from_secs(self.seconds),
                cpu_sessions: (self.cost_seconds > 0).then_some(self.cost_sessions.into()),
                cpu_length: Duration::from_secs(self.cost_seconds),
                cuts: (self.cuts > 0).then_some(self.cuts.into()),
                traffic_length: (self.traffic_seconds > 0)
                    .then(|| Duration::from_secs(self.traffic_seconds)),
                seed: self.kept.seed,
                output: self.kept.output.clone(),
                stop: means.stop,
            };
            let evaluated = evaluate(&plan).map_err(lab::failed)?;
            Ok(lab::Result {
                json: evaluated.json,
                text: evaluated.text,
                failure: evaluated.output_failure,
                held: evaluated.held,
                ended_early: false,
            })
        })
    }
}
