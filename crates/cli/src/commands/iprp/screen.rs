//! Pictures that follow each other: redrawn in place on a terminal, one below the other elsewhere.
//!
//! No mode of the terminal is changed, so that it is as it was however the process ends.

use std::io::{self, IsTerminal};

use bumpless_net_linux::terminal;

use crate::output;

/// Where pictures go.
pub struct Screen {
    is_terminal: bool,
    /// Lines of the last picture, which stand above the cursor.
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

/// What draws `lines` over a picture of `drawn` lines on a terminal of this many rows and columns, and how many lines
/// that are. What does not fit is cut: a line that goes on in the next row could not be drawn over.
fn frame(lines: &[String], drawn: usize, (rows, columns): (usize, usize)) -> (String, usize) {
    let mut text = String::new();
    let up = drawn.min(rows.saturating_sub(1));
    if up > 0 {
        text.push_str(&format!("\x1b[{up}F"));
    }
    text.push_str("\x1b[J");
    let room = rows.saturating_sub(1).max(1);
    let left_out = lines.len().saturating_sub(room);
    let shown = if left_out > 0 { room - 1 } else { lines.len() };
    for line in &lines[..shown] {
        text.extend(line.chars().take(columns.saturating_sub(1)));
        text.push('\n');
    }
    if left_out > 0 {
        let note = format!(
            "({} more lines: make the window higher)",
            lines.len() - shown
        );
        text.extend(note.chars().take(columns.saturating_sub(1)));
        text.push('\n');
        return (text, room);
    }
    (text, shown)
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
        let (narrow, _) = frame(&lines(1), 0, (10, 5));
        assert_eq!(narrow, "\x1b[Jline\n");
    }

    #[test]
    fn what_is_higher_than_the_terminal_is_cut_and_said_so() {
        let (high, drawn) = frame(&lines(9), 0, (5, 80));
        assert_eq!(drawn, 4);
        assert_eq!(high.lines().count(), 4);
        assert!(high.contains("line 2\n(6 more lines"), "{high}");
        // The window was made lower meanwhile.
        let (lower, _) = frame(&lines(9), 4, (3, 80));
        assert!(lower.starts_with("\x1b[2F"), "{lower}");
    }
}
