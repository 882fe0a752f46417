//! `bumpless iprp`: packets of unmodified programs over several networks at once.

mod check;
mod demo;
mod evaluate;
mod lab;
mod picture;
mod ping;
mod rates;
mod run;
mod show;
mod test;
mod torture;
mod tracert;

use std::net::IpAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bumpless_iprp_daemon::{Config, Request, Way, broadcast_on, is_own, socket_path};
use bumpless_node::key_file::folder_of;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::local::Local;
use crate::output::{Failure, Outcome};

/// How long a host that the daemon does not know has for showing itself.
const SHOW: Duration = Duration::from_secs(2);
/// Between two looks at whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// Protect any application's packets over several networks at once, without touching it
///
/// One daemon on each host; the ports that matter are named in its file. `bumpless iprp check --sample` prints a
/// file in which every field is explained.
#[derive(Debug, Args)]
pub struct Iprp {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Run(run::Run),
    Check(check::Check),
    Status(show::Status),
    Senders(show::Senders),
    Receivers(show::Receivers),
    Reload(show::Reload),
    Ping(ping::Ping),
    Tracert(tracert::Tracert),
    Test(test::Test),
    Demo(demo::Demo),
    Evaluate(evaluate::Evaluate),
    Torture(torture::Torture),
}

impl Iprp {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.action {
            Action::Run(command) => command.run(),
            Action::Check(command) => command.run(),
            Action::Status(command) => command.run(),
            Action::Senders(command) => command.run(),
            Action::Receivers(command) => command.run(),
            Action::Reload(command) => command.run(),
            Action::Ping(command) => command.run(),
            Action::Tracert(command) => command.run(),
            Action::Test(command) => command.run(),
            Action::Demo(command) => command.run(),
            Action::Evaluate(command) => command.run(),
            Action::Torture(command) => command.run(),
        }
    }
}

/// Reads and checks the file at `path`.
fn load(path: &Path, as_json: bool) -> Result<Config, Failure> {
    Config::load(path)
        .map_err(|problems| Failure::file(&problems, "bumpless.iprp.check/1", as_json))
}

/// The daemon of iPRP that runs on this host with `file`.
fn daemon(file: &Path, as_json: bool) -> Result<Local, Failure> {
    let socket = socket_path(&load(file, as_json)?, folder_of(Some(file)));
    Ok(Local::new(
        file,
        socket,
        "daemon of iPRP",
        "bumpless iprp run",
    ))
}

/// `host` as hosts know it, if it may be another host's address: one host's, and not this one's.
///
/// # Errors
/// Wrong usage.
fn another_host(host: IpAddr) -> Result<IpAddr, Failure> {
    // An address of IPv4 may be written as one of IPv6 (RFC 4291, 2.5.5.2).
    let host = host.to_canonical();
    if host.is_multicast() || host.is_unspecified() || host == IpAddr::from([255; 4]) {
        return Err(Failure::usage(format_args!(
            "{host} is not the address of one host: name one"
        )));
    }
    if let Some(interface) = broadcast_on(host) {
        return Err(Failure::usage(format_args!(
            "{host} stands for all hosts on the network of {interface}, and is not the address of one host: name one"
        )));
    }
    if is_own(host) {
        return Err(Failure::usage(format_args!(
            "{host} is this host's own address: give one of the other host's"
        )));
    }
    Ok(host)
}

/// Where `host` is reached on each network that both have. A host that is not known has some seconds for showing itself.
fn ways(daemon: &Local, host: IpAddr) -> Result<Vec<Way>, Failure> {
    let until = Instant::now() + SHOW;
    loop {
        let reply = daemon.ask(&Request::Ways { host })?;
        let ways: Vec<_> = reply["networks"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(way)
            .collect();
        if !ways.is_empty() {
            return Ok(ways);
        }
        if Instant::now() > until {
            return Err(Failure::refused(format_args!(
                "the daemon on this host knows of no daemon at {host}, which does not show itself: is `bumpless iprp run` \
                 running there, with the same key or a certificate of the same group and site, and does the network let UDP, and with \
                 certificates TCP, pass to its control port? `bumpless iprp status` says what is known. The hops to a host \
                 without iPRP are found by its address on each network, `--to IND=ADDRESS`"
            )));
        }
        thread::sleep(LOOK);
    }
}

fn way(it: &Value) -> Option<Way> {
    let address = |name: &str| it[name].as_str()?.parse().ok();
    Some(Way {
        ind: u8::try_from(it["ind"].as_u64()?).ok()?,
        interface: it["interface"].as_str()?.to_owned(),
        from: address("from")?,
        to: address("to")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_other_host_s_address_is_refused_with_the_reason() {
        let refused = |host: &str, words: &str| {
            let failure = another_host(host.parse().unwrap()).unwrap_err();
            let said = failure.lines().join("\n");
            assert!(said.contains(host) && said.contains(words), "{said}");
        };
        for host in ["0.0.0.0", "::", "224.0.0.5", "ff02::1", "255.255.255.255"] {
            refused(host, "not the address of one host");
        }
        refused("127.0.0.1", "own address");
        refused("::1", "own address");
        let mapped = another_host("::ffff:127.0.0.1".parse().unwrap()).unwrap_err();
        assert!(
            mapped
                .lines()
                .join("\n")
                .contains("127.0.0.1 is this host's own")
        );
        assert!(another_host("::ffff:224.0.0.5".parse().unwrap()).is_err());
        // For documentation: no host has it (RFC 5737).
        let another = IpAddr::from([192, 0, 2, 1]);
        for written in ["192.0.2.1", "::ffff:192.0.2.1"] {
            assert_eq!(another_host(written.parse().unwrap()).unwrap(), another);
        }
    }
}
