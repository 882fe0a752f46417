//! The configuration's file, and the next configuration beside it: what a node finds when it starts again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bumpless_config::{Config, MAX_FILE_LEN, read_text_file};

/// The file of a node's configuration, which it shares with other nodes on the same machine, and one beside
/// it that is the node's own.
#[derive(Clone, Debug)]
pub struct Store {
    file: PathBuf,
    next: PathBuf,
    draft: PathBuf,
}

impl Store {
    /// Of `node`, which is run with the configuration in `file`.
    ///
    /// # Errors
    /// The file cannot be found.
    pub fn new(file: &Path, node: &str) -> io::Result<Self> {
        // A link to the file stays a link.
        let file = file.canonicalize()?;
        let mut next = file.clone().into_os_string();
        next.push(format!(".{node}.next"));
        let mut draft = next.clone();
        draft.push(".draft");
        Ok(Self {
            file,
            next: next.into(),
            draft: draft.into(),
        })
    }

    /// The configuration's file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What lies beside the file, if anything whole.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn next(&self) -> io::Result<Option<String>> {
        // Of a process that was killed while it wrote; nobody was told of it.
        let _ = fs::remove_file(&self.draft);
        if !self.next.try_exists()? {
            return Ok(None);
        }
        let text = read_text_file(&self.next, MAX_FILE_LEN).map_err(io::Error::other)?;
        Ok(Some(text))
    }

    /// Puts `text` beside the file: after a power failure it is there whole, or not at all.
    ///
    /// # Errors
    /// What the system says, with the place.
    pub fn keep(&self, text: &str) -> Result<(), String> {
        let draft = &self.draft;
        let write = || -> io::Result<()> {
            let mut file = File::create(draft)?;
            file.write_all(text.as_bytes())?;
            file.set_permissions(fs::metadata(&self.file)?.permissions())?;
            file.sync_all()?;
            fs::rename(draft, &self.next)?;
            self.sync_directory()
        };
        write().map_err(|error| {
            let _ = fs::remove_file(draft);
            format!(
                "cannot write {}: {error}; the node's user must be able to write there",
                self.next.display()
            )
        })
    }

    /// What lies beside the file takes its place. Where another node on this machine has done so already,
    /// nothing is left to do.
    ///
    /// # Errors
    /// What the system says, with the place.
    pub fn make_last(&self, fingerprint: u64) -> Result<(), String> {
        let make = || -> io::Result<()> {
            if has(&self.file, fingerprint) {
                remove(&self.next)?;
            } else {
                fs::rename(&self.next, &self.file)?;
            }
            self.sync_directory()
        };
        make().map_err(|error| format!("cannot replace {}: {error}", self.file.display()))
    }

    /// Removes what lies beside the file.
    ///
    /// # Errors
    /// What the system says, with the place.
    pub fn forget(&self) -> Result<(), String> {
        let forget = || -> io::Result<()> {
            remove(&self.next)?;
            self.sync_directory()
        };
        forget().map_err(|error| format!("cannot remove {}: {error}", self.next.display()))
    }

    /// A name in a directory lasts when the directory does.
    fn sync_directory(&self) -> io::Result<()> {
        match self.file.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}

fn has(file: &Path, fingerprint: u64) -> bool {
    Config::load(file).is_ok_and(|config| config.fingerprint() == fingerprint)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = include_str!("../../../../../examples/table20.toml");

    fn next() -> (String, u64) {
        let text = OLD.replace("name = \"table20\"", "name = \"another\"");
        let fingerprint = Config::parse(&text, "next").unwrap().fingerprint();
        (text, fingerprint)
    }

    #[test]
    fn what_is_kept_is_found_again_and_takes_the_files_place() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pair.toml");
        fs::write(&file, OLD).unwrap();
        let (text, fingerprint) = next();
        let stores = ["left", "right"].map(|node| Store::new(&file, node).unwrap());
        for store in &stores {
            assert_eq!(store.next().unwrap(), None);
            store.keep(&text).unwrap();
            assert_eq!(store.next().unwrap().as_deref(), Some(&*text));
        }
        // Both nodes are on one machine and have one file.
        for store in &stores {
            store.make_last(fingerprint).unwrap();
            assert_eq!(store.next().unwrap(), None);
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_forgotten_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pair.toml");
        fs::write(&file, OLD).unwrap();
        let store = Store::new(&file, "left").unwrap();
        store.keep("text").unwrap();
        store.forget().unwrap();
        store.forget().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(store.make_last(1).unwrap_err().contains("pair.toml"));
    }
    #[test]
    fn what_a_killed_process_has_half_written_is_not_found_and_goes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pair.toml");
        fs::write(&file, OLD).unwrap();
        let store = Store::new(&file, "left").unwrap();
        fs::write(&store.draft, "hal").unwrap();
        assert_eq!(store.next().unwrap(), None);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
