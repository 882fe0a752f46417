//! `bumpless values`: what the applications of a running node have read and written last.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_node::control::{Request, Station};
use clap::Args;
use serde_json::Value;

use crate::output::{self, Failure, Outcome};

/// Show the inputs and outputs of a running node's applications
///
/// A backup reads no inputs: what it shows is from when it was primary.
/// Exit status 1 if the node does not answer or has no such application.
#[derive(Debug, Args)]
pub struct Values {
    /// The pair's configuration file
    config: PathBuf,
    /// The node on this computer
    #[arg(long, value_name = "NAME")]
    node: String,
    /// Show this application only
    #[arg(long, value_name = "NAME")]
    application: Option<String>,
    /// Print JSON (schema bumpless.values/1)
    #[arg(long)]
    json: bool,
}

impl Values {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let config = output::load(&self.config, self.json)?;
        let node = Station::of(&config, output::find_node(&config, &self.node)?);
        let request = Request::Values {
            application: self.application,
        };
        let values = node.request(&request).map_err(Failure::refused)?;
        if let Some(refused) = values["error"].as_str() {
            return Err(Failure::refused(refused));
        }
        if self.json {
            output::print_line(&values);
        } else {
            list(&values["applications"]).iter().for_each(print);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print(application: &Value) {
    output::print_line(format_args!(
        "application {}: {} of group {}",
        text(&application["name"]),
        text(&application["role"]),
        text(&application["group"]),
    ));
    let (inputs, outputs) = (&application["inputs"], &application["outputs"]);
    if list(&inputs["values"]).is_empty() && list(&outputs["values"]).is_empty() {
        output::print_line("  neither inputs nor outputs");
        return;
    }
    print_values("inputs", &when(inputs, "read"), inputs);
    let stamp = match outputs["cycle"].as_u64() {
        Some(cycle) => format!(", cycle {cycle} of epoch {}", outputs["epoch"]),
        None => String::new(),
    };
    let when = format!("{}{stamp}", when(outputs, "written"));
    print_values("outputs", &when, outputs);
}

fn print_values(what: &str, when: &str, of: &Value) {
    let values = list(&of["values"]);
    if values.is_empty() {
        return;
    }
    output::print_line(format_args!("  {what}, {when}:"));
    let width = values
        .iter()
        .map(|value| text(&value["name"]).chars().count())
        .max()
        .unwrap_or_default();
    for value in values {
        // A number that JSON has not (infinite, or none at all) is one that was read all the same.
        let number = match (value["value"].as_f64(), of["age_ms"].is_null()) {
            (Some(number), _) => number.to_string(),
            (None, false) => "not a number".to_owned(),
            (None, true) => "-".to_owned(),
        };
        let silent = match value["answers"].as_bool() {
            Some(false) if !of["age_ms"].is_null() => ", which does not answer: older",
            _ => "",
        };
        output::print_line(format_args!(
            "    {:width$}  {number}  ({}{silent})",
            text(&value["name"]),
            text(&value["device"]),
        ));
    }
}

/// How old, in words.
fn when(of: &Value, done: &str) -> String {
    match of["age_ms"].as_f64() {
        None => format!("never {done} by this process"),
        Some(age) if of["fresh"] == true => format!("{done} {age:.0} ms ago"),
        Some(age) => format!("{done} {:.1} s ago, no longer of use", age / 1e3),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], |list| list)
}
