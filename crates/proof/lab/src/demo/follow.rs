//! Follows a node's event log while it is written, to know its role and redundancy.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::runlog::{Event, EventKind, RedundancyState};

/// What a node last said of itself.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    read: u64,
    rest: Vec<u8>,
    /// Role; empty before it has said one.
    pub role: String,
    /// Redundancy of its group.
    pub redundancy: Option<RedundancyState>,
}

impl Follower {
    /// Follows the log at `path`, which need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            read: 0,
            rest: Vec::new(),
            role: String::new(),
            redundancy: None,
        }
    }

    /// Takes in what has been written since the last call. What cannot be read is left to the
    /// evaluation, which reads the whole log again.
    pub fn poll(&mut self) {
        let Ok(mut file) = File::open(&self.path) else {
            return;
        };
        if file.seek(SeekFrom::Start(self.read)).is_err() {
            return;
        }
        let before = self.rest.len();
        // What was read before an error counts.
        let _ = file.read_to_end(&mut self.rest);
        self.read += (self.rest.len() - before) as u64;
        let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else {
            return;
        };
        let lines: Vec<u8> = self.rest.drain(..=end).collect();
        for line in lines.split(|&byte| byte == b'\n') {
            match serde_json::from_slice::<Event>(line).map(|event| event.kind) {
                Ok(EventKind::Role { to, .. }) => self.role = to,
                Ok(EventKind::Redundancy { state, .. }) => self.redundancy = Some(state),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_are_taken_in_when_they_are_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.jsonl");
        let mut follower = Follower::new(path.clone());
        follower.poll();
        let mut file = File::create(path).unwrap();
        let line = r#"{"time_ns":1,"node":"left","event":"role","from":"starting","to":"backup"}"#;
        file.write_all(&line.as_bytes()[..30]).unwrap();
        follower.poll();
        assert_eq!(follower.role, "");
        file.write_all(&line.as_bytes()[30..]).unwrap();
        file.write_all(
            b"\n{\"time_ns\":2,\"node\":\"left\",\"event\":\"redundancy\",\"state\":\"ok\"}\n",
        )
        .unwrap();
        follower.poll();
        assert_eq!(
            (follower.role.as_str(), follower.redundancy),
            ("backup", Some(RedundancyState::Ok))
        );
    }
}
