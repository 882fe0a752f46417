//! Text from files, whatever the path leads to: bounded, and never waiting.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::MAX_FILE_LEN;
use crate::problem::Problem;

/// Why a file's text cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The line, from 1, of the first byte that is no text; 0: the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl std::error::Error for Unreadable {}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{}; {}", self.wrong, self.right)
    }
}

/// The text of the regular file at `path`, which has at most `max` bytes.
///
/// # Errors
/// It is no regular file, is too long, is no UTF-8, or the system refuses.
pub fn read_text_file(path: &Path, max: usize) -> Result<String, Unreadable> {
    let refused = |error: io::Error| of_file(format!("cannot be read: {error}"), "a readable file");
    // Before it is opened: opening a pipe waits for its other end.
    let kind = fs::metadata(path).map_err(refused)?.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() {
            "is a directory"
        } else {
            "is no regular file (a device, pipe or socket)"
        };
        return Err(of_file(what.into(), "a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(refused)?;
    // A length can be wrong by the time of reading, and some files (those of /proc) have none.
    file.take(max as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(refused)?;
    if bytes.len() > max {
        let wrong = format!("has more than {max} bytes");
        return Err(of_file(wrong, "a file that is no longer than that"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let (good, bad) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        Unreadable {
            line: 1 + good.iter().filter(|&&byte| byte == b'\n').count(),
            wrong: format!("byte 0x{:02x} is no text", bad.first().unwrap_or(&0)),
            right: "save the file as UTF-8".into(),
        }
    })
}

/// The text of the configuration file at `path`, of a pair or of a host: a regular one of at most [`MAX_FILE_LEN`] bytes.
///
/// # Errors
/// One problem: on the line of a byte that is no text, else on line 0.
pub fn read_configuration(path: &Path) -> Result<String, Vec<Problem>> {
    read_text_file(path, MAX_FILE_LEN).map_err(|error| {
        vec![Problem {
            file: path.display().to_string(),
            line: error.line,
            field: String::new(),
            wrong: error.wrong,
            right: error.right,
        }]
    })
}

fn of_file(wrong: String, wanted: &str) -> Unreadable {
    Unreadable {
        line: 0,
        wrong,
        right: format!("give the path of {wanted} in UTF-8"),
    }
}
