//! `bumpless plan --calibrate`: what transfers between two nodes really take, measured before the pair runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bumpless_bench::calibrate::{self, Options, Row, Session, Verification};
use bumpless_bench::peer::Side;
use bumpless_bench::run::Trouble;
use bumpless_config::{Config, read_text_file};
use bumpless_plan::cost::Costs;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Longest file of costs, bytes.
const COSTS_MAX: usize = 16 << 20;

/// What belongs to measuring, among the options of `bumpless plan`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// Measure what transfers between the two nodes take, and keep it in the file of --costs
    ///
    /// The nodes must not be running. On two computers start the same command on both. Takes a few minutes.
    #[arg(long, conflicts_with_all = ["new", "html", "svg"])]
    pub calibrate: bool,
    /// Keep nothing: measure other sizes anew and compare them with what the costs predict; exit status 1 if a
    /// median differs by more than a tenth, or a worst case was exceeded
    #[arg(long, requires = "calibrate")]
    verify: bool,
    /// Which node this computer is; by default every node whose addresses it has
    #[arg(long, value_name = "NAME", requires = "calibrate")]
    node: Option<String>,
    /// How often each size is sent; those below 100 kB four times as often
    #[arg(long, value_name = "N", requires = "calibrate", default_value_t = 60, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    rounds: u32,
    /// The measured costs; CONFIG with the ending .costs.json if left out
    #[arg(long, value_name = "FILE", conflicts_with = "new")]
    costs: Option<PathBuf>,
}

impl Calibrate {
    /// Where the costs of the configuration at `path` are.
    pub fn file(&self, path: &Path) -> PathBuf {
        self.costs
            .clone()
            .unwrap_or_else(|| calibrate::default_file(path))
    }

    /// The costs with which to plan `config`, which is at `path`: none where there is no such file, unless it
    /// was named.
    pub fn costs(&self, path: &Path, config: &Config) -> Result<Option<Costs>, Failure> {
        let file = self.file(path);
        if self.costs.is_none() && !file.exists() {
            return Ok(None);
        }
        let wrong = |reason: &dyn std::fmt::Display| {
            Failure::usage(format_args!(
                "cannot use the costs in {}: {reason}",
                file.display()
            ))
        };
        let text = read_text_file(&file, COSTS_MAX).map_err(|error| wrong(&error))?;
        let costs: Costs = serde_json::from_str(&text).map_err(|error| {
            wrong(&format_args!(
                "{error}; calibrate again, or delete the file"
            ))
        })?;
        costs.check(config).map_err(|reason| wrong(&reason))?;
        Ok(Some(costs))
    }

    /// Measures.
    pub fn run(&self, path: &Path, config: Config, json: bool) -> Outcome {
        let file = self.file(path);
        let kept = match self.verify {
            true => Some(self.costs(path, &config)?.ok_or_else(|| {
                Failure::usage(format_args!(
                    "there are no costs in {}; run the command without --verify first",
                    file.display()
                ))
            })?),
            false => None,
        };
        let options = self.options(path, config)?;
        // The nodes must not run meanwhile, nor be started.
        let _locks = lock(&options)?;
        let failed = |trouble: Trouble| match trouble {
            Trouble::Stopped => Failure::refused("stopped; nothing was kept"),
            Trouble::Failed(reason) => Failure::refused(reason),
        };
        if let Some(costs) = kept {
            let verification = calibrate::verify(&options, &costs).map_err(failed)?;
            show_verification(&verification, json);
            return Ok(ExitCode::from(u8::from(!verification.agrees)));
        }
        let (costs, held_out) = calibrate::calibrate(&options).map_err(failed)?;
        calibrate::keep(&costs, &file).map_err(Failure::refused)?;
        if json {
            output::print_line(serde_json::to_value(&costs).map_err(Failure::refused)?);
        } else {
            show(&costs);
            output::print_line("measured among them: sizes from which it was not told");
            show_verification(&held_out, false);
            output::print_line(format_args!("kept in {}", file.display()));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self, path: &Path, config: Config) -> Result<Options, Failure> {
        if let Some(name) = &self.node {
            output::find_node(&config, name)?;
        }
        let nodes = calibrate::nodes_of(&config, self.node.as_deref()).map_err(Failure::usage)?;
        let here = match &self.node {
            Some(name) => vec![name.clone()],
            None => calibrate::here(&config, &nodes),
        };
        if here.is_empty() {
            return Err(Failure::refused(format_args!(
                "neither '{}' nor '{}' has its addresses on this computer; run the command on theirs",
                nodes[0], nodes[1]
            )));
        }
        let program = std::env::current_exe().map_err(|error| {
            Failure::refused(format_args!("cannot find this program's own file: {error}"))
        })?;
        Ok(Options {
            program,
            file: path.to_owned(),
            config,
            nodes,
            here,
            rounds: self.rounds as usize,
            silent: false,
            stop: stop::stop_flag()?,
        })
    }
}

fn lock(options: &Options) -> Result<Vec<bumpless_node::InstanceLock>, Failure> {
    let locked = options.here.iter().map(|name| {
        let node = output::find_node(&options.config, name)?;
        bumpless_node::lock(&options.config, node).map_err(|error| {
            Failure::refused(format_args!("cannot calibrate node '{name}': {error}"))
        })
    });
    locked.collect()
}

/// Day and minute of `unix_s`, seconds since 1970, UTC.
pub fn date(unix_s: u64) -> String {
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so that the day that
    // some have more is the last.
    let days = unix_s / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute) = (unix_s % 86_400 / 3_600, unix_s % 3_600 / 60);
    format!("{year}-{month:02}-{of_month:02} {hour:02}:{minute:02} UTC")
}

