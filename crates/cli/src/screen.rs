//! Pictures that follow each other: redrawn in place on a terminal, one below the other elsewhere.
//!
//! No mode of the terminal is changed, so that it is as it was however the process ends.

use std::io::{self, IsTerminal};

use bumpless_net_linux::terminal;

use crate::output;

/// Columns by which the rest of a long line is set in.
const INSET: usize = 8;

/// Where pictures go.
pub struct Screen {
    is_terminal: bool,
    /// Rows of the last picture, which stand above the cursor.
    drawn: usize,
}

impl Screen {
    /// Standard output.
    pub fn new() -> Self {
        Self {
            is_terminal: io::stdout().is_terminal(),
            drawn: 0,
        }
    }

    /// Shows a picture; whether somebody still reads.
    pub fn show(&mut self, lines: &[String]) -> bool {
        if !self.is_terminal {
            return output::print_text(&format!("{}\n\n", lines.join("\n")));
        }
        let size = terminal::size(&io::stdout()).unwrap_or((24, 80));
        let (text, drawn) = frame(lines, self.drawn, size);
        self.drawn = drawn;
        output::print_text(&text)
    }
}

/// What draws `lines` over a picture of `drawn` rows on a terminal of this size, and how many rows that are. What does not
/// fit below each other is left out: what has left the screen could not be drawn over.
fn frame(lines: &[String], drawn: usize, (rows, columns): (usize, usize)) -> (String, usize) {
    let room = rows.saturating_sub(1).max(1);
    let mut shown: Vec<_> = lines
        .iter()
        .flat_map(|line| broken(line, columns))
        .collect();
    if shown.len() > room {
        let left_out = shown.len() - (room - 1);
        shown.truncate(room - 1);
        let note = format!("({left_out} more rows: make the window higher)");
        shown.extend(broken(&note, columns).into_iter().take(1));
    }
    let mut text = String::new();
    let up = drawn.min(room);
    if up > 0 {
        text.push_str(&format!("\x1b[{up}F"));
    }
    text.push_str("\x1b[J");
    for row in &shown {
        text.push_str(row);
        text.push('\n');
    }
    (text, shown.len())
}

/// A line in rows that the terminal does not break itself; what goes on is set further in.
fn broken(line: &str, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(1).max(1);
    let inset = if room > 2 * INSET { INSET } else { 0 };
    let characters: Vec<_> = line.chars().collect();
    let (first, rest) = characters.split_at(characters.len().min(room));
    let further = rest
        .chunks(room - inset)
        .map(|part| " ".repeat(inset) + &String::from_iter(part));
    std::iter::once(String::from_iter(first))
        .chain(further)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("line {number}")).collect()
    }

    #[test]
    fn a_picture_is_drawn_over_the_one_before_and_fits() {
        let (first, drawn) = frame(&lines(2), 0, (10, 80));
        assert_eq!((first.as_str(), drawn), ("\x1b[Jline 0\nline 1\n", 2));
        let (second, drawn) = frame(&lines(1), drawn, (10, 80));
        assert_eq!((second.as_str(), drawn), ("\x1b[2F\x1b[Jline 0\n", 1));
        let (narrow, drawn) = frame(&lines(1), 0, (10, 5));
        assert_eq!((narrow.as_str(), drawn), ("\x1b[Jline\n 0\n", 2));
        let long = ["0123456789".repeat(3)];
        let (broken, drawn) = frame(&long, 0, (10, 21));
        let rows = "\x1b[J01234567890123456789\n        0123456789\n";
        assert_eq!((broken.as_str(), drawn), (rows, 2));
    }

    #[test]
    fn what_is_higher_than_the_terminal_is_cut_and_said_so() {
        let (high, drawn) = frame(&lines(9), 0, (5, 80));
        assert_eq!(drawn, 4);
        assert_eq!(high.lines().count(), 4);
        assert!(high.contains("line 2\n(6 more rows"), "{high}");
        // The window was made lower meanwhile.
        let (lower, _) = frame(&lines(9), 4, (3, 80));
        assert!(lower.starts_with("\x1b[2F"), "{lower}");
    }
}
