//! One process per node of a configuration on a machine.
//!
//! The lock is the kernel's, so it goes with the process however that ends; the file that
//! stays behind holds nothing and hurts no later start.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Of the lock's file: whoever may open it, be it for reading, may lock it, and keep every later start from running.
const PRIVATE: u32 = 0o600;

/// Held for as long as the node runs.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
}

/// Why the lock could not be had.
#[derive(Debug)]
pub enum LockError {
    /// Another process runs this node; its process id where it could be read.
    Running {
        /// The lock's file.
        path: PathBuf,
        /// Process id of the holder.
        pid: Option<u32>,
    },
    /// The file could not be made or locked.
    Io {
        /// The lock's file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

impl std::fmt::Display for LockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Running { path, pid } => {
                write!(f, "this node is already running on this machine")?;
                if let Some(pid) = pid {
                    write!(f, " (process {pid})")?;
                }
                write!(
                    f,
                    "; stop it first, or give this one another control path (lock {})",
                    path.display()
                )
            }
            Self::Io { path, cause } => write!(
                f,
                "cannot lock {}: {cause}; make its folder writable, or give a path in another one",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LockError {}

impl InstanceLock {
    /// Takes the lock whose file is `path`; directories are made as needed.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let io = |cause| LockError::Io {
            path: path.to_owned(),
            cause,
        };
        match path.parent() {
            // It lies where the process is.
            Some(directory) if directory.as_os_str().is_empty() => {
                make_private(Path::new(".")).map_err(io)?;
            }
            Some(directory) => make_private(directory).map_err(io)?,
            None => {}
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(PRIVATE)
            .open(path)
            .map_err(io)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => LockError::Running {
                path: path.to_owned(),
                pid: pid_in(&file),
            },
            // A file system without locks, too: without one, two processes would run unnoticed.
            TryLockError::Error(cause) => io(cause),
        })?;
        // One that was there may have been another user's, who may change that alone.
        let _ = file.set_permissions(Permissions::from_mode(PRIVATE));
        file.set_len(0).map_err(io)?;
        file.rewind().map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }

    /// Whether the system would let [`take`](Self::take) have the file at `path`, which may be locked; makes nothing.
    ///
    /// # Errors
    /// It would not.
    pub fn could_be_made(path: &Path) -> Result<(), LockError> {
        let io = |cause: io::Error| LockError::Io {
            path: path.to_owned(),
            cause,
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let there = nearest_there(folder);
        let owner = fs::metadata(there).map_err(io)?;
        if !owner.is_dir() {
            return Err(io(io::ErrorKind::NotADirectory.into()));
        }
        if there == folder {
            belongs_to_us(&owner).map_err(io)?;
        }
        let file_is_there = path.symlink_metadata().is_ok();
        let (asked, wanted) = match file_is_there {
            true => (path, Access::READ_OK | Access::WRITE_OK),
            false => (there, Access::WRITE_OK | Access::EXEC_OK),
        };
        access(asked, wanted).map_err(|error| io(error.into()))
    }

    /// The process id in the lock's file at `path`: that of who holds the lock or, if nobody does, held it last.
    pub fn noted(path: &Path) -> Option<u32> {
        pid_in(&File::open(path).ok()?)
    }
}

/// The nearest of `directory` and those above it that is there.
fn nearest_there(directory: &Path) -> &Path {
    let mut there = directory.ancestors();
    there
        .find(|it| it.symlink_metadata().is_ok())
        .unwrap_or_else(|| Path::new("."))
}

fn pid_in(file: &File) -> Option<u32> {
    let text = io::read_to_string(file).ok()?;
    text.trim().parse().ok()
}

/// Makes `directory` for this user alone. One that is there already and belongs to another user is
/// refused: whoever owns it could put a socket of his own in the place of ours.
fn make_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    belongs_to_us(&fs::metadata(directory)?)
}

fn belongs_to_us(directory: &fs::Metadata) -> io::Result<()> {
    let owner = directory.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the directory belongs to another user ({owner})"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("own/left.lock");
        InstanceLock::take(&path).unwrap();
        let made = fs::metadata(path.parent().unwrap()).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn nobody_else_may_open_a_lock_and_so_hold_it() {
        let directory = tempfile::tempdir().unwrap();
        let (fresh, there) = (
            directory.path().join("fresh.lock"),
            directory.path().join("there.lock"),
        );
        fs::write(&there, "1\n").unwrap();
        fs::set_permissions(&there, Permissions::from_mode(0o644)).unwrap();
        for path in [fresh, there] {
            let _lock = InstanceLock::take(&path).unwrap();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
    }

    #[test]
    fn a_second_run_beside_the_first_is_refused_and_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sub/left.lock");
        let first = InstanceLock::take(&path).unwrap();
        let refused = InstanceLock::take(&path).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("process {}", std::process::id())),
            "{refused}"
        );
        assert_eq!(InstanceLock::noted(&path), Some(std::process::id()));
        assert_eq!(InstanceLock::noted(&path.with_extension("other")), None);
        drop(first);
        InstanceLock::take(&path).unwrap();
    }
}
