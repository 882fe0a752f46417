//! `bumpless status`: what a running node says of itself.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_base::Counter;
use bumpless_node::control::{Request, Station};
use clap::Args;
use serde_json::Value;

use crate::output::{self, Failure, Outcome};

/// Show role, redundancy, weaknesses, transfers, links and counters of a running node
///
/// Exit status 1 if redundancy is lost or the node does not answer.
#[derive(Debug, Args)]
pub struct Status {
    /// The pair's configuration file
    config: PathBuf,
    /// The node on this computer
    #[arg(long, value_name = "NAME")]
    node: String,
    /// Show counters that are zero, too, and what each of them counts
    #[arg(long)]
    all: bool,
    /// Print JSON (schema bumpless.status/1)
    #[arg(long)]
    json: bool,
}

impl Status {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let config = output::load(&self.config, self.json)?;
        let node = Station::of(&config, output::find_node(&config, &self.node)?);
        let status = node.request(&Request::Status).map_err(Failure::refused)?;
        if self.json {
            output::print_line(&status);
        } else {
            self.print(&status);
        }
        let lost = list(&status["groups"])
            .iter()
            .any(|group| group["redundancy"] == "lost");
        Ok(ExitCode::from(u8::from(lost)))
    }

    fn print(&self, status: &Value) {
        output::print_line(format_args!(
            "{} of pair {}, process {}, up {:.0} s",
            text(&status["node"]),
            text(&status["pair"]),
            status["pid"],
            number(&status["uptime_s"])
        ));
        if let Some(change) = status["configuration"]["change"].as_str() {
            output::print_line(format_args!("  change of the configuration: {change}"));
        }
        let applications = list(&status["applications"]);
        for group in list(&status["groups"]) {
            print_group(group, silent_field(applications, group));
        }
        list(&status["applications"])
            .iter()
            .for_each(print_application);
        list(&status["links"]).iter().for_each(print_link);
        list(&status["sessions"]).iter().for_each(print_session);
        print_key_service(&status["key_servers"]);
        print_counters(status, self.all);
        for weakness in list(&status["weaknesses"]) {
            output::print_line(format_args!("  weakness: {}", text(weakness)));
        }
    }
}

/// The field device of the group that does not answer the node, if there is one.
fn silent_field<'a>(applications: &'a [Value], group: &Value) -> Option<&'a str> {
    let of_group = applications
        .iter()
        .filter(|app| app["group"] == group["name"]);
    let mut silent = of_group.filter(|app| app["field"]["answers"] == false);
    silent.next()?["field"]["address"].as_str()
}

fn print_group(group: &Value, silent_field: Option<&str>) {
    let writes = match (group["writes_outputs"] == true, silent_field) {
        (true, None) => "writes outputs".to_owned(),
        (true, Some(address)) => {
            format!("may write outputs, and field device {address} does not answer")
        }
        (false, None) => "does not write outputs".to_owned(),
        (false, Some(address)) => {
            format!("does not write outputs, and field device {address} does not answer")
        }
    };
    output::print_line(format_args!(
        "  group {}: {} in epoch {}, {}; redundancy {}{}",
        text(&group["name"]),
        text(&group["role"]),
        group["epoch"],
        writes,
        text(&group["redundancy"]),
        because(&group["cause"]),
    ));
    output::print_line(format_args!(
        "    partner {}: {}; reference point {}; in this role for {:.1} s{}",
        text(&group["partner"]),
        if group["partner_heard"] == true {
            "heard"
        } else {
            "not heard"
        },
        group["reference"].as_str().unwrap_or("none agreed"),
        number(&group["last_change"]["ago_s"]),
        because(&group["last_change"]["cause"]),
    ));
}

