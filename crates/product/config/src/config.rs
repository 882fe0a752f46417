//! Entry points: reading a file, and questions to a configuration.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bumpless_base::{Duration, NodeId};

use crate::check::{self, Room};
use crate::file;
use crate::model::{Application, ApplicationKind, Config};
use crate::problem::Problem;
use crate::reader::Reader;
use crate::text::read_configuration;

impl Config {
    /// Reads and checks `text`; `name` is the file's name in messages.
    ///
    /// # Errors
    /// Everything that is wrong, ordered by line, field and text; never empty.
    pub fn parse(text: &str, name: &str) -> Result<Self, Vec<Problem>> {
        read(text, name, Room::Needed)
    }

    /// The same, but states may need more than the networks carry: a plan says of those how much that is and what
    /// would help, which a refusal does not.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_to_plan(text: &str, name: &str) -> Result<Self, Vec<Problem>> {
        read(text, name, Room::LeftToPlan)
    }

    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse) and [`read_text`](Self::read_text).
    pub fn load(path: &Path) -> Result<Self, Vec<Problem>> {
        Self::parse(&Self::read_text(path)?, &path.display().to_string())
    }

    /// The text of the file at `path`, which must be a regular one of at most [`MAX_FILE_LEN`](crate::MAX_FILE_LEN) bytes.
    ///
    /// # Errors
    /// One problem: on the line of a byte that is no text, else on line 0.
    pub fn read_text(path: &Path) -> Result<String, Vec<Problem>> {
        read_configuration(path)
    }

    /// The node named `name`.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let i = self.nodes.iter().position(|node| node.name == name)?;
        u8::try_from(i).ok().map(NodeId)
    }

    /// How long an ordered hand-over may take: each application must once have its newest state at the backup,
    /// those of equal period at the same time.
    pub fn hand_over_time(&self) -> Duration {
        let cycles = self
            .applications
            .iter()
            .map(|app| app.period + app.deadline);
        self.timing.start_wait + cycles.max().unwrap_or_default() * 2
    }

    /// Bytes that the state buffers of `node` take; at most [`memory_max`](crate::Transfer::memory_max).
    pub fn state_memory(&self, node: NodeId) -> u64 {
        let of = |app: &crate::Application| {
            let candidates = &self.groups[app.group].candidates;
            let runs = candidates.contains(&node);
            runs.then(|| check::buffers(app.state_max, candidates.len(), kinds(app)))
        };
        let bytes: u128 = self.applications.iter().filter_map(of).sum();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Most bytes that the state buffers of a node may take: what the file permits, of what this program has addresses for.
    pub(crate) fn buffers_max(&self) -> u64 {
        let addressable = check::ADDRESSABLE.unwrap_or(u64::MAX);
        self.transfer.memory_max.min(addressable)
    }

    /// The largest state that `application` may have, bytes, while all others stay as they are: what the wire version can number,
    /// and the nodes that hold it have memory for.
    pub fn largest_state(&self, application: &crate::Application) -> u32 {
        let candidates = &self.groups[application.group].candidates;
        let used = candidates.iter().map(|node| self.state_memory(*node)).max();
        let free = self.buffers_max().saturating_sub(used.unwrap_or(0));
        let more =
            u128::from(free) / check::buffers(1, candidates.len(), kinds(application)).max(1);
        let payload = u128::from(self.transfer.payload_size);
        let numbered = u128::from(self.transfer.version.max_packets()) * payload;
        let most = (u128::from(application.state_max) + more).min(numbered);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// The nodes that share a group with `node`, ascending.
    pub fn partners(&self, node: NodeId) -> Vec<NodeId> {
        let shared = self
            .groups
            .iter()
            .filter(|group| group.candidates.contains(&node));
        let mut partners: Vec<NodeId> = shared
            .flat_map(|group| group.candidates.iter().copied())
            .filter(|&id| id != node)
            .collect();
        partners.sort_unstable();
        partners.dedup();
        partners
    }

    /// Path of `node`'s control socket: as configured, else `bumpless/PAIR-NODE.sock` below
    /// `$XDG_RUNTIME_DIR` if that is absolute, else `/tmp/bumpless-UID/PAIR-NODE.sock`. A node of another
    /// configuration goes by its number.
    ///
    /// Reads the environment and, for the user's number, `/proc/self`.
    pub fn control_socket(&self, node: NodeId) -> PathBuf {
        let known = self.nodes.get(usize::from(node.0));
        if let Some(path) = known.and_then(|node| node.control.as_ref()) {
            return path.clone();
        }
        let name = known.map_or_else(|| node.0.to_string(), |node| node.name.clone());
        // A relative one is invalid by its specification: each process would have another folder.
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let directory = match runtime.filter(|folder| folder.is_absolute()) {
            Some(folder) => folder.join("bumpless"),
            None => {
                let user = std::fs::metadata("/proc/self").map_or(0, |process| process.uid());
                PathBuf::from(format!("/tmp/bumpless-{user}"))
            }
        };
        directory.join(format!("{}-{name}.sock", self.pair))
    }
}

/// Which kinds of buffers `application` has besides those that all have.
fn kinds(application: &Application) -> check::Kinds {
    check::Kinds {
        persist: application.persist.is_some(),
        program: matches!(application.kind, ApplicationKind::Program(_)),
        sealed: !application.security.is_none(),
        unsent: application.unsent,
    }
}

fn read(text: &str, name: &str, room: Room) -> Result<Config, Vec<Problem>> {
    let mut reader = Reader::new(name, text);
    let file = file::read(&mut reader, text);
    let config = file.and_then(|file| check::resolve(&mut reader, &file, room));
    config.ok_or_else(|| reader.into_problems())
}
