//! Publishes one node of a pair as an edge node of MQTT Sparkplug B: role, redundancy, links, applications and counters,
//! and the inputs and outputs of each application as a device that lives where its process is in hand (spec/sparkplug.md).
//!
//! It is a process of its own beside the node and asks at the node's control socket as any other program may. The node
//! knows nothing of it and waits for nothing of it.
#![forbid(unsafe_code)]

mod broker;
mod look;
mod metrics;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_bridge::{Problem, Report};
use clap::Parser;

use broker::Way;
use run::Orders;

/// Nothing was done, since the arguments or the files are not right.
const WRONG: u8 = 2;
/// Ports of MQTT by TLS and without (IANA).
const PORTS: (u16, u16) = (8883, 1883);

/// Publishes a node of a Bumpless pair as an edge node of MQTT Sparkplug B
///
/// Runs until Ctrl-C. Exit status 2: arguments or files are wrong, and nothing was started.
#[derive(Parser)]
#[command(name = "bumpless-sparkplug", version)]
struct Cli {
    /// The node's control socket
    #[arg(long, value_name = "PATH")]
    control: PathBuf,
    /// The broker; port 8883, or 1883 with --insecure, if left out
    #[arg(long, value_name = "HOST[:PORT]")]
    broker: String,
    /// Sparkplug's group, such as the pair's name
    #[arg(long)]
    group: String,
    /// What the edge node is called, such as the node's name; different on the two nodes of a pair
    #[arg(long)]
    node: String,
    /// Certificate of the authority that has issued the broker's, PEM
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "insecure",
        conflicts_with = "insecure"
    )]
    ca: Option<PathBuf>,
    /// Certificate that the broker is shown, PEM
    #[arg(long, value_name = "FILE", requires = "key", requires = "ca")]
    certificate: Option<PathBuf>,
    /// Its key, PEM, mode 600
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// User at the broker
    #[arg(long, value_name = "NAME", requires = "password_file")]
    username: Option<String>,
    /// File with the user's password, mode 600
    #[arg(long, value_name = "FILE", requires = "username")]
    password_file: Option<PathBuf>,
    /// Without TLS: whoever is on the way reads all of it
    #[arg(long)]
    insecure: bool,
    /// Tell everything as JSON, a line each (bumpless.sparkplug/1)
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let report = Report {
        program: "bumpless-sparkplug",
        schema: "bumpless.sparkplug/1",
        json: cli.json,
    };
    start(cli, report).unwrap_or_else(|problems| {
        report.refuse(&problems);
        ExitCode::from(WRONG)
    })
}

fn start(cli: Cli, report: Report) -> Result<ExitCode, Vec<Problem>> {
    let orders = orders(cli)?;
    // One thread: a message gets its sequence number and its place in the queue without another between, so that none is
    // overtaken (Sparkplug 3.0, 6.4.2).
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        vec![Problem::new(
            error.to_string(),
            "free some memory or processes",
        )]
    })?;
    let ended = runtime.block_on(run::run(orders, report));
    // A connection that does not end is not waited for.
    runtime.shutdown_background();
    ended
}

/// What the bridge is ordered to do, if all of it is right.
fn orders(cli: Cli) -> Result<Orders, Vec<Problem>> {
    let mut problems = Vec::new();
    for (option, name) in [("--group", &cli.group), ("--node", &cli.node)] {
        if srad_types::utils::validate_name(name).is_err() || name.len() > 64 {
            problems.push(Problem::new(
                format!("{option} '{name}' cannot stand in a topic"),
                "give 1 to 64 characters without + / #",
            ));
        }
    }
    let usual = if cli.insecure { PORTS.1 } else { PORTS.0 };
    let place = place(&cli.broker, usual);
    if place.is_none() {
        problems.push(Problem::new(
            format!(
                "--broker '{}' is no name or address with a port",
                cli.broker
            ),
            "give one such as broker.example:8883, 192.0.2.1 or [2001:db8::1]:8883",
        ));
    }
    let (host, port) = place.unwrap_or_default();
    let broker = Way {
        host,
        port,
        authorities: cli.ca,
        own: cli.certificate.zip(cli.key),
        login: cli.username.zip(cli.password_file),
    };
    if problems.is_empty() || !broker.host.is_empty() {
        problems.extend(broker.options("check").err().into_iter().flatten());
    }
    match problems.is_empty() {
        true => Ok(Orders {
            control: cli.control,
            broker,
            group: cli.group,
            node: cli.node,
        }),
        false => Err(problems),
    }
}

/// Host and port; an address of IPv6 with a port stands in brackets.
fn place(text: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
        None if text.matches(':').count() > 1 => (text, None),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map_or(Some(usual), |port| port.parse().ok())?;
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let fine = !host.is_empty() && host.len() <= 253 && host.chars().all(named) && port != 0;
    fine.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(args: &[&str]) -> Result<Orders, String> {
        let all = [&["bumpless-sparkplug", "--control", "/c.sock"], args].concat();
        let cli = Cli::try_parse_from(all).map_err(|error| error.to_string())?;
        let lines = |problems: Vec<Problem>| problems.iter().map(|it| format!("{it}\n")).collect();
        orders(cli).map_err(lines)
    }

    #[test]
    fn all_that_is_wrong_with_the_arguments_is_told_at_once() {
        let wrong = judged(&[
            "--broker", "a:b", "--group", "a/b", "--node", "+", "--ca", "/nowhere",
        ])
        .unwrap_err();
        for part in ["--broker 'a:b'", "--group 'a/b'", "--node '+'"] {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
        let wrong = judged(&[
            "--broker",
            "a",
            "--group",
            "a",
            "--node",
            "b",
            "--ca",
            "/nowhere/ca.pem",
            "--certificate",
            "/nowhere/own.pem",
            "--key",
            "/nowhere/key.pem",
            "--username",
            "u",
            "--password-file",
            "/nowhere/p",
        ])
        .unwrap_err();
        for part in [
            "/nowhere/ca.pem",
            "/nowhere/own.pem",
            "/nowhere/key.pem",
            "/nowhere/p:",
        ] {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
    }

    #[test]
    fn security_is_given_up_in_so_many_words_only() {
        let usual = ["--broker", "a", "--group", "g", "--node", "n"];
        let neither = judged(&usual).unwrap_err();
        assert!(neither.contains("--ca"), "{neither}");
        let both = judged(&[&usual[..], &["--ca", "/f", "--insecure"]].concat()).unwrap_err();
        assert!(both.contains("cannot be used with"), "{both}");
        let open = judged(&[&usual[..], &["--insecure"]].concat()).unwrap();
        assert_eq!((open.broker.port, open.broker.authorities), (1883, None));
    }

    #[test]
    fn brokers_are_named_with_and_without_a_port() {
        let at = |text: &str| place(text, 8883);
        assert_eq!(at("broker"), Some(("broker".into(), 8883)));
        assert_eq!(at("10.0.0.1:1"), Some(("10.0.0.1".into(), 1)));
        assert_eq!(at("2001:db8::1"), Some(("2001:db8::1".into(), 8883)));
        assert_eq!(at("[2001:db8::1]"), Some(("2001:db8::1".into(), 8883)));
        assert_eq!(at("[2001:db8::1]:9"), Some(("2001:db8::1".into(), 9)));
        for wrong in [
            "", ":1", "a:", "a:0", "a:70000", "a b", "[::1]9", "mqtt://a",
        ] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
