//! What was found, for people: tables, drawings and the page.

mod figures;
mod page;
mod tables;
mod words;

use super::result::Programs;
use crate::kept::{Head, Kept};

/// All of it as text.
fn text(programs: &Programs) -> String {
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

impl Kept for Programs {
    const SCHEMA: &'static str = "bumpless.wan-programs/1";
    const FILE: &'static str = "programs.json";

    fn head(&self) -> &Head {
        &self.head
    }

    fn held(&self) -> bool {
        self.promises.iter().all(|it| it.held)
    }

    fn text(&self) -> String {
        text(self)
    }

    fn others(&self) -> Vec<(&'static str, String)> {
        vec![
            ("tables.txt", text(self)),
            ("report.html", page::render(self)),
        ]
    }
}

#[cfg(test)]
mod tests;
