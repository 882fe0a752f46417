//! A run for people: tables in the paper's layout with the paper's figures beside them.

pub mod loads;
pub mod text;

use std::path::Path;

use crate::result::Run;

/// Writes `run.json` and `tables.txt` into `directory`, which is made if it is not there.
///
/// # Errors
/// The directory or a file cannot be written.
pub fn write(run: &Run, directory: &Path) -> Result<(), String> {
    let refused =
        |error: std::io::Error| format!("cannot write into {}: {error}", directory.display());
    std::fs::create_dir_all(directory).map_err(refused)?;
    let json = serde_json::to_string(run).map_err(|error| error.to_string())?;
    for (name, text) in [("run.json", json), ("tables.txt", text::render(run))] {
        // Whole or not at all: a run that is stopped here leaves no half file.
        let part = directory.join(format!("{name}.part"));
        std::fs::write(&part, text).map_err(refused)?;
        std::fs::rename(&part, directory.join(name)).map_err(refused)?;
    }
    Ok(())
}