fn print_application(app: &Value) {
    let milliseconds = |value: &Value| {
        value
            .as_f64()
            .map_or("-".to_owned(), |ms| format!("{ms:.3} ms"))
    };
    output::print_line(format_args!(
        "  application {}: channel {}, every {} ms; states sent {} safe, {} failed, last {}, slowest {}; received age {}",
        text(&app["name"]),
        app["channel"],
        app["period_ms"],
        app["transfers_safe"],
        app["transfers_failed"],
        milliseconds(&app["last_transfer_ms"]),
        milliseconds(&app["slowest_transfer_ms"]),
        milliseconds(&app["received_age_ms"]),
    ));
}

fn print_link(link: &Value) {
    let trip = link["round_trip_us"]
        .as_f64()
        .map_or(String::new(), |us| format!(", round trip {us:.0} us"));
    let dropped = link["receive_drops"].as_u64().filter(|&count| count > 0);
    let dropped = dropped.map_or(String::new(), |count| {
        format!(", {count} datagrams of the network dropped by the kernel")
    });
    let failure = &link["last_send_failure"];
    let refused = link["send_failures"].as_u64().filter(|&count| count > 0);
    let refused = refused.map_or(String::new(), |count| {
        format!(
            ", {count} datagrams of the network not taken by the kernel (last {:.1} s ago: {})",
            number(&failure["ago_s"]),
            text(&failure["cause"]),
        )
    });
    output::print_line(format_args!(
        "  network {} to {}: {}{trip}{dropped}{refused}",
        text(&link["network"]),
        text(&link["partner"]),
        if link["up"] == true { "up" } else { "down" },
    ));
}

/// Where keys come from, and how long they last.
fn print_key_service(service: &Value) {
    if service.is_null() {
        return;
    }
    let from = service["server"].as_str().unwrap_or("nobody at present");
    match (service["key"].as_str(), service["ends_in_s"].as_f64()) {
        (Some(key), Some(left)) => output::print_line(format_args!(
            "  keys from {from}: {key} seals, number {}; those that are here last for {left:.0} s without a server",
            service["number"]
        )),
        _ => output::print_line(format_args!("  keys from {from}: none")),
    }
}

fn print_session(session: &Value) {
    let stands = match (session["connected"] == true, session["has_key"] == true) {
        (true, _) => "connected",
        (false, true) => "not connected, its last key goes on",
        (false, false) => "not connected, no key",
    };
    let agreed = session["keys_agreed"].as_u64().unwrap_or_default();
    let keys = if agreed == 1 { "key" } else { "keys" };
    output::print_line(format_args!(
        "  session with {}: {stands}; {agreed} {keys} agreed on",
        text(&session["with"]),
    ));
}

fn print_counters(status: &Value, all: bool) {
    for line in counters(status, all) {
        output::print_line(format_args!("  {line}"));
    }
}

/// Those that are not zero, four in a line; or all of them, each with its unit and what it says.
fn counters(status: &Value, all: bool) -> Vec<String> {
    let counters = status["counters"].as_object().into_iter().flatten();
    if all {
        return counters
            .map(|(name, value)| explained(name, value))
            .collect();
    }
    let counted = counters.filter(|(_, value)| **value != 0);
    let counted: Vec<_> = counted
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    counted.chunks(4).map(|line| line.join(", ")).collect()
}

fn explained(name: &str, value: &Value) -> String {
    // A node of another version may have counters that are not known here.
    match Counter::ALL.iter().find(|known| known.name() == name) {
        Some(known) => format!("{name} {value} {}: {}", known.unit(), known.help()),
        None => format!("{name} {value}"),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn because(cause: &Value) -> String {
    match cause.as_str() {
        Some(cause) if !cause.is_empty() => format!(" ({cause})"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_counter_counts_is_told_with_all_of_them() {
        let status = json!({"counters": {
            "bytes_sent": 7, "send_failures": 0, "of_another_version": 1
        }});
        assert_eq!(
            counters(&status, false),
            ["bytes_sent 7, of_another_version 1"]
        );
        let all = counters(&status, true);
        assert_eq!(all.len(), 3);
        let has = |line: &str| assert!(all.iter().any(|it| it == line), "{line}: {all:?}");
        has("bytes_sent 7 bytes: UDP payload bytes handed to the kernel on any link.");
        has("of_another_version 1");
    }
}
