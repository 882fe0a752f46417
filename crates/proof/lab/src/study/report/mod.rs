//! A study for people: the paper's tables and figures with ours beside, its questions answered, and raw data.

mod answers;
mod figures;
mod outages;
mod page;
mod tables;
mod words;

use std::fs;
use std::path::Path;

use super::result::Study;

/// The whole study as text.
pub fn text(study: &Study) -> String {
    let mut text = words::about(study);
    text.push('\n');
    for table in tables::all(study) {
        text.push('\n');
        text.push_str(&table.text());
    }
    for answer in answers::all(study) {
        text.push_str(&format!("\n{}\n", answer.question));
        for sentence in answer.sentences {
            text.push_str(&format!("  {sentence}\n"));
        }
    }
    text
}

/// Writes `study.json`, `outages.csv`, `tables.txt` and `report.html` into `directory`, which is made if it is not there.
///
/// # Errors
/// The directory or a file cannot be written.
pub fn write(study: &Study, directory: &Path) -> Result<(), String> {
    let refused =
        |error: std::io::Error| format!("cannot write into {}: {error}", directory.display());
    fs::create_dir_all(directory).map_err(refused)?;
    let json = serde_json::to_string(study).map_err(|error| error.to_string())?;
    let files = [
        ("study.json", json),
        ("outages.csv", outages::csv(study)),
        ("tables.txt", text(study)),
        ("report.html", page::render(study)),
    ];
    for (name, text) in files {
        // Whole or not at all: a study that is stopped here leaves no half file.
        let part = directory.join(format!("{name}.part"));
        fs::write(&part, text).map_err(refused)?;
        fs::rename(&part, directory.join(name)).map_err(refused)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
