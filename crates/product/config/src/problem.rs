//! What is wrong in a file: place, cause, remedy.

use std::fmt;

use serde::Serialize;

/// One mistake in the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0 where no line is to blame: the file could not be read, or a running
    /// pair cannot change to it.
    pub line: usize,
    /// Path of the field, such as `application[2].period_ms`; empty for the file as a whole.
    pub field: String,
    /// What is wrong.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            // Of the file as a whole.
            0 => write!(f, "{}: ", self.file)?,
            line => write!(f, "{}:{line}: ", self.file)?,
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}; {}", self.wrong, self.right)
    }
}
