//! Files that security rests on: made whole or not at all, and refused if others than their owner had a way to them.
//!
//! Two guards: what is secret may be read by its owner alone; what others may know, such as a certificate, may be changed
//! by its owner alone. What is read is overwritten in memory when it is dropped. Besides, [`write_whole`] is for results that
//! nothing rests on.
#![forbid(unsafe_code)]

mod cause;
mod make;
mod password;
mod whole;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;
use zeroize::Zeroizing;

pub use self::cause::Cause;
pub use self::make::{create, create_folder, replace};
pub use self::password::{PASSWORD_MAX, PasswordCause, password};
pub use self::whole::write_whole;

/// What others than the owner may not do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Anything: it has a secret.
    Secret,
    /// Change it: everybody may know what it has.
    Unchanged,
}

impl Guard {
    /// The permissions that nobody but the owner may have.
    fn forbidden(self) -> u32 {
        match self {
            Self::Secret => 0o077,
            Self::Unchanged => 0o022,
        }
    }

    /// The permissions of a file that is made.
    fn mode(self) -> u32 {
        match self {
            Self::Secret => 0o600,
            Self::Unchanged => 0o644,
        }
    }

    /// Whether a file with `metadata` is guarded so.
    ///
    /// # Errors
    /// [`Cause::Owner`] if it belongs neither to this user nor to root, [`Cause::Exposed`] if its permissions say too much.
    pub fn check(self, metadata: &Metadata) -> Result<(), Cause> {
        let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
        if owner != 0 && owner != geteuid().as_raw() {
            return Err(Cause::Owner(owner));
        }
        if mode & self.forbidden() != 0 {
            return Err(Cause::Exposed { mode, guard: self });
        }
        Ok(())
    }
}

/// What the file at `path` has, if it is guarded as `guard` says and has at most `len_max` bytes.
///
/// # Errors
/// It is not there, no regular file, of another owner, exposed, too long, or the system does not give it.
pub fn read(path: &Path, guard: Guard, len_max: usize) -> Result<Zeroizing<Vec<u8>>, Cause> {
    let (file, metadata) = open(path)?;
    guard.check(&metadata)?;
    content(file, len_max)
}

/// As [`read`]; what guard the file needs is told by what stands in it.
///
/// # Errors
/// As [`read`].
pub fn read_as(
    path: &Path,
    guard: impl FnOnce(&[u8]) -> Guard,
    len_max: usize,
) -> Result<Zeroizing<Vec<u8>>, Cause> {
    let (file, metadata) = open(path)?;
    let content = content(file, len_max)?;
    guard(&content).check(&metadata)?;
    Ok(content)
}

fn open(path: &Path) -> Result<(File, Metadata), Cause> {
    // Before it is opened: that alone can set a device off.
    regular(&fs::metadata(path).map_err(unreadable)?)?;
    let file = OpenOptions::new()
        .read(true)
        // Should a pipe have taken its place meanwhile, opening it would wait for its other end.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    regular(&metadata)?;
    Ok((file, metadata))
}

fn content(file: File, len_max: usize) -> Result<Zeroizing<Vec<u8>>, Cause> {
    // As long as it gets at once: growing would leave a part of the secret where it was.
    let mut content = Zeroizing::new(Vec::with_capacity(len_max + 1));
    file.take(len_max as u64 + 1)
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    match content.len() > len_max {
        true => Err(Cause::TooLong),
        false => Ok(content),
    }
}

fn regular(metadata: &Metadata) -> Result<(), Cause> {
    match metadata.is_file() {
        true => Ok(()),
        false => Err(Cause::NotRegular),
    }
}

fn unreadable(error: io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::NotFound => Cause::Missing,
        _ => Cause::Unreadable(error),
    }
}
