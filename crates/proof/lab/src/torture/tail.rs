//! Follows a file of JSON lines while it is written.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// Reads what has been added.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    read: u64,
    rest: Vec<u8>,
    /// Whole lines that could not be understood.
    strange: u64,
    /// It has given a line.
    told: bool,
}

impl Tail {
    /// Follows the file at `path`, which need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            read: 0,
            rest: Vec::new(),
            strange: 0,
            told: false,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lines since the last call that could not be understood. Every process logs that it has started, so a log that has
    /// given no line at all lacks one.
    pub fn take_holes(&mut self) -> u64 {
        std::mem::take(&mut self.strange) + u64::from(!self.told)
    }

    /// The whole lines that have been written since the last call.
    pub fn take<T: DeserializeOwned>(&mut self) -> Vec<T> {
        let Some(end) = self.fill() else {
            return Vec::new();
        };
        let lines: Vec<u8> = self.rest.drain(..=end).collect();
        let lines = lines.split(|&byte| byte == b'\n');
        let parsed = lines
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice);
        let mut found = Vec::new();
        self.told = true;
        for line in parsed {
            match line {
                Ok(line) => found.push(line),
                Err(_) => self.strange += 1,
            }
        }
        found
    }

    /// Reads on; where the last line ends.
    fn fill(&mut self) -> Option<usize> {
        let mut file = File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(self.read)).ok()?;
        let before = self.rest.len();
        // What was read before an error counts.
        let _ = file.read_to_end(&mut self.rest);
        self.read += (self.rest.len() - before) as u64;
        self.rest.iter().rposition(|&byte| byte == b'\n')
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn each_line_is_given_once_when_it_is_whole_and_strange_ones_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        let mut tail = Tail::new(path.clone());
        assert!(tail.take::<u64>().is_empty(), "there is no file yet");
        let mut file = File::create(path).unwrap();
        file.write_all(b"1\n2\nthree\n4").unwrap();
        assert_eq!(tail.take::<u64>(), [1, 2]);
        file.write_all(b"4\n").unwrap();
        assert_eq!(tail.take::<u64>(), [44]);
        assert!(tail.take::<u64>().is_empty());
        assert_eq!([tail.take_holes(), tail.take_holes()], [1, 0]);
        let mut of_nobody = Tail::new(directory.path().join("none.jsonl"));
        assert_eq!(
            [of_nobody.take::<u64>().len() as u64, of_nobody.take_holes()],
            [0, 1],
            "no line at all"
        );
    }
}
