//! The folder in which a node keeps states: one process at a time, files replaced whole.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What the name of a file ends with.
const STATE: &str = ".state";
/// What is added to it while it is written.
const TEMPORARY: &str = ".tmp";
/// What is added to it when it was refused.
const REFUSED: &str = ".refused";

/// Why a folder cannot be used.
#[derive(Debug)]
pub enum FolderError {
    /// Another process keeps states in it.
    InUse,
    /// What the system says.
    Io(io::Error),
}

impl From<io::Error> for FolderError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::fmt::Display for FolderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InUse => f.write_str("another node keeps its states there"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

/// The folder, locked by the kernel (`flock` on the folder itself) for as long as it is open. It is opened anew after
/// each failure, so one that was removed or replaced is found again.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    open: Option<File>,
}

impl Folder {
    /// The folder `path`, not yet opened.
    pub const fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    /// Makes it for this user alone if it is not there, and takes it.
    ///
    /// # Errors
    /// Another process has it, or the system refuses.
    pub fn make(&mut self) -> Result<(), FolderError> {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path);
        // Whether it can be used is found out by using it.
        let taken = self.take();
        match (made, taken) {
            (_, Err(FolderError::InUse)) => Err(FolderError::InUse),
            (Err(error), Err(_)) => Err(error.into()),
            (_, taken) => taken,
        }
    }

    /// Opens and locks it unless that is done and it still is the one at its path.
    fn take(&mut self) -> Result<(), FolderError> {
        let at_path = fs::metadata(&self.path)?;
        if let Some(open) = &self.open {
            let open = open.metadata()?;
            if (open.dev(), open.ino()) == (at_path.dev(), at_path.ino()) {
                return Ok(());
            }
        }
        self.open = None;
        let folder = File::open(&self.path)?;
        folder.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => FolderError::InUse,
            TryLockError::Error(error) => FolderError::Io(error),
        })?;
        self.open = Some(folder);
        Ok(())
    }

    /// The file called `name`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{STATE}"))
    }

    /// Removes what was being written when an earlier process ended.
    pub fn remove_leftovers(&self) {
        let leftover = format!("{STATE}{TEMPORARY}");
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_string_lossy().ends_with(&leftover) {
                // One that stays is overwritten by the next state.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// The bytes of the file called `name`, no more than `most` and one; `None` if there is none.
    ///
    /// # Errors
    /// What the system says; or it is no regular file.
    pub fn read(&self, name: &str, most: usize) -> io::Result<Option<Vec<u8>>> {
        let path = self.file(name);
        let kind = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?.file_type(),
        };
        if !kind.is_file() {
            // Opening a pipe would wait for its other end.
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(&path)?
            .take(most as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Puts a file that was refused aside, in place of the one that was refused before; where that cannot be done, it
    /// stays until the first state takes its place. Returns where it is.
    pub fn put_aside(&self, name: &str) -> PathBuf {
        let path = self.file(name);
        let aside = with(&path, REFUSED);
        match fs::rename(&path, &aside) {
            Ok(()) => aside,
            Err(_) => path,
        }
    }

    /// Has the content of a file that was refused kept aside, in place of the one that was refused before, and in its
    /// place as well, until the first state takes that. Returns where it is aside; `None`: it is in its place alone.
    pub fn keep_beside(&self, name: &str) -> Option<PathBuf> {
        let path = self.file(name);
        let aside = with(&path, REFUSED);
        // It may be there, or not.
        let _ = fs::remove_file(&aside);
        fs::hard_link(&path, &aside).ok().map(|()| aside)
    }

    /// Replaces the file called `name`: after a power failure at any moment it is the one before or this one, whole.
    ///
    /// # Errors
    /// What the system says; the file is the one before.
    pub fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let result = self.try_replace(name, bytes);
        if result.is_err() {
            self.open = None;
            // On a full disk what was written of it must go.
            let _ = fs::remove_file(with(&self.file(name), TEMPORARY));
        }
        result
    }

    fn try_replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        self.take()?;
        let path = self.file(name);
        let temporary = with(&path, TEMPORARY);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        if let Some(folder) = &self.open {
            folder.sync_all()?;
        }
        Ok(())
    }
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests;
