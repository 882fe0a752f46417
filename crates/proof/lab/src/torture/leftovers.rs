//! The directory of a run, and those that killed runs have left behind.
//!
//! Nothing else outlives a killed run: its processes are killed with it, and namespaces and devices
//! have no names, so the kernel removes them with their last process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::TortureError;

const PREFIX: &str = "bumpless-torture-";

/// Where configuration, sockets and logs go.
#[derive(Debug)]
pub struct Directory {
    /// Its path.
    pub path: PathBuf,
    temporary: bool,
}

impl Directory {
    /// Below `keep`, which must be new or empty, or a temporary one.
    ///
    /// # Errors
    /// It cannot be made, or is not empty.
    pub fn new(keep: Option<&Path>) -> Result<Self, TortureError> {
        match keep {
            Some(keep) => Self::kept(keep),
            None => Self::temporary(&std::env::temp_dir()),
        }
        .map_err(|(path, error)| TortureError::system(path.display().to_string(), error))
    }

    fn kept(keep: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let fail = |error| (keep.to_owned(), error);
        fs::create_dir_all(keep).map_err(fail)?;
        if fs::read_dir(keep).map_err(fail)?.next().is_some() {
            let error = io::Error::new(
                io::ErrorKind::DirectoryNotEmpty,
                "choose an empty directory",
            );
            return Err(fail(error));
        }
        let path = keep.canonicalize().map_err(fail)?.join("logs");
        fs::create_dir(&path).map_err(fail)?;
        Ok(Self {
            path,
            temporary: false,
        })
    }

    /// Named after this process, beside others; those of processes that are gone are removed.
    fn temporary(place: &Path) -> Result<Self, (PathBuf, io::Error)> {
        remove_leftovers(place);
        let path = place.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| (path.clone(), error))?;
        Ok(Self {
            path,
            temporary: true,
        })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.temporary {
            // Nothing can be done about a directory that does not go.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes directories of runs whose process is gone.
fn remove_leftovers(place: &Path) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        if pid == std::process::id() || !Path::new(&format!("/proc/{pid}")).exists() {
            // Another user's stays, and so does what is no directory.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_goes_at_the_next_start_and_what_runs_stays() {
        let place = tempfile::tempdir().unwrap();
        let of = |name: &str| place.path().join(format!("{PREFIX}{name}"));
        // No process has so high a number; process 1 is always there.
        for name in ["4294967295", "1", "notes"] {
            fs::create_dir(of(name)).unwrap();
            fs::write(of(name).join("plant.jsonl"), "{}").unwrap();
        }
        let own = Directory::temporary(place.path()).unwrap();
        assert!(!of("4294967295").exists());
        assert!(of("1").exists() && of("notes").exists() && own.path.exists());
        let path = own.path.clone();
        drop(own);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_kept_goes_to_an_empty_directory_and_stays() {
        let place = tempfile::tempdir().unwrap();
        let kept = Directory::new(Some(&place.path().join("run"))).unwrap();
        let path = kept.path.clone();
        drop(kept);
        assert!(path.exists());
        assert!(Directory::new(Some(&place.path().join("run"))).is_err());
    }
}
