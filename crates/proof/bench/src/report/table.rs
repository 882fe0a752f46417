//! One table, for a terminal and for the page.

use std::fmt::Write;

use bumpless_svg::escape;

/// Rows of words under a head.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// What to know of it.
    pub note: String,
    /// Names above groups of columns, each with how many it spans; empty: none.
    pub groups: Vec<(String, usize)>,
    head: Vec<String>,
    rows: Vec<(Kind, Vec<String>)>,
    /// Whether the columns hold words rather than figures.
    pub words: bool,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Measured.
    Plain,
    /// The paper's.
    Paper,
    /// A bar that is reached.
    Good,
    /// A bar that is not.
    Bad,
}

impl Table {
    /// An empty table.
    pub fn new(caption: impl Into<String>, head: &[&str]) -> Self {
        Self {
            caption: caption.into(),
            head: head.iter().map(ToString::to_string).collect(),
            ..Self::default()
        }
    }

    /// Adds a measured row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.kind(Kind::Plain, cells);
    }

    /// Adds a row of a kind.
    pub fn kind(&mut self, kind: Kind, cells: impl IntoIterator<Item = String>) {
        self.rows.push((kind, cells.into_iter().collect()));
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Its rows.
    #[cfg(test)]
    pub fn rows(&self) -> impl Iterator<Item = &(Kind, Vec<String>)> {
        self.rows.iter()
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut widths: Vec<usize> = self.head.iter().map(|word| word.chars().count()).collect();
        for (_, row) in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = format!("{}\n", self.caption);
        if !self.note.is_empty() {
            let _ = writeln!(text, "({})", self.note);
        }
        self.groups_text(&mut text, &widths);
        self.line(&mut text, &self.head, &widths);
        for (_, row) in &self.rows {
            self.line(&mut text, row, &widths);
        }
        text
    }

    fn groups_text(&self, text: &mut String, widths: &[usize]) {
        let (mut at, mut line) = (0, String::new());
        for (name, span) in &self.groups {
            let end = (at + span).min(widths.len());
            let width: usize = widths[at..end].iter().map(|width| width + 2).sum();
            let _ = write!(line, "{name:<width$}");
            at = end;
        }
        if !line.trim().is_empty() {
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }

    fn line(&self, text: &mut String, cells: &[String], widths: &[usize]) {
        let mut line = String::new();
        for (cell, &width) in cells.iter().zip(widths) {
            let _ = match self.words {
                true => write!(line, "{cell:<width$}  "),
                false => write!(line, "{cell:>width$}  "),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }

    /// For the page.
    pub fn html(&self) -> String {
        let class = if self.words { "words" } else { "figures" };
        let mut html = format!("<h3>{}</h3>\n", escape(&self.caption));
        if !self.note.is_empty() {
            let _ = writeln!(html, "<p>{}</p>", escape(&self.note));
        }
        let _ = write!(
            html,
            "<div class=\"scroll\"><table class=\"{class}\"><thead>"
        );
        if !self.groups.is_empty() {
            html.push_str("<tr>");
            for (name, span) in &self.groups {
                let _ = write!(
                    html,
                    "<th colspan=\"{span}\" class=\"group\">{}</th>",
                    escape(name)
                );
            }
            html.push_str("</tr>");
        }
        html_row(&mut html, "th", "", &self.head);
        html.push_str("</thead><tbody>\n");
        for (kind, row) in &self.rows {
            let class = match kind {
                Kind::Plain => "",
                Kind::Paper => "paper",
                Kind::Good => "good",
                Kind::Bad => "bad",
            };
            html_row(&mut html, "td", class, row);
        }
        html.push_str("</tbody></table></div>\n");
        html
    }
}

fn html_row(html: &mut String, cell: &str, class: &str, words: &[String]) {
    let _ = write!(html, "<tr class=\"{class}\">");
    for word in words {
        let _ = write!(html, "<{cell}>{}</{cell}>", escape(word));
    }
    html.push_str("</tr>\n");
}
