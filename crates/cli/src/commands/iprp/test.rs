//! `bumpless iprp test`: a bounded stream between two hosts, and what came of it on each network.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bumpless_iprp_daemon::{
    COUNT_MAX, Came, Carried, Config, Heard, LEN_MAX, LEN_MIN, ListenPlan, Report, Request,
    SendPlan, Sent, listen, send,
};
use clap::Args;
use serde_json::{Value, json};

use super::daemon;
use crate::output::{self, Failure, INTERRUPTED, Outcome};
use crate::stop;

/// UDP's protocol number.
const UDP: u8 = 17;
/// Longest stream.
const LONGEST_S: u32 = 600;

/// Send a bounded stream to another host as any application would, and show what came of it on each network
///
/// On the other host: `bumpless iprp test CONFIG --listen --port PORT`; here: `bumpless iprp test CONFIG HOST --port PORT`. The port
/// is one that the other host's file monitors and that no application has. Exit status 1 if something was lost or doubled, or what
/// came is not known.
#[derive(Debug, Args)]
pub struct Test {
    /// The file of this host
    config: PathBuf,
    /// An address of the other host
    #[arg(required_unless_present = "listen", conflicts_with = "listen")]
    host: Option<IpAddr>,
    /// Be the other host: take one stream, and show what came of it
    #[arg(long, conflicts_with_all = ["rate", "count", "bytes"])]
    listen: bool,
    /// UDP port of the stream
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Datagrams a second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Datagrams
    #[arg(long, short, default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    count: u32,
    /// Bytes of each
    #[arg(long, short, default_value_t = 280, value_parser = length)]
    bytes: usize,
    /// With --listen: seconds for which a sender is waited for
    #[arg(long, default_value_t = 60, requires = "listen", value_parser = clap::value_parser!(u32).range(1..=3600))]
    wait: u32,
    /// Print the result as JSON (schema bumpless.iprp.test/1)
    #[arg(long)]
    json: bool,
}

fn length(text: &str) -> Result<usize, String> {
    let length = text.parse().ok();
    let length = length.filter(|length| (LEN_MIN..=LEN_MAX).contains(length));
    length.ok_or_else(|| {
        format!("give {LEN_MIN} to {LEN_MAX} bytes, so that a copy fits into a packet")
    })
}

impl Test {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let config = super::load(&self.config, self.json)?;
        let daemon = daemon(&self.config, self.json)?;
        let ask = |request: &Request| {
            let words = |failure: Failure| failure.lines().join("\n").replace("bumpless: ", "");
            daemon.ask(request).map_err(words)
        };
        match self.host {
            Some(host) => self.send(host, &ask),
            None => self.listen(&config, &ask),
        }
    }

    fn send(&self, host: IpAddr, ask: &dyn Fn(&Request) -> Result<Value, String>) -> Outcome {
        let is_one =
            |it: IpAddr| !it.is_multicast() && !it.is_unspecified() && it != IpAddr::from([255; 4]);
        if !is_one(host) {
            return Err(Failure::usage(format_args!(
                "{host} is not the address of one host: name one"
            )));
        }
        if self.count / self.rate > LONGEST_S {
            return Err(Failure::usage(format_args!(
                "--count {} at --rate {} takes longer than {LONGEST_S} s: give fewer, or a higher rate",
                self.count, self.rate
            )));
        }
        let plan = SendPlan {
            host,
            port: self.port,
            rate: self.rate,
            count: self.count,
            bytes: self.bytes,
        };
        let stop = stop::stop_flag()?;
        let tell = |words: &str| {
            if !self.json {
                output::print_line(words);
            }
        };
        let sent = send(&plan, ask, &stop, &tell).map_err(Failure::refused)?;
        let warnings = warnings(&plan, &sent);
        match self.json {
            true => output::print_line(sent_json(&plan, &sent, &warnings)),
            false => print_sent(&sent, &warnings),
        }
        let whole = sent
            .report
            .as_ref()
            .is_some_and(|it| it.arrived == sent.sent && it.doubled == 0);
        Ok(ExitCode::from(u8::from(!whole)))
    }

    fn listen(&self, config: &Config, ask: &dyn Fn(&Request) -> Result<Value, String>) -> Outcome {
        let watched = config.watched();
        let is_monitored = watched.iter().any(|it| {
            it.protocol == UDP
                && it.side == bumpless_iprp_daemon::Side::Destination
                && (it.first..=it.last).contains(&self.port)
        });
        let file = self.config.display();
        let warning = format!(
            "UDP port {} is not monitored in {file}, so the stream goes over one network: add [[monitor]] with protocol = \"udp\" and port = {} \
             there, then `bumpless iprp reload {file}`",
            self.port, self.port
        );
        let warnings: Vec<_> = (!is_monitored).then_some(warning).into_iter().collect();
        if !self.json {
            warnings
                .iter()
                .for_each(|it| output::print_line(format_args!("warning: {it}")));
            output::print_line(format_args!(
                "listening to UDP port {} for {} s",
                self.port, self.wait
            ));
        }
        let plan = ListenPlan {
            port: self.port,
            is_monitored,
            wait: Duration::from_secs(u64::from(self.wait)),
        };
        let heard = listen(&plan, ask, &*stop::stop_flag()?).map_err(Failure::refused)?;
        let Some(heard) = heard else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        match self.json {
            true => output::print_line(heard_json(self.port, &heard, is_monitored, &warnings)),
            false => print_heard(&heard),
        }
        let whole =
            heard.is_whole && heard.report.arrived == heard.total && heard.report.doubled == 0;
        Ok(ExitCode::from(u8::from(!whole)))
    }
}

