//! `bumpless iprp tracert`: the hops to another host, network by network.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_base::Duration;
use bumpless_config::Problem;
use bumpless_iprp_daemon::{
    Attachment, Hop, RouteLimits, Traced, Way, own_networks, trace, traced_json,
};
use clap::{ArgGroup, Args};

use super::{another_host, daemon, load, ways};
use crate::output::{self, Failure, Outcome};

/// Show the hops to a host on each network
///
/// UDP probes with more and more hops to live leave from this host's address on each network, on its interface; routers and the
/// host answer by ICMP. It takes no rights. Exit status 1 if the host was not reached on some network.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("whom").required(true).args(["host", "to"])))]
pub struct Tracert {
    /// The file of this host
    config: PathBuf,
    /// An address of the other host, whose addresses on each network the daemon knows
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
            Some(host) => {
                let host = another_host(host)?;
                ways(&daemon(&self.config, self.json)?, host)?
            }
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
        let to = once_each(&self.to)?;
        let own = own_networks(&config, &self.config.display().to_string());
        let own = own.map_err(|problems| on_no_network(&to, &problems))?;
        to.iter().map(|to| way(&own, *to)).collect()
    }
}

/// Each network is asked for once, each time a host on it.
fn once_each(all: &[(u8, IpAddr)]) -> Result<Vec<(u8, IpAddr)>, Failure> {
    let one = |(place, (ind, to)): (usize, &(u8, IpAddr))| {
        let before = all.iter().take(place).find(|it| it.0 == *ind);
        if let Some((_, before)) = before {
            return Err(Failure::usage(format_args!(
                "--to {ind}={to}: {before} was given for network {ind} already; give each network once"
            )));
        }
        Ok((*ind, another_host(*to)?))
    };
    all.iter().enumerate().map(one).collect()
}

/// The file is right, and says of no address of this host on which network it is.
fn on_no_network(to: &[(u8, IpAddr)], problems: &[Problem]) -> Failure {
    let asked: Vec<_> = to
        .iter()
        .map(|(ind, to)| format!("--to {ind}={to}"))
        .collect();
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    Failure::usage(format_args!(
        "{}: it is not known on which networks this host is:\n{}",
        asked.join(" "),
        problems.join("\n")
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_no_host_is_told_of_both_ways() {
        let parsed = |more: &[&str]| {
            let all = [&["tracert", "host.toml"], more].concat();
            let command = Tracert::augment_args(clap::Command::new("tracert"));
            let parsed = command.try_get_matches_from(all);
            parsed.map(drop).map_err(|error| error.to_string())
        };
        let missing = parsed(&[]).unwrap_err();
        assert!(
            missing.contains("HOST") && missing.contains("--to"),
            "{missing}"
        );
        assert!(parsed(&["10.0.0.1", "--to", "10=10.0.0.2"]).is_err());
        parsed(&["10.0.0.1"]).unwrap();
        parsed(&["--to", "10=10.0.0.2", "--to", "11=10.0.1.2"]).unwrap();
    }

    #[test]
    fn each_network_is_given_once_and_a_host_on_it() {
        let asked = |all: &[&str]| {
            let all: Vec<_> = all.iter().map(|it| on_network(it).unwrap()).collect();
            once_each(&all).map_err(|failure| failure.lines().join("\n"))
        };
        let refused = asked(&["10=203.0.113.1", "11=203.0.113.2", "10=203.0.113.3"]).unwrap_err();
        assert!(
            refused.contains("--to 10=203.0.113.3: 203.0.113.1 was"),
            "{refused}"
        );
        assert!(asked(&["10=224.0.0.5"]).unwrap_err().contains("224.0.0.5"));
        asked(&["10=203.0.113.1", "11=203.0.113.1"]).unwrap();
    }

    #[test]
    fn a_host_on_no_network_is_no_wrong_file() {
        let problem = Problem {
            file: "host.toml".into(),
            line: 3,
            field: "network".into(),
            wrong: "none of the rules matches".into(),
            right: "name another prefix".into(),
        };
        let failure = on_no_network(&[on_network("10=192.0.2.1").unwrap()], &[problem]);
        let json = failure.in_json(true).as_json();
        let said = json["error"].as_str().unwrap();
        assert_eq!(json["schema"], "bumpless.error/1");
        assert!(said.contains("--to 10=192.0.2.1") && said.contains("none of the rules"));
        assert!(!said.contains("problem in the configuration"), "{said}");
    }
}
