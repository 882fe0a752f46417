//! Files with a secret that the computers of a pair share (`spec/security.md`, N-10 to N-13).
//!
//! What is read is overwritten in memory when it is not needed any more, and no message has anything of it.

mod error;
mod format;

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bumpless_config::Security;
use bumpless_net_linux::random;
use bumpless_secure::{Keyring, RingSuite, Secret};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use zeroize::Zeroizing;

use self::format::{Bytes, Garbled, LEN_MAX};

pub use self::error::{KeyFileCause, KeyFileError};

/// Permissions that others than the owner have.
const OF_OTHERS: u32 = 0o077;

/// Makes a file with a random secret at `path`, for this user alone; returns the secret's identifier. The file is there
/// whole, or not at all, and lasts through a power failure.
///
/// # Errors
/// There is a file already, which stays as it is, or the system refuses.
pub fn create(path: &Path) -> Result<u16, KeyFileError> {
    make(path).map_err(|cause| at(path, cause))
}

fn make(path: &Path) -> Result<u16, KeyFileCause> {
    let mut secret = Bytes::default();
    random::fill(&mut secret).map_err(|errno| KeyFileCause::NotMade(errno.into()))?;
    let id = identifier(&secret)?;
    write(path, &format::write(&secret)).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => KeyFileCause::Exists,
        _ => KeyFileCause::NotMade(error),
    })?;
    Ok(id)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = match folder_of(Some(path)) {
        none if none.as_os_str().is_empty() => Path::new("."),
        folder => folder,
    };
    let mode = Permissions::from_mode(0o600);
    let mut file = tempfile::Builder::new()
        .prefix(".key-")
        .permissions(mode.clone())
        .tempfile_in(folder)?;
    // The user's mask may have taken rights of the owner.
    file.as_file().set_permissions(mode)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// The keys in the files at `paths`; the first one seals. A path that is not absolute begins at `folder`.
///
/// # Errors
/// Every file that cannot be used, each once. There is at least one if `paths` is empty.
pub fn load(paths: &[PathBuf], folder: &Path) -> Result<Keyring<RingSuite>, Vec<KeyFileError>> {
    let found = read_all(paths, folder)?;
    let secrets = found.iter().map(|it| Secret::new(*it.secret)).collect();
    Keyring::new(secrets).map_err(|error| vec![at(folder, KeyFileCause::Keyring(error))])
}

/// As [`load`], each key in a ring of its own; none if `paths` is empty.
///
/// # Errors
/// Every file that cannot be used, each once.
pub fn load_each(
    paths: &[PathBuf],
    folder: &Path,
) -> Result<Vec<Keyring<RingSuite>>, Vec<KeyFileError>> {
    let found = read_all(paths, folder)?;
    let ring = |it: &Found| {
        let ring = Keyring::new(vec![Secret::new(*it.secret)]);
        ring.map_err(|error| vec![at(&it.path, KeyFileCause::Keyring(error))])
    };
    found.iter().map(ring).collect()
}

fn read_all(paths: &[PathBuf], folder: &Path) -> Result<Vec<Found>, Vec<KeyFileError>> {
    let (mut found, mut errors) = (Vec::<Found>::new(), Vec::new());
    for path in paths {
        let path = folder.join(path);
        match read(&path).and_then(|secret| beside(&found, secret)) {
            Ok((secret, id)) => found.push(Found { path, secret, id }),
            Err(cause) => errors.push(at(&path, cause)),
        }
    }
    match errors.is_empty() {
        true => Ok(found),
        false => Err(errors),
    }
}

/// The keys that `security` asks for, of a configuration in `folder`; `None` if messages are open.
///
/// # Errors
/// As [`load`].
pub fn for_config(
    security: &Security,
    folder: &Path,
) -> Result<Option<Keyring<RingSuite>>, Vec<KeyFileError>> {
    match security {
        Security::Protected(paths) => load(paths, folder).map(Some),
        Security::Open => Ok(None),
    }
}

/// The folder of a file; the working one (an empty path) of a file without folder and of none.
pub fn folder_of(file: Option<&Path>) -> &Path {
    file.and_then(Path::parent).unwrap_or(Path::new(""))
}

/// What is wrong with key files, a line each.
pub fn told(errors: &[KeyFileError]) -> String {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A file that can be used.
struct Found {
    path: PathBuf,
    secret: Bytes,
    id: u16,
}

/// `secret` with its identifier, if it can be used with those that were found before.
fn beside(found: &[Found], secret: Bytes) -> Result<(Bytes, u16), KeyFileCause> {
    let id = identifier(&secret)?;
    match found.iter().find(|it| it.id == id) {
        None => Ok((secret, id)),
        Some(it) if *it.secret == *secret => Err(KeyFileCause::Same(it.path.clone())),
        Some(it) => Err(KeyFileCause::SameIdentifier(it.path.clone(), id)),
    }
}

fn identifier(secret: &[u8; 32]) -> Result<u16, KeyFileCause> {
    let ring = Keyring::<RingSuite>::new(vec![Secret::new(*secret)]);
    ring.map(|ring| ring.sealing())
        .map_err(KeyFileCause::Keyring)
}

fn read(path: &Path) -> Result<Bytes, KeyFileCause> {
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
    private(&metadata)?;
    // As long as it gets at once: growing would leave a part of the secret where it was.
    let mut content = Zeroizing::new(Vec::with_capacity(LEN_MAX + 1));
    file.take(LEN_MAX as u64 + 1)
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    if content.len() > LEN_MAX {
        return Err(KeyFileCause::TooLong);
    }
    format::read(&content).map_err(|garbled| match garbled {
        Garbled::NoSecret => KeyFileCause::NoSecret,
        Garbled::OtherVersion => KeyFileCause::OtherVersion,
    })
}

fn regular(metadata: &Metadata) -> Result<(), KeyFileCause> {
    match metadata.is_file() {
        true => Ok(()),
        false => Err(KeyFileCause::NotRegular),
    }
}

/// Nobody but this user and root can have read it, or can change it.
fn private(metadata: &Metadata) -> Result<(), KeyFileCause> {
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    if owner != 0 && owner != geteuid().as_raw() {
        return Err(KeyFileCause::Owner(owner));
    }
    if mode & OF_OTHERS != 0 {
        return Err(KeyFileCause::Exposed(mode));
    }
    Ok(())
}

fn unreadable(error: io::Error) -> KeyFileCause {
    match error.kind() {
        io::ErrorKind::NotFound => KeyFileCause::Missing,
        _ => KeyFileCause::Unreadable(error),
    }
}

fn at(path: &Path, cause: KeyFileCause) -> KeyFileError {
    KeyFileError {
        path: path.to_owned(),
        cause,
    }
}
