//! What there was before a change, in a file: whoever finds the file without its holder puts it back.
//!
//! The lock is the kernel's, so it goes with its holder however that ends.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bumpless_guarded_file::{Cause, Guard};

use crate::device;
use crate::setting::{Setting, Value};
use crate::tree::Tree;

/// Of a record's file: whoever may open it, be it for reading, may lock it, and nothing would be changed or put back.
const PRIVATE: u32 = 0o600;
/// Most bytes of a record that are read.
const LEN_MAX: u64 = 1 << 20;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What was changed.
    pub setting: Setting,
    /// What it was.
    pub before: Value,
    /// What it was changed to.
    pub after: Value,
}

/// Why there is no record to be had.
#[derive(Debug)]
pub enum RecordError {
    /// Somebody holds it.
    Held,
    /// Others could have written the file, or put another one in its place.
    NotBelieved(PathBuf, Cause),
    /// The file, or its folder, cannot be made, locked or read.
    Io(PathBuf, io::Error),
}

/// The record of an interface, held alone.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
    /// Name of the interface.
    name: String,
    /// What is to be put back, in the order in which it was changed.
    changes: Vec<Change>,
    /// Whether the interface is the one of which the changes are: one that came later has its name.
    is_same: bool,
}

impl Record {
    /// Takes the record of the interface called `name` in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn take(folder: &Path, name: &str) -> Result<Self, RecordError> {
        let path = folder.join(file_name(name));
        let io = |error| RecordError::Io(path.clone(), error);
        make(folder)?;
        loop {
            let mut file = open(&path)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Err(RecordError::Held),
                Err(TryLockError::Error(error)) => return Err(io(error)),
                Ok(()) => {}
            }
            // Its holder may have removed it in between.
            let (held, there) = (file.metadata().map_err(io)?, fs::metadata(&path));
            if there.is_ok_and(|there| there.ino() == held.ino()) {
                let (is_same, changes) = read(&mut file, name).map_err(io)?;
                return Ok(Self {
                    path,
                    file,
                    name: name.to_owned(),
                    changes,
                    is_same,
                });
            }
        }
    }

    /// Writes down a change before it is made.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, change: Change) -> io::Result<()> {
        let mut text = String::new();
        if self.changes.is_empty() {
            let _ = writeln!(text, "{}", identity(&self.name));
        }
        let (kind, which) = change.setting.words();
        let _ = writeln!(text, "{kind} {which} {} {}", change.before, change.after);
        self.file.write_all(text.as_bytes())?;
        self.changes.push(change);
        Ok(())
    }

    /// Puts back what is as it was changed to; what somebody else has changed since stays. How many were put back, and what the kernel
    /// refused, a sentence each: that is still to be put back.
    pub fn put_back(&mut self, tree: &Tree) -> (usize, Vec<String>) {
        let (mut count, mut kept, mut refused) = (0, Vec::new(), Vec::new());
        for change in std::mem::take(&mut self.changes).into_iter().rev() {
            let is_ours = self.is_same && { change.setting.read(tree, &self.name) }
                .is_ok_and(|it| it == change.after);
            if !is_ours {
                continue;
            }
            match change.setting.write(tree, &self.name, change.before) {
                Ok(()) => count += 1,
                Err(error) => {
                    refused.push(format!(
                        "{} of {} cannot be set back to {}: {error}",
                        change.setting, self.name, change.before
                    ));
                    kept.push(change);
                }
            }
        }
        // What cannot be written is found as it is, and then is as it was before already.
        let _ = self.file.set_len(0);
        self.is_same = true;
        for change in kept.into_iter().rev() {
            let _ = self.add(change);
        }
        (count, refused)
    }

    /// Removes the file, unless something is to be put back still.
    pub fn close(self) {
        if self.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Whether nothing is to be put back.
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// Names of interfaces of the thread's network namespace that have a record in `folder`.
pub fn names(folder: &Path) -> Vec<String> {
    let begins = file_name("");
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        Some(name.strip_prefix(&begins)?.to_owned())
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Of an interface of the thread's network namespace: other namespaces may have one of its name.
fn file_name(name: &str) -> String {
    let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |it| it.ino());
    format!("{namespace}-{name}")
}

/// Which interface it is: the kernel's number of it, and its hardware address.
fn identity(name: &str) -> String {
    let number = device::number(name).unwrap_or(0);
    let address = device::hardware_address(name);
    format!("interface {number} {}", address.as_deref().unwrap_or("-"))
}

fn make(folder: &Path) -> Result<(), RecordError> {
    let io = |error| RecordError::Io(folder.to_owned(), error);
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o755);
    builder.create(folder).map_err(io)?;
    believed(folder, &fs::metadata(folder).map_err(io)?)
}

fn open(path: &Path) -> Result<File, RecordError> {
    let io = |error| RecordError::Io(path.to_owned(), error);
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(PRIVATE);
    let file = options.custom_flags(libc::O_NOFOLLOW).open(path);
    let file = file.map_err(io)?;
    believed(path, &file.metadata().map_err(io)?)?;
    // One that was there may have another mode; what is believed is this user's.
    let _ = file.set_permissions(Permissions::from_mode(PRIVATE));
    Ok(file)
}

