//! What a bridge tells of itself, a line each: in words, or as JSON.

use std::io::Write;

use serde_json::{Value, json};

use crate::problem::Problem;

/// How lines are told.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The program that tells.
    pub program: &'static str,
    /// Schema name and version of every line in JSON.
    pub schema: &'static str,
    /// As JSON.
    pub json: bool,
}

impl Report {
    /// Tells `event` in `words`; in JSON with `fields`. Who reads no longer keeps nothing from going on.
    pub fn tell(self, event: &str, words: &str, fields: Value) {
        let mut out = std::io::stdout().lock();
        let line = match self.json {
            true => self.with_head(event, fields).to_string(),
            false => format!("{}: {words}", self.program),
        };
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    /// Tells what keeps the command from being done, all at once.
    pub fn refuse(self, problems: &[Problem]) {
        if self.json {
            let list: Vec<_> = problems.iter().map(Problem::to_json).collect();
            self.tell("refused", "", json!({"problems": list}));
        } else {
            for problem in problems {
                eprintln!("{}: {problem}", self.program);
            }
        }
    }

    fn with_head(self, event: &str, fields: Value) -> Value {
        let mut line = json!({"schema": self.schema, "event": event});
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        line
    }
}
