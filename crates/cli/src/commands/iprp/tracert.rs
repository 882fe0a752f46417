//! `bumpless iprp tracert`: the hops to another host, network by network.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_base::Duration;
use bumpless_iprp_daemon::{
    Attachment, Hop, RouteLimits, Traced, Way, own_networks, trace, traced_json,
};
use clap::Args;

use super::{daemon, load, ways};
use crate::output::{self, Failure, Outcome};

/// Show the hops to a host on each network
///
/// UDP probes with more and more hops to live leave from this host's address on each network, on its interface; routers and the
/// host answer by ICMP. It takes no rights. Exit status 1 if the host was not reached on some network.
#[derive(Debug, Args)]
pub struct Tracert {
    /// The file of this host
    config: PathBuf,
    /// An address of the other host, whose addresses on each network the daemon knows
    #[arg(required_unless_present = "to", conflicts_with = "to")]
    host: Option<IpAddr>,
    /// The host's address on the network IND, for a host without iPRP; once for each network
    #[arg(long, value_name = "IND=ADDRESS", value_parser = on_network)]
    to: Vec<(u8, IpAddr)>,
    /// Most hops
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u8).range(1..=64))]
    hops: u8,
    /// Probes for each hop
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=10))]
    probes: u8,
    /// Milliseconds for which a hop's answers are waited for
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=5000))]
    wait: u32,
    /// Print the result as JSON (schema bumpless.iprp.tracert/1)
    #[arg(long)]
    json: bool,
}

fn on_network(text: &str) -> Result<(u8, IpAddr), String> {
    let parsed = text.split_once('=');
    let parsed = parsed.and_then(|(ind, to)| Some((ind.parse().ok()?, to.parse().ok()?)));
    parsed.ok_or_else(|| "give a network's ind and an address, as in 10=192.168.1.2".to_owned())
}

impl Tracert {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let ways = match self.host {
            Some(host) => ways(&daemon(&self.config, self.json)?, host)?,
            None => self.given_ways()?,
        };
        let limits = RouteLimits {
            hops: self.hops,
            probes: self.probes,
            wait: Duration::from_millis(u64::from(self.wait)),
        };
        let found = trace(ways, limits).map_err(Failure::refused)?;
        match self.json {
            true => output::print_line(traced_json(&found)),
            false => found.iter().for_each(print),
        }
        let reached = found.iter().all(Traced::is_reached);
        Ok(ExitCode::from(u8::from(!reached)))
    }

    fn given_ways(&self) -> Result<Vec<Way>, Failure> {
        let config = load(&self.config, self.json)?;
        let own = own_networks(&config, &self.config.display().to_string());
        let own = own.map_err(|all| Failure::file(&all, "bumpless.iprp.check/1", self.json))?;
        self.to.iter().map(|to| way(&own, *to)).collect()
    }
}

fn way(own: &[Attachment], (ind, to): (u8, IpAddr)) -> Result<Way, Failure> {
    let found = own.iter().find(|it| it.ind.get() == ind).ok_or_else(|| {
        let all: Vec<_> = own.iter().map(|it| it.ind.get().to_string()).collect();
        let all = all.join(", ");
        Failure::usage(format_args!(
            "--to {ind}={to}: this host is not on network {ind}; it is on {all}"
        ))
    })?;
    if found.address.is_ipv4() != to.is_ipv4() {
        return Err(Failure::usage(format_args!(
            "--to {ind}={to}: this host's address on network {ind} is {}; give one of the same version of IP",
            found.address
        )));
    }
    Ok(Way {
        ind,
        interface: found.interface.clone(),
        from: found.address,
        to,
    })
}

fn print(it: &Traced) {
    let Way {
        ind,
        interface,
        from,
        to,
    } = &it.way;
    output::print_line(format_args!("network {ind}: {from} on {interface} to {to}"));
    for hop in &it.hops {
        output::print_line(format_args!("  {:>2}  {}", hop.number, answers(hop)));
    }
    output::print_line(format_args!("  {}", it.words()));
}

/// Who answered, each once with its round trips; a star for each probe without an answer.
fn answers(hop: &Hop) -> String {
    let mut text = Vec::new();
    let mut before = None;
    for (from, trip) in &hop.answers {
        if before != Some(from) {
            text.push(from.to_string());
            before = Some(from);
        }
        text.push(format!("{:.0} us", trip.as_nanos() as f64 / 1e3));
    }
    let lost = usize::from(hop.sent).saturating_sub(hop.answers.len());
    text.extend((0..lost).map(|_| "*".to_owned()));
    text.join("  ")
}
