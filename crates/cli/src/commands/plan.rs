//! `bumpless plan`: whether every state of a configuration is in time and whole, and what would help.

pub mod calibrate;
mod change;
mod sites;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bumpless_bench::run::progress::{NEVER, ProgressLine, left};
use bumpless_config::{Application, Config};
use bumpless_node::state_security::{StateCost, state_cost};
use bumpless_plan::cost::Costs;
use bumpless_plan::report::{Report, paper};
use bumpless_plan::{Machine, Verdict};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{self, Failure, Outcome, reception};

/// Say before commissioning whether every state is in time, and how many are lost in a year
///
/// Exit status 0 for a yes; 1 for a no, and where it cannot be said; 2 for a wrong configuration. With a second configuration: 0 if a
/// running pair can change to it with every state in time, one application after another, or all at once by `bumpless apply`; 1 if it
/// cannot.
#[derive(Debug, Args)]
pub struct Plan {
    /// The pair's configuration file
    #[arg(required = true)]
    config: Option<PathBuf>,
    /// A second configuration: say in which order a running pair can change to it
    #[arg(conflicts_with_all = ["html", "svg"])]
    new: Option<PathBuf>,
    /// Print the plan as JSON (schema bumpless.plan/1)
    #[arg(long)]
    json: bool,
    /// Write tables and pictures to this file, one page that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the pictures to this directory, which is made if it does not exist
    #[arg(long, value_name = "DIRECTORY")]
    svg: Option<PathBuf>,
    /// Print the first paper's figure 12 as SVG: messages lost in a year over the retransmission budget
    #[arg(long, exclusive = true)]
    paper_figure_12: bool,
    #[command(flatten)]
    sites: sites::Sites,
    #[command(flatten)]
    calibration: calibrate::Calibrate,
}

impl Plan {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let (false, Some(file)) = (self.paper_figure_12, &self.config) else {
            output::print_line(paper::figure_12().trim_end());
            return Ok(ExitCode::SUCCESS);
        };
        if let Some(new) = &self.new {
            return change::run(file, new, Machine::default(), self.json);
        }
        let mut config = output::load_to_plan(file, self.json)?;
        self.sites.put_apart(&mut config)?;
        if self.calibration.calibrate {
            return self.calibration.run(file, config, self.json);
        }
        let costs = self.calibration.costs(file, &config)?;
        let costs_file = self.calibration.file(file);
        let plan = bumpless_plan::plan(&config, costs.as_ref());
        let verdict = plan.verdict;
        let report = Report::new(&config.pair, plan, progress());
        if let Some(path) = &self.html {
            output::write_whole(path, &report.page())?;
        }
        if let Some(directory) = &self.svg {
            drawings(directory, &report)?;
        }
        if self.json {
            let mut json = report.json();
            json["costs"] = costs.map_or(Value::Null, |costs| {
                costs_json(&costs_file, &config, &costs)
            });
            json["state_security"] = protection_json(&config);
            json["reception"] = reception::of_nodes(&config);
            output::print_line(json);
        } else {
            output::print_line(report.text().trim_end());
            if let Some(costs) = &costs {
                show_costs(&costs_file, &config, costs);
            }
            show_protection(&config);
            output::print_line("");
            reception::lines(&config)
                .iter()
                .for_each(output::print_line);
        }
        Ok(ExitCode::from(u8::from(verdict != Verdict::Yes)))
    }
}

fn costs_json(file: &Path, config: &Config, costs: &Costs) -> Value {
    let typical = config.applications.iter().map(|app| {
        json!({"channel": app.name, "nanoseconds": costs.predict(config, app, app.state_max)})
    });
    json!({
        "file": file,
        "measured_unix_s": costs.measured_unix_s,
        "typical": typical.collect::<Vec<_>>(),
    })
}

fn show_costs(file: &Path, config: &Config, costs: &Costs) {
    output::print_line(format_args!(
        "\nWith the costs measured on {} ({}). The largest state typically takes:",
        calibrate::date(costs.measured_unix_s),
        file.display()
    ));
    for app in &config.applications {
        let typical = costs.predict(config, app, app.state_max);
        let typical = typical.map_or("not measured".into(), calibrate::micros);
        output::print_line(format_args!("  {:<32} {typical:>12}", app.name));
    }
}

/// The applications whose states are protected by themselves, with what that takes here.
fn protected(config: &Config) -> impl Iterator<Item = (&Application, StateCost)> {
    let applications = config.applications.iter();
    applications.filter_map(|app| Some((app, state_cost(app)?)))
}

fn protection_json(config: &Config) -> Value {
    let each = protected(config).map(|(app, cost)| {
        json!({
            "channel": app.name,
            "sealing_ns": cost.sealing.as_nanos(),
            "opening_ns": cost.opening.as_nanos(),
        })
    });
    each.collect()
}

fn show_protection(config: &Config) {
    let mut begun = false;
    for (app, cost) in protected(config) {
        if !begun {
            output::print_line(
                "\nWhat protects states by themselves takes, for the largest one, measured on this computer just now:\n  \
                 channel                            in each cycle   at a takeover",
            );
            begun = true;
        }
        let [sealing, opening] =
            [cost.sealing, cost.opening].map(|span| calibrate::micros(span.as_nanos() as f64));
        output::print_line(format_args!(
            "  {:<32} {sealing:>15} {opening:>15}",
            app.name
        ));
    }
}

/// Tells on a terminal how much of the search for margins is done, and how long the rest takes.
fn progress() -> impl FnMut(usize, usize) {
    let mut line = ProgressLine::new(Duration::from_millis(500), (NEVER, NEVER));
    move |done, all| match done == all {
        true => line.end(),
        false => line.show(|spent| {
            let left = left(spent.as_secs_f64() * (all as f64 / done as f64 - 1.0));
            format!("margins of channel {done} of {all}, {left}")
        }),
    }
}

fn drawings(directory: &Path, report: &Report) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|error| {
        Failure::refused(format_args!(
            "cannot make the directory {}: {error}; name one that may be written to",
            directory.display()
        ))
    })?;
    for (name, svg) in report.drawings() {
        output::write_whole(&directory.join(name), &svg)?;
    }
    Ok(())
}
