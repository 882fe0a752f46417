//! Where a network is known by its name: a lock that its process has for as long as it lives, and a file that tells of it.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::build::Delays;
use super::namespace;
use super::ospf::{self, Routing};
use crate::topology::{NodeId, Topology};

/// What all files of networks begin with.
const PREFIX: &str = "/run/bumpless-wan-";
/// How long a network that comes up, or goes, is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);
/// Nobody takes longer to look whether a network is up.
const LOOKING: Duration = Duration::from_secs(1);
/// Changes of links take less.
const LOOK_AT_LINKS: Duration = Duration::from_millis(1);

/// A network that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    /// Its name, which is that of the file.
    #[serde(skip)]
    pub name: String,
    /// The process that holds it.
    pub pid: u32,
    /// The pool that its addresses are from.
    pub pool: String,
    /// Who decides where packets go.
    #[serde(default)]
    pub routing: Routing,
    /// How its links are delayed.
    pub delays: Delays,
    /// What it took to come up, milliseconds.
    pub took_ms: u64,
    /// Descriptors of the process, a namespace each, in the order of nodes.
    pub namespaces: Vec<RawFd>,
    /// What [`Topology::to_json`] says.
    pub topology: String,
}

impl Running {
    /// The file that stands for the namespace of a node.
    pub fn namespace(&self, node: usize) -> PathBuf {
        format!("/proc/{}/fd/{}", self.pid, self.namespaces[node]).into()
    }

    /// Whether the process that holds it is gone, and the network with it.
    pub fn has_ended(&self) -> bool {
        self.namespace(0).symlink_metadata().is_err()
    }

    /// Puts the calling thread in the namespace of a node.
    ///
    /// # Errors
    /// The network has ended, or the right to it is missing (CAP_SYS_ADMIN).
    pub fn enter(&self, node: NodeId) -> io::Result<()> {
        namespace::enter(&File::open(self.namespace(node.index()))?)
    }

    /// Keeps others from changing links while the value lives, since each looks at what is there and replaces it; whoever does so
    /// already is waited for.
    ///
    /// # Errors
    /// The network has ended, or somebody changes links for too long.
    pub fn changing(&self) -> io::Result<Changing> {
        alone(&file_of(&self.name, "json"), PATIENCE)
    }

    /// Its nodes and links.
    ///
    /// # Errors
    /// The file was written by something else.
    pub fn topology(&self) -> Result<Topology, PlaceError> {
        Topology::from_json(&self.topology)
            .map_err(|_| PlaceError::Unreadable("its topology is none".to_owned()))
    }
}

/// Links that nobody else changes while this lives.
#[derive(Debug)]
pub struct Changing(#[expect(dead_code, reason = "it is held")] File);

fn alone(path: &Path, patience: Duration) -> io::Result<Changing> {
    let file = File::open(path)?;
    let since = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if since.elapsed() > patience => {
                let why = format!(
                    "another command has been changing links for {} s",
                    patience.as_secs()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => thread::sleep(LOOK_AT_LINKS),
            Err(error) => return Err(error.into()),
            Ok(()) => return Ok(Changing(file)),
        }
    }
}

fn file_of(name: &str, ending: &str) -> PathBuf {
    format!("{PREFIX}{name}.{ending}").into()
}

/// What is wrong with where a network is known.
#[derive(Debug)]
pub enum PlaceError {
    /// A name that cannot be one.
    Name(String),
    /// The files cannot be used.
    System(PathBuf, io::Error),
    /// The file that tells of a network was written by another version.
    Unreadable(String),
    /// Another process has been making it, or ending, for too long: so many seconds.
    Busy(String, u64),
    /// It was to end, and has not: what of it is there still.
    Stays(String, String),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "{name:?} cannot be the name of a network; take 1 to 32 letters, digits and '-'"
            ),
            Self::System(path, error) => {
                write!(f, "cannot use {}: {error}; run as root", path.display())
            }
            Self::Unreadable(why) => write!(
                f,
                "what is known of the network cannot be read: {why}; use the version of bumpless that made it"
            ),
            Self::Busy(name, seconds) => write!(
                f,
                "the network {name} has been coming up or going for {seconds} s; see which process has {PREFIX}{name}.lock open"
            ),
            Self::Stays(name, what) => write!(
                f,
                "the network {name} has not ended: {what} is there after {} s; see what the kernel says (dmesg), and try again",
                PATIENCE.as_secs()
            ),
        }
    }
}

