//! `bumpless impact --paper`: the dissertation's figures beside what its text says of them.

use std::path::Path;
use std::process::ExitCode;

use bumpless_impact::{paper, report};
use serde_json::json;

use super::{SCHEMA, can_be_written};
use crate::output::{self, Outcome};

/// Draws the page, and prints each sentence of the text beside what the model says.
pub fn draw(file: &Path, as_json: bool) -> Outcome {
    can_be_written(file)?;
    let mut parts = paper::all();
    parts.push(paper::core_latencies());
    output::write_whole(file, &report::page(env!("CARGO_PKG_VERSION"), &parts))?;
    let summary = report::summary(&parts);
    if as_json {
        output::print_line(json!({
            "schema": SCHEMA,
            "kind": "paper",
            "summary": summary,
            "page": file,
            "statements": report::json(&parts),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    for claim in parts.iter().flat_map(|part| &part.claims) {
        let verdict = if claim.agrees {
            "the same "
        } else {
            "OTHERWISE"
        };
        output::print_line(format_args!("{verdict}  {}: {}", claim.place, claim.text));
        output::print_line(format_args!("           model: {}", claim.model));
        if !claim.reason.is_empty() {
            output::print_line(format_args!("           {}", claim.reason));
        }
    }
    output::print_line(format_args!(
        "\n{summary}\nThe pictures are in {}.",
        file.display()
    ));
    Ok(ExitCode::SUCCESS)
}