/// What others could have written is not believed.
fn believed(path: &Path, metadata: &fs::Metadata) -> Result<(), RecordError> {
    let checked = Guard::Unchanged.check(metadata);
    checked.map_err(|cause| RecordError::NotBelieved(path.to_owned(), cause))
}

/// What a record has, and whether it is of this very interface. A line that its writer could not finish is of a change that was not made.
fn read(file: &mut File, name: &str) -> io::Result<(bool, Vec<Change>)> {
    let mut text = String::new();
    file.take(LEN_MAX).read_to_string(&mut text)?;
    let mut lines = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    let Some(first) = lines.next() else {
        return Ok((true, Vec::new()));
    };
    Ok((first == identity(name), lines.filter_map(change).collect()))
}

fn change(line: &str) -> Option<Change> {
    let mut words = line.split(' ');
    let setting = Setting::from_words(words.next()?, words.next()?)?;
    let (before, after) = (setting.value(words.next()?)?, setting.value(words.next()?)?);
    let change = Change {
        setting,
        before,
        after,
    };
    words.next().is_none().then_some(change)
}

#[cfg(test)]
mod tests {
    use bumpless_base::Processors;

    use super::*;

    fn changes() -> [Change; 3] {
        let list = |text| Value::Processors(Processors::read_list(text).unwrap());
        let change = |setting, before, after| Change {
            setting,
            before,
            after,
        };
        [
            change(Setting::Interrupt(38), list("0-1"), list("0")),
            change(Setting::Queue("rx-0".to_owned()), list(""), list("0,2-3")),
            change(
                Setting::ThreadPriority(7),
                Value::Number(0),
                Value::Number(51),
            ),
        ]
    }

    #[test]
    fn what_a_holder_wrote_down_is_found_once_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("made");
        let mut record = Record::take(&folder, "lo").unwrap();
        assert!(record.is_empty());
        for change in changes() {
            record.add(change).unwrap();
        }
        assert!(matches!(
            Record::take(&folder, "lo"),
            Err(RecordError::Held)
        ));
        assert_eq!(names(&folder), ["lo"]);
        drop(record);
        let mut record = Record::take(&folder, "lo").unwrap();
        assert_eq!(
            (record.is_same, &record.changes[..]),
            (true, &changes()[..])
        );
        // Nothing of it is as it was changed to here.
        record.put_back(&Tree::below(&folder));
        record.close();
        assert!(names(&folder).is_empty());
    }

    /// V-98: such as processors less.
    #[test]
    fn what_the_kernel_has_made_of_a_change_is_put_back_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sys/class/net/lo/threaded");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        for is in ["2", "1", "7"] {
            let mut record = Record::take(&folder.path().join("records"), "lo").unwrap();
            for after in [2, 1] {
                let after = Value::Number(after);
                let (setting, before) = (Setting::Threaded, Value::Number(0));
                let change = Change {
                    setting,
                    before,
                    after,
                };
                record.add(change).unwrap();
            }
            fs::write(&file, is).unwrap();
            let tree = Tree::below(folder.path());
            // Anything else is somebody else's.
            let (count, then) = if is == "7" { (0, "7") } else { (1, "0") };
            assert_eq!(record.put_back(&tree), (count, Vec::new()), "{is}");
            assert_eq!(fs::read_to_string(&file).unwrap(), then);
            assert!(record.is_empty());
            record.close();
        }
    }

    #[test]
    fn a_line_cut_short_is_no_change_and_another_interface_of_the_name_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::take(folder.path(), "lo").unwrap();
        record.add(changes()[0].clone()).unwrap();
        record.file.write_all(b"interrupt 39 0-1 0").unwrap();
        let path = record.path.clone();
        drop(record);
        let record = Record::take(folder.path(), "lo").unwrap();
        assert_eq!(record.changes, changes()[..1]);
        drop(record);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("interface 1 ", "interface 2 ", 1)).unwrap();
        let mut record = Record::take(folder.path(), "lo").unwrap();
        assert!(!record.is_same);
        assert_eq!(
            record.put_back(&Tree::below(folder.path())),
            (0, Vec::new())
        );
    }

    #[test]
    fn nobody_else_may_open_a_record_and_so_hold_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file_name("lo"));
        for was in [None, Some(0o644)] {
            if let Some(mode) = was {
                fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            }
            let record = Record::take(folder.path(), "lo").unwrap();
            let mode = record.file.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{was:?}");
        }
    }

    #[test]
    fn a_record_that_others_could_have_written_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        drop(Record::take(folder.path(), "lo").unwrap());
        let path = folder.path().join(file_name("lo"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(
            Record::take(folder.path(), "lo"),
            Err(RecordError::NotBelieved(..))
        ));
        assert_eq!(change("queue ../rx-0 0 1"), None);
        assert_eq!(change("queue rx-0/../../x 0 1"), None);
    }
}