impl std::error::Error for PlaceError {}

/// The name of a network, and where it is known.
#[derive(Clone, Debug)]
pub struct Place {
    name: String,
}

/// A name that no other process has for as long as this lives.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "it is held")] File);

impl Place {
    /// Of the network of this name.
    ///
    /// # Errors
    /// It cannot be a name.
    pub fn new(name: &str) -> Result<Self, PlaceError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || name.len() > 32 || !name.bytes().all(plain) {
            return Err(PlaceError::Name(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn file(&self, ending: &str) -> PathBuf {
        file_of(&self.name, ending)
    }

    /// Takes the name; `None` if another process has it.
    ///
    /// # Errors
    /// The file of the lock cannot be used.
    pub fn lock(&self) -> Result<Option<Lock>, PlaceError> {
        let path = self.file("lock");
        let failed = |error: io::Error| PlaceError::System(path.clone(), error);
        loop {
            let mut options = OpenOptions::new();
            let file = options
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
                .map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                other => other.map_err(|error| failed(error.into()))?,
            }
            // Whoever had it before may have removed the file that was opened.
            let same = |there: fs::Metadata| {
                let here = file.metadata();
                here.is_ok_and(|here| (here.dev(), here.ino()) == (there.dev(), there.ino()))
            };
            if fs::metadata(&path).is_ok_and(same) {
                return Ok(Some(Lock(file)));
            }
        }
    }

    /// Takes the name as [`Self::lock`] does, but for a process that has it for a moment only, to look whether anybody has.
    ///
    /// # Errors
    /// As [`Self::lock`].
    pub fn lock_to_keep(&self) -> Result<Option<Lock>, PlaceError> {
        let since = Instant::now();
        loop {
            let lock = self.lock()?;
            let is_up = self.file("json").exists();
            if lock.is_some() || is_up || since.elapsed() > LOOKING {
                return Ok(lock);
            }
            thread::sleep(LOOK);
        }
    }

    /// Tells of the network, whole or not at all. Only who has the lock does.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn tell(&self, _lock: &Lock, running: &Running) -> Result<(), PlaceError> {
        let (path, part) = (self.file("json"), self.file("part"));
        let text = serde_json::to_string(running).expect("numbers and strings are JSON");
        // Who can read it can keep others from changing links.
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        options
            .open(&part)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&part, &path))
            .map_err(|error| PlaceError::System(path, error))
    }

    /// A folder for what belongs to the network while it is up, readable for its owner alone; gone with its other files.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self) -> Result<PathBuf, PlaceError> {
        let path = self.file("d");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|error| PlaceError::System(path.clone(), error))?;
        Ok(path)
    }

    /// Removes all files. Nothing can be done about one that does not go.
    pub fn clear(&self, lock: Lock) {
        let _ = fs::remove_dir_all(self.file("d"));
        for ending in ["json", "part", "lock"] {
            let _ = fs::remove_file(self.file(ending));
        }
        drop(lock);
    }

    /// The network of this name, if it runs; one that comes up is waited for. What a killed one has left is removed.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn running(&self) -> Result<Option<Running>, PlaceError> {
        let since = Instant::now();
        loop {
            if let Some(lock) = self.lock()? {
                self.clear(lock);
                return Ok(None);
            }
            if let Ok(text) = fs::read_to_string(self.file("json")) {
                let running: Running = serde_json::from_str(&text)
                    .map_err(|error| PlaceError::Unreadable(error.to_string()))?;
                return Ok(Some(Running {
                    name: self.name.clone(),
                    ..running
                }));
            }
            // What belongs to a network is there before that only for routing daemons, which take their time to agree.
            let patience = match self.file("d").exists() {
                true => ospf::PATIENCE + PATIENCE,
                false => PATIENCE,
            };
            if since.elapsed() > patience {
                let seconds = patience.as_secs();
                return Err(PlaceError::Busy(self.name.clone(), seconds));
            }
            thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_changes_links_at_a_time_and_another_waits_no_longer_than_it_may() {
        let path = std::env::temp_dir().join(format!("bumpless-wan-alone-{}", std::process::id()));
        File::create(&path).unwrap();
        let first = alone(&path, Duration::ZERO).unwrap();
        let refused = alone(&path, Duration::from_millis(5)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        drop(first);
        alone(&path, Duration::ZERO).unwrap();
        fs::remove_file(&path).unwrap();
        let gone = alone(&path, Duration::ZERO).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }
}
