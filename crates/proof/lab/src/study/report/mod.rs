//! A study for people: the paper's tables and figures with ours beside, its questions answered, and raw data.

mod answers;
mod figures;
mod outages;
mod page;
mod tables;
mod words;

use super::result::Study;
use bumpless_bench::output_folder::OutputFolder;

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

/// Writes `study.json`, `outages.csv`, `tables.txt` and `report.html` into `folder`.
///
/// # Errors
/// A file cannot be written.
pub fn write(study: &Study, folder: &OutputFolder) -> Result<(), String> {
    let json = serde_json::to_string(study).map_err(|error| error.to_string())?;
    folder.write([
        ("study.json", json),
        ("outages.csv", outages::csv(study)),
        ("tables.txt", text(study)),
        ("report.html", page::render(study)),
    ])
}

#[cfg(test)]
mod tests;
