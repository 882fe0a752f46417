//! A study for people: the paper's tables and figures with ours beside, its questions answered, and raw data.

mod answers;
mod figures;
mod outages;
mod page;
mod tables;
mod words;

use super::result::Study;
use crate::kept::{Head, Kept};

/// The whole study as text.
fn text(study: &Study) -> String {
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

impl Kept for Study {
    const SCHEMA: &'static str = "bumpless.wan-study/1";
    const FILE: &'static str = "study.json";

    fn head(&self) -> &Head {
        &self.head
    }

    /// Besides, every run gave figures, and nothing but somebody's wish ended it early.
    fn held(&self) -> bool {
        let promises = self.promises.iter().all(|it| it.held);
        let runs = self.runs.iter().all(|run| run.error.is_none());
        promises && runs && self.broke_off.is_none()
    }

    fn text(&self) -> String {
        text(self)
    }

    fn others(&self) -> Vec<(&'static str, String)> {
        vec![
            ("outages.csv", outages::csv(self)),
            ("tables.txt", text(self)),
            ("report.html", page::render(self)),
        ]
    }
}

#[cfg(test)]
mod tests;
