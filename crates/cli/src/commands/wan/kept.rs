//! What the commands have in common that measure over the network and keep what they find.

use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use bumpless_bench::output_folder::OutputFolder;
use bumpless_lab::kept::{self, Kept};
use bumpless_wan::address::Pool;
use bumpless_wan::emulation::Line;

use super::Network;
use crate::output::{self, Failure, INTERRUPTED, Outcome};

/// What is to become of a result.
#[derive(Clone, Copy, Debug)]
pub struct Keeping<'a> {
    /// Its files are written into this folder.
    pub output: Option<&'a Path>,
    /// Nothing is measured, but this kept one is shown.
    pub show: Option<&'a Path>,
    /// It is printed as JSON.
    pub json: bool,
}

/// Measures, or reads what was kept; tells it, keeps it, and gives the exit status: 1 if a promise was broken, 130 if it ended
/// early with none broken.
pub fn run<K: Kept>(keeping: Keeping<'_>, measure: impl FnOnce() -> Result<K, Failure>) -> Outcome {
    let folder = keeping.output.map(OutputFolder::find);
    let folder = folder.transpose().map_err(Failure::refused)?;
    let found = match keeping.show {
        Some(file) => kept::read(file).map_err(Failure::usage)?,
        None => measure()?,
    };
    if keeping.json {
        output::print_line(serde_json::to_string(&found).map_err(Failure::refused)?);
    } else {
        output::print_line(found.text());
    }
    // What was measured is told, whatever becomes of the files.
    if let Some(folder) = &folder {
        kept::write(&found, folder).map_err(Failure::refused)?;
    }
    Ok(ExitCode::from(match (found.held(), found.is_complete()) {
        (false, _) => 1,
        (true, false) => INTERRUPTED,
        (true, true) => 0,
    }))
}

/// Refuses a pool of addresses for a network whose programs have addresses of their own.
pub fn without_pool(network: &Network, who: &str) -> Result<(), Failure> {
    match network.pool == Pool::V4 {
        true => Ok(()),
        false => Err(Failure::usage(format_args!(
            "{who} addresses of its own; leave --pool out"
        ))),
    }
}

/// A kind of backup.
pub fn line(text: &str) -> Result<Line, String> {
    match text {
        "ethernet" => Ok(Line::Ethernet),
        "lte" => Ok(Line::Lte),
        _ => Err("give ethernet or lte".to_owned()),
    }
}

/// A seed that nobody has given.
pub fn time_as_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs() ^ u64::from(now.subsec_nanos()))
}
