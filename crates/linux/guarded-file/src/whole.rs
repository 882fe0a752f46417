//! Results in files of anybody: whole or not at all.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::Builder;

use crate::make::{UNFINISHED, parent};

/// What a file may be used for by everybody, before the user's mask takes rights away.
const OPEN: u32 = 0o666;

/// Writes `content` to `path`, whole or not at all. A file that is there keeps its permissions until then and afterwards, and a
/// link to it stays one. What is no file, such as a terminal or a pipe, is written to; so is a file whose folder takes no other.
///
/// # Errors
/// What the system says; what is there stays as it is then.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let (path, permissions) = match fs::metadata(path) {
        Ok(there) if !there.is_file() => return fs::write(path, content),
        Ok(there) => (fs::canonicalize(path)?, Some(there.permissions())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
        Err(error) => return Err(error),
    };
    let made = Builder::new()
        .prefix(UNFINISHED)
        .permissions(Permissions::from_mode(OPEN))
        .tempfile_in(parent(&path));
    let mut file = match made {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && permissions.is_some() => {
            return fs::write(path, content);
        }
        made => made.map_err(plain)?,
    };
    file.write_all(content)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// The system's own words: the library adds the name of a file that is there for a moment only, and that nobody knows.
fn plain(error: io::Error) -> io::Error {
    let said = error.to_string();
    match said.split_once(" at path ") {
        Some((words, _)) => io::Error::new(error.kind(), words),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::thread;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_with_its_permissions_and_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("link"));
        write_whole(&file, b"first").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("a", &link).unwrap();
        write_whole(&link, b"second").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"second");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(names(folder.path()), ["a", "link"]);
    }

    #[test]
    fn what_is_no_file_is_written_to_and_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        );
        made.unwrap();
        let reading = {
            let pipe = pipe.clone();
            thread::spawn(move || fs::read(pipe).unwrap())
        };
        write_whole(&pipe, b"through").unwrap();
        assert_eq!(reading.join().unwrap(), b"through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_whole(folder.path(), b"a folder").is_err());
        let refused = write_whole(&folder.path().join("missing/a"), b"").unwrap_err();
        // Not the name of a file that was to be there for a moment.
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        assert!(!refused.to_string().contains("unfinished"), "{refused}");
        assert!(names(folder.path()).is_empty());
    }
}
