//! `bumpless iprp test`: a bounded stream between two hosts, and what came of it on each network.

mod told;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bumpless_iprp_daemon::{
    COUNT_MAX, Config, Ending, Heard, LEN_MAX, LEN_MIN, ListenPlan, Request, SendPlan, Sent,
    listen, send,
};
use clap::{ArgGroup, Args};
use serde_json::Value;

use super::{another_host, daemon};
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
/// came is not known; 130 if it was ended early, at either end, and nothing was lost or doubled until then.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("end").required(true).args(["host", "listen"])))]
pub struct Test {
    /// The file of this host
    config: PathBuf,
    /// An address of the other host
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
        let host = another_host(host)?;
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
        let Some(sent) = sent else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        let warnings = told::warnings(&plan, &sent);
        match self.json {
            true => output::print_line(told::sent_json(&plan, &sent, &warnings)),
            false => told::print_sent(&sent, &warnings),
        }
        Ok(ExitCode::from(status_of_sender(&plan, &sent)))
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
            true => output::print_line(told::heard_json(self.port, &heard, is_monitored, warnings)),
            false => told::print_heard(&heard),
        }
        Ok(ExitCode::from(status_of_listener(&heard)))
    }
}

fn status_of_sender(plan: &SendPlan, sent: &Sent) -> u8 {
    let report = sent.report.as_ref();
    let held = report.is_some_and(|it| it.arrived == sent.sent && it.doubled == 0);
    status(held, sent.sent < plan.count)
}

fn status_of_listener(heard: &Heard) -> u8 {
    let held = heard.report.arrived == heard.total && heard.report.doubled == 0;
    match heard.ending {
        Ending::Whole => status(held, false),
        Ending::Early | Ending::Interrupted => status(held, true),
        Ending::Silent => status(false, false),
    }
}

fn status(held: bool, ended_early: bool) -> u8 {
    match (held, ended_early) {
        (true, false) => 0,
        (true, true) => INTERRUPTED,
        (false, _) => 1,
    }
}

#[cfg(test)]
mod tests {
    use bumpless_iprp_daemon::Report;

    use super::*;

    fn report(arrived: u32) -> Report {
        Report {
            arrived,
            ..Report::default()
        }
    }

    #[test]
    fn who_names_no_end_is_told_of_both() {
        let parsed = |more: &[&str]| {
            let all = [&["test", "host.toml", "--port", "9"], more].concat();
            let command = Test::augment_args(clap::Command::new("test"));
            let parsed = command.try_get_matches_from(all);
            parsed.map(drop).map_err(|error| error.to_string())
        };
        let missing = parsed(&[]).unwrap_err();
        assert!(
            missing.contains("HOST") && missing.contains("--listen"),
            "{missing}"
        );
        assert!(parsed(&["10.0.0.1", "--listen"]).is_err());
        parsed(&["10.0.0.1"]).unwrap();
        parsed(&["--listen"]).unwrap();
    }

    #[test]
    fn an_early_end_is_told_by_status_and_fields_at_both_ends() {
        let plan = SendPlan {
            host: IpAddr::from([10, 0, 0, 2]),
            port: 9,
            rate: 10,
            count: 5,
            bytes: 280,
        };
        let of_sender = |sent: u32, arrived: Option<u32>| {
            let sent = Sent {
                sent,
                not_taken: 0,
                took: Duration::ZERO,
                is_monitored: true,
                is_replicated: true,
                networks: Vec::new(),
                report: arrived.map(report),
            };
            let json = told::sent_json(&plan, &sent, &told::warnings(&plan, &sent));
            assert_eq!(json["asked"], 5);
            let is_warned = json["warnings"].to_string().contains("ended early");
            assert_eq!(json["ended"], !is_warned, "{json}");
            (status_of_sender(&plan, &sent), json["ended"] == true)
        };
        assert_eq!(of_sender(5, Some(5)), (0, true));
        assert_eq!(of_sender(5, Some(4)), (1, true));
        assert_eq!(of_sender(3, Some(3)), (INTERRUPTED, false));
        assert_eq!(of_sender(3, Some(2)), (1, false));
        assert_eq!(of_sender(3, None), (1, false));
        let of_listener = |ending: Ending, total: u32| {
            let heard = Heard {
                from: ([10, 0, 0, 1], 4000).into(),
                asked: 5,
                total,
                ending,
                report: report(3),
            };
            let json = told::heard_json(9, &heard, true, Vec::new());
            assert_eq!(
                (&json["asked"], &json["whole"]),
                (&5.into(), &json["ended"])
            );
            (status_of_listener(&heard), json["ended"] == true)
        };
        assert_eq!(of_listener(Ending::Whole, 3), (0, true));
        assert_eq!(of_listener(Ending::Early, 3), (INTERRUPTED, false));
        assert_eq!(of_listener(Ending::Early, 4), (1, false));
        assert_eq!(of_listener(Ending::Interrupted, 3), (INTERRUPTED, false));
        assert_eq!(of_listener(Ending::Silent, 5), (1, false));
    }
}
