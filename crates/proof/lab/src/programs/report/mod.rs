//! What was found, for people: tables, drawings and the page.

mod figures;
mod page;
mod tables;
mod words;

use super::result::Programs;
use bumpless_bench::output_folder::OutputFolder;

/// All of it as text.
pub fn text(programs: &Programs) -> String {
    let mut text = words::about(programs);
    text.push('\n');
    for sentence in words::answers(programs) {
        text.push_str(&format!("- {sentence}\n"));
    }
    for table in tables::all(programs) {
        text.push('\n');
        text.push_str(&table.text());
    }
    text
}

/// Writes `programs.json`, `tables.txt` and `report.html` into `folder`.
///
/// # Errors
/// A file cannot be written.
pub fn write(programs: &Programs, folder: &OutputFolder) -> Result<(), String> {
    let json = serde_json::to_string(programs).map_err(|error| error.to_string())?;
    folder.write([
        ("programs.json", json),
        ("tables.txt", text(programs)),
        ("report.html", page::render(programs)),
    ])
}

#[cfg(test)]
mod tests;