/// Nanoseconds as people read them.
pub fn micros(nanos: f64) -> String {
    match nanos / 1e3 {
        us if us < 100.0 => format!("{us:.2} us"),
        us if us < 10_000.0 => format!("{us:.0} us"),
        us => format!("{:.2} ms", us / 1e3),
    }
}

fn show(costs: &Costs) {
    for path in &costs.paths {
        let cost = &path.cost;
        let left_out = path.held_out_error.map_or(String::new(), |error| {
            format!(", those of sizes left out by {:.1} %", error * 100.0)
        });
        output::print_line(format_args!(
            "{} to {} on {}: {} for each transfer, {} for each packet, {} for each kB; the medians differ from that by {:.1} % at most{left_out}",
            path.from,
            path.to,
            route(&path.networks, path.spread),
            micros(cost.per_transfer_ns),
            micros(cost.per_packet_ns),
            micros(cost.per_kilobyte_ns),
            path.largest_error * 100.0,
        ));
        if path.thrown_away > 0 {
            output::print_line(format_args!(
                "  {} transfers did not count: the machine stood still",
                path.thrown_away
            ));
        }
    }
    for node in &costs.nodes {
        output::print_line(format_args!(
            "{} ({}): threads were at most {} late in 9,999 of 10,000 times, {} at the latest",
            node.name,
            node.host,
            micros(node.jitter.p9999_ns as f64),
            micros(node.jitter.longest_ns as f64),
        ));
    }
}

fn route(networks: &[String], spread: bool) -> String {
    let how = if spread { " (spread)" } else { "" };
    format!("{}{how}", networks.join(" and "))
}

fn show_verification(verification: &Verification, json: bool) {
    if json {
        output::print_line(json!({
            "schema": "bumpless.costs-verification/1",
            "agrees": verification.agrees,
            "rows": verification.rows,
        }));
        return;
    }
    let mut before = String::new();
    for row in &verification.rows {
        let heading = format!("{} on {}", row.from, route(&row.networks, row.spread));
        if heading != before {
            output::print_line(format_args!("from {heading}"));
            output::print_line(
                "       size   predicted    measured   ratio   longest  worst case  transfers  stalled",
            );
            before = heading;
        }
        output::print_line(line(row));
    }
    output::print_line(if verification.agrees {
        "predicted and measured medians agree within 10 %, and no worst case was exceeded"
    } else {
        "NOT as predicted: see the lines marked !; calibrate again when the machine has little else to do"
    });
}

fn line(row: &Row) -> String {
    let time = |nanos: Option<u64>| nanos.map_or("-".into(), |nanos| micros(nanos as f64));
    format!(
        "{:>11} {:>11} {:>11} {:>6.3}{} {:>9} {:>10}{} {:>10} {:>8}",
        row.size,
        micros(row.predicted_ns),
        micros(row.measured_ns as f64),
        row.ratio,
        if row.agrees() { ' ' } else { '!' },
        time(row.longest_ns),
        time(row.worst_ns),
        if row.holds() { ' ' } else { '!' },
        row.count,
        row.stalled,
    )
}

/// One end of a session of a calibration, for `bumpless plan --calibrate`
#[derive(Debug, Args)]
pub struct CalibrationEnd {
    /// The configuration
    config: PathBuf,
    /// Which end
    side: End,
    /// The session, JSON
    session: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum End {
    Send,
    Receive,
}

impl CalibrationEnd {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let config = output::load_to_plan(&self.config, false)?;
        let session: Session = serde_json::from_str(&self.session).map_err(Failure::usage)?;
        let side = match self.side {
            End::Send => Side::Send,
            End::Receive => Side::Receive,
        };
        calibrate::run_end(&config, &session, side).map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_305_900), "2026-11-22 00:05 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
    }
}
