//! Lines of the file, found from offsets.

use std::ops::Range;

/// Offsets at which the lines of a text begin.
pub struct Lines(Vec<usize>);

impl Lines {
    /// Of `text`.
    pub fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Self(
            std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
        )
    }
    /// The line, from 1, in which `span` begins; the first for no span.
    pub fn of(&self, span: Option<Range<usize>>) -> usize {
        let offset = span.map_or(0, |span| span.start);
        self.0.partition_point(|&start| start <= offset).max(1)
    }
    /// The bytes of line `number`, its end of line included.
    pub fn range(&self, number: usize, text: &str) -> Range<usize> {
        let start = self.0.get(number.saturating_sub(1)).copied();
        let end = self.0.get(number).copied();
        start.unwrap_or(text.len())..end.unwrap_or(text.len())
    }
}
