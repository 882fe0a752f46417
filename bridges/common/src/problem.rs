//! What is wrong, and what would be right.

use std::fmt;

/// One thing that keeps the bridge from starting.
#[derive(Debug)]
pub struct Problem {
    wrong: String,
    right: String,
}

impl Problem {
    /// `right` is what to do about it.
    pub fn new(wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self {
            wrong: wrong.into(),
            right: right.into(),
        }
    }

    /// As one element of `problems` where a bridge refuses.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({"wrong": self.wrong, "right": self.right})
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.wrong, self.right)
    }
}
