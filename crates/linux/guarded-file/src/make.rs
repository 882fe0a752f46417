//! Making files so that each is there whole, or not at all, and lasts through a power failure.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::{Cause, Guard};

/// What a file or folder is called until it is whole.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// Makes a file with `content` at `path`.
///
/// # Errors
/// [`Cause::Exists`] if anything is there already, which stays as it is; [`Cause::NotMade`] if the system refuses.
pub fn create(path: &Path, content: &[u8], guard: Guard) -> Result<(), Cause> {
    let folder = parent(path);
    let put = |file: NamedTempFile| file.persist_noclobber(path).map_err(|error| error.error);
    let made = write(folder, content, guard).and_then(put);
    made.and_then(|_| sync(folder)).map_err(not_made)
}

/// Makes a file with `content` at `path`, in the place of one that is there.
///
/// # Errors
/// [`Cause::NotMade`] if the system refuses; what is there then stays as it is.
pub fn replace(path: &Path, content: &[u8], guard: Guard) -> Result<(), Cause> {
    let folder = parent(path);
    let put = |file: NamedTempFile| file.persist(path).map_err(|error| error.error);
    let made = write(folder, content, guard).and_then(put);
    made.and_then(|_| sync(folder)).map_err(Cause::NotMade)
}

/// Makes a folder at `path` that only this user may enter, with these files: name, content, guard. An empty folder that
/// is there gives way.
///
/// # Errors
/// As [`create`].
pub fn create_folder(path: &Path, files: &[(&str, &[u8], Guard)]) -> Result<(), Cause> {
    let make = || -> io::Result<()> {
        let mode = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .permissions(mode.clone())
            .tempdir_in(parent(path))?;
        // The user's mask may have taken rights of the owner.
        fs::set_permissions(folder.path(), mode)?;
        for (name, content, guard) in files {
            let file = write(folder.path(), content, *guard)?;
            file.persist_noclobber(folder.path().join(name))
                .map_err(|error| error.error)?;
        }
        sync(folder.path())?;
        // Takes the place of an empty folder alone.
        fs::rename(folder.path(), path)?;
        let _ = folder.keep();
        sync(parent(path))
    };
    make().map_err(not_made)
}

fn write(folder: &Path, content: &[u8], guard: Guard) -> io::Result<NamedTempFile> {
    let mode = Permissions::from_mode(guard.mode());
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(mode.clone())
        .tempfile_in(folder)?;
    // The user's mask may have taken rights of the owner.
    file.as_file().set_permissions(mode)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder in which `path` stands.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn not_made(error: io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::AlreadyExists
        | io::ErrorKind::DirectoryNotEmpty
        | io::ErrorKind::NotADirectory => Cause::Exists,
        _ => Cause::NotMade(error),
    }
}