fn warnings(plan: &SendPlan, sent: &Sent) -> Vec<String> {
    let SendPlan { host, port, .. } = plan;
    let mut all = Vec::new();
    if !sent.is_monitored {
        all.push(format!(
            "UDP port {port} is not monitored in the file of {host}, so the stream went over one network: add [[monitor]] with protocol = \"udp\" \
             and port = {port} there, then `bumpless iprp reload` there"
        ));
    } else if !sent.is_replicated {
        all.push(format!(
            "no session with {host} began, so the stream went over one network: `bumpless iprp status` on both hosts names what keeps them \
             apart, and `bumpless iprp ping` tries the way"
        ));
    } else if sent.networks.len() < 2 {
        all.push(format!("both hosts share one network only: `bumpless iprp status` here and at {host} shows which each one has"));
    }
    if sent.report.is_none() {
        all.push(format!(
            "the report of {host} did not come back: what arrived stands there"
        ));
    }
    all
}

/// Copies that a network was given and that did not come.
fn lost(it: &Carried, report: Option<&Report>) -> Option<u64> {
    let came = came(it.ind, report?)?;
    Some(it.sent.saturating_sub(came.all()))
}

/// What came on a network; a network on which nothing has ever come is not in the report.
fn came(ind: u8, report: &Report) -> Option<Came> {
    let nothing = (!report.networks.is_empty()).then(|| Came {
        ind,
        ..Came::default()
    });
    report
        .networks
        .iter()
        .find(|it| it.ind == ind)
        .copied()
        .or(nothing)
}

fn sent_json(plan: &SendPlan, sent: &Sent, warnings: &[String]) -> Value {
    let report = sent.report.as_ref();
    let network = |it: &Carried| {
        let came = report.and_then(|report| came(it.ind, report));
        json!({
            "ind": it.ind,
            "to": it.to,
            "sent": it.sent,
            "again": it.again,
            "came": came.map(|it| it.all()),
            "first": came.map(|it| it.first),
            "wrong_network": came.map(|it| it.wrong_network),
            "lost": lost(it, report),
        })
    };
    json!({
        "schema": "bumpless.iprp.test/1",
        "role": "sender",
        "host": plan.host.to_string(),
        "port": plan.port,
        "bytes": plan.bytes,
        "sent": sent.sent,
        "not_taken": sent.not_taken,
        "took_s": sent.took.as_secs_f64(),
        "monitored": sent.is_monitored,
        "replicated": sent.is_replicated,
        "stream": report.map(|it| stream(it, sent.sent)),
        "networks": sent.networks.iter().map(network).collect::<Vec<_>>(),
        "warnings": warnings,
    })
}

fn stream(report: &Report, total: u32) -> Value {
    json!({
        "arrived": report.arrived,
        "lost": total.saturating_sub(report.arrived),
        "doubled": report.doubled,
        "reordered": report.reordered,
        "delay_spread_us": report.spread.map(|it| json!({"median": it.median_us, "p99": it.p99_us, "most": it.most_us})),
    })
}

fn heard_json(port: u16, heard: &Heard, is_monitored: bool, warnings: &[String]) -> Value {
    let network = |it: &Came| {
        json!({
            "ind": it.ind,
            "came": it.all(),
            "first": it.first,
            "duplicate": it.duplicate,
            "very_late": it.very_late,
            "wrong_network": it.wrong_network,
        })
    };
    json!({
        "schema": "bumpless.iprp.test/1",
        "role": "listener",
        "port": port,
        "from": heard.from.to_string(),
        "whole": heard.is_whole,
        "monitored": is_monitored,
        "stream": stream(&heard.report, heard.total),
        "networks": heard.report.networks.iter().map(network).collect::<Vec<_>>(),
        "warnings": warnings,
    })
}

fn print_stream(report: &Report, total: u32) {
    output::print_line(format_args!(
        "{total} datagrams: {} arrived, {} lost, {} doubled, {} reordered",
        report.arrived,
        total.saturating_sub(report.arrived),
        report.doubled,
        report.reordered
    ));
    if let Some(it) = report.spread {
        output::print_line(format_args!(
            "delay beyond the fastest one's: median {:.0}, 99 % {:.0}, most {:.0} us",
            it.median_us, it.p99_us, it.most_us
        ));
    }
}

fn print_sent(sent: &Sent, warnings: &[String]) {
    match &sent.report {
        Some(report) => print_stream(report, sent.sent),
        None => output::print_line(format_args!("{} datagrams sent", sent.sent)),
    }
    if sent.not_taken > 0 {
        output::print_line(format_args!(
            "{} of them the system did not take",
            sent.not_taken
        ));
    }
    let report = sent.report.as_ref();
    for it in &sent.networks {
        let first = report
            .and_then(|report| came(it.ind, report))
            .map_or("?".into(), |it| it.first.to_string());
        let lost = lost(it, report).map_or("?".into(), |lost| lost.to_string());
        output::print_line(format_args!(
            "  network {} to {}: {} copies, {lost} lost, {first} of them the first to arrive",
            it.ind, it.to, it.sent
        ));
    }
    warnings
        .iter()
        .for_each(|it| output::print_line(format_args!("warning: {it}")));
}

fn print_heard(heard: &Heard) {
    output::print_line(format_args!("stream from {}", heard.from));
    print_stream(&heard.report, heard.total);
    for it in &heard.report.networks {
        output::print_line(format_args!(
            "  network {}: {} first, {} duplicate, {} very late, {} on another network",
            it.ind, it.first, it.duplicate, it.very_late, it.wrong_network
        ));
    }
    if !heard.is_whole {
        output::print_line(
            "warning: the sender fell silent before its end, so what it has not sent counts as lost",
        );
    }
}
