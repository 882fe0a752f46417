//! Text of bounded length that can cross a ring without allocation.

use std::fmt;
use std::hash::{Hash, Hasher};

/// Room for any cause with names of ordinary length; a length of one byte says no more than 255.
const CAPACITY: usize = 246;

/// Up to 246 bytes of UTF-8; longer text is cut at a character boundary and marked with `…`.
#[derive(Clone, Copy)]
pub struct ShortText {
    length: u8,
    bytes: [u8; CAPACITY],
}

impl Hash for ShortText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl ShortText {
    /// No text.
    pub const EMPTY: Self = Self {
        length: 0,
        bytes: [0; CAPACITY],
    };

    /// The text that `value` displays, cut to fit.
    pub fn of(value: impl fmt::Display) -> Self {
        let mut text = Self::EMPTY;
        if fmt::write(&mut text, format_args!("{value}")).is_err() {
            text.mark_cut();
        }
        text
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }

    fn mark_cut(&mut self) {
        const MARK: &str = "…";
        let mut end = usize::from(self.length).min(CAPACITY - MARK.len());
        while !self.as_str().is_char_boundary(end) {
            end -= 1;
        }
        self.bytes[end..end + MARK.len()].copy_from_slice(MARK.as_bytes());
        self.length = (end + MARK.len()) as u8;
    }
}

impl Default for ShortText {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = usize::from(self.length);
        let mut take = text.len().min(CAPACITY - start);
        while !text.is_char_boundary(take) {
            take -= 1;
        }
        self.bytes[start..start + take].copy_from_slice(&text.as_bytes()[..take]);
        self.length = (start + take) as u8;
        if take < text.len() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_at_a_character_and_marked() {
        assert_eq!(ShortText::of("no answer").as_str(), "no answer");
        for filler in ["a", "ä", "–", "🦀"] {
            for offset in 0..4 {
                let text = format!("{}{}", "x".repeat(offset), filler.repeat(300));
                let short = ShortText::of(&text);
                assert!(short.as_str().ends_with('…') && short.as_str().len() <= CAPACITY);
                assert!(text.starts_with(short.as_str().trim_end_matches('…')));
            }
        }
    }
}
