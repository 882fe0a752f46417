//! Files with a secret that the computers of a pair share (`spec/security.md`, N-10 to N-13).
//!
//! What is read is overwritten in memory when it is not needed any more, and no message has anything of it.

mod error;
mod format;

use std::path::{Path, PathBuf};

use bumpless_config::Security;
use bumpless_guarded_file::{self as guarded_file, Cause, Guard};
use bumpless_net_linux::random;
use bumpless_secure::{Keyring, RingSuite, Secret};

use self::format::{Bytes, Garbled, LEN_MAX};

pub use self::error::{KeyFileCause, KeyFileError};

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
    random::fill(&mut secret).map_err(|errno| Cause::NotMade(errno.into()))?;
    let id = identifier(&secret)?;
    let text = format::write(&secret);
    guarded_file::create(path, text.as_bytes(), Guard::Secret)?;
    Ok(id)
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

/// The keys from files that `security` asks for, of a configuration in `folder`; `None` if it asks for none.
///
/// # Errors
/// As [`load`].
pub fn for_config(
    security: &Security,
    folder: &Path,
) -> Result<Option<Keyring<RingSuite>>, Vec<KeyFileError>> {
    match security {
        Security::Protected(paths) => load(paths, folder).map(Some),
        Security::Certificates(_) | Security::Open => Ok(None),
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
    let content = guarded_file::read(path, Guard::Secret, LEN_MAX)?;
    format::read(&content).map_err(|garbled| match garbled {
        Garbled::NoSecret => KeyFileCause::NoSecret,
        Garbled::OtherVersion => KeyFileCause::OtherVersion,
    })
}

fn at(path: &Path, cause: KeyFileCause) -> KeyFileError {
    KeyFileError {
        path: path.to_owned(),
        cause,
    }
}
