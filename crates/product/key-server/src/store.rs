//! What is kept on disk: keys, their numbers, and who has them, so that a restart goes on (N-85).

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use bumpless_base::Instant;
use bumpless_guarded_file::{self as guarded_file, Cause, Guard};
use bumpless_keys::{Message, take, write};
use bumpless_secure::group::{Grant, Numbers};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

/// What a file of this kind begins with.
const FORMAT: &str = "bumpless-key-server-state-1";
/// Longest file, bytes: all groups with all members and their certificates have room.
const LEN_MAX: usize = 32 << 20;

/// What is kept of all groups.
#[derive(Debug, Default)]
pub struct Kept {
    /// When that was, if the computer has not been started since.
    pub since: Option<Instant>,
    /// The groups.
    pub groups: Vec<KeptGroup>,
}

/// What is kept of a group.
#[derive(Clone, Debug)]
pub struct KeptGroup {
    /// Its name.
    pub name: String,
    /// Whether this server made its keys.
    pub leads: bool,
    /// The numbers of its keys.
    pub numbers: Numbers,
    /// Whether the keys are to be rolled.
    pub roll: bool,
    /// Its keys.
    pub grant: Option<Grant>,
    /// Who was given keys.
    pub holders: Vec<Holder>,
}

/// Who was given keys of a group, by which certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its name without the site.
    pub name: String,
    /// The certificate and those between it and its authority, in hexadecimal digits.
    pub shown: Vec<String>,
}

/// Why the state cannot be read or kept.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    cause: StoreCause,
}

#[derive(Debug)]
enum StoreCause {
    File(Cause),
    Garbled,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.cause {
            StoreCause::File(cause) => {
                write!(f, "{path} {}; {}", cause.wrong(), cause.remedy(&self.path))
            }
            StoreCause::Garbled => write!(
                f,
                "{path} is no state of a key server, or damaged; move it away, and bring back no earlier one: then keys begin anew, and \
                 members that are not there within 3 s lose the others until they are"
            ),
        }
    }
}

impl std::error::Error for StoreError {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    /// The computer's start, and nanoseconds from it.
    boot: String,
    since: u64,
    groups: Vec<GroupInFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupInFile {
    name: String,
    leads: bool,
    era: u64,
    last: u64,
    rolls_again: bool,
    roll: bool,
    /// As it is said to members, in hexadecimal digits.
    keys: Option<String>,
    holders: Vec<Holder>,
}

impl Drop for GroupInFile {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

/// Where the state is kept.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    boot: String,
}

impl Store {
    /// At `path`.
    pub fn new(path: PathBuf) -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = boot.trim().to_owned();
        Self { path, boot }
    }

    /// What is there; `None`: nothing.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn load(&self, now: Instant) -> Result<Option<Kept>, StoreError> {
        let content = match guarded_file::read(&self.path, Guard::Secret, LEN_MAX) {
            Ok(content) => content,
            Err(Cause::Missing) => return Ok(None),
            Err(cause) => return Err(self.error(StoreCause::File(cause))),
        };
        let kept = read(&content).ok_or_else(|| self.error(StoreCause::Garbled))?;
        let (boot, since, groups) = kept;
        let since = Instant::from_nanos(since);
        let same = !boot.is_empty() && boot == self.boot && since <= now;
        Ok(Some(Kept {
            since: same.then_some(since),
            groups,
        }))
    }

    /// Keeps `groups` as of `now`, whole or not at all.
    ///
    /// # Errors
    /// The system refuses; what was there is there still.
    pub fn keep(
        &self,
        groups: impl IntoIterator<Item = KeptGroup>,
        now: Instant,
    ) -> Result<(), StoreError> {
        let groups = groups.into_iter().map(|group| GroupInFile {
            keys: group.grant.as_ref().map(to_text),
            name: group.name,
            leads: group.leads,
            era: group.numbers.era,
            last: group.numbers.last,
            rolls_again: group.numbers.rolls_again,
            roll: group.roll,
            holders: group.holders,
        });
        let file = File {
            format: FORMAT.into(),
            boot: self.boot.clone(),
            since: now.as_nanos(),
            groups: groups.collect(),
        };
        // As long as it gets at once: growing would leave keys where they were.
        let holders = file.groups.iter().flat_map(|group| &group.holders);
        let certificates = holders.flat_map(|it| it.shown.iter().map(String::len));
        let keys = file
            .groups
            .iter()
            .filter_map(|it| it.keys.as_ref())
            .map(String::len);
        let room = certificates.chain(keys).sum::<usize>() + file.groups.len() * 16_384 + 4096;
        let mut text = Zeroizing::new(Vec::with_capacity(room));
        // Writing to memory cannot fail, and neither can strings and numbers.
        let _ = serde_json::to_writer(&mut *text, &file);
        let kept = guarded_file::replace(&self.path, &text, Guard::Secret);
        kept.map_err(|cause| self.error(StoreCause::File(cause)))
    }

    /// Where it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self, cause: StoreCause) -> StoreError {
        let path = self.path.clone();
        StoreError { path, cause }
    }
}

fn read(content: &[u8]) -> Option<(String, u64, Vec<KeptGroup>)> {
    let mut file: File = serde_json::from_slice(content).ok()?;
    if file.format != FORMAT {
        return None;
    }
    let mut groups = Vec::new();
    for group in &mut file.groups {
        let grant = match &group.keys {
            Some(text) => Some(from_text(text)?),
            None => None,
        };
        groups.push(KeptGroup {
            name: std::mem::take(&mut group.name),
            leads: group.leads,
            numbers: Numbers {
                era: group.era,
                last: group.last,
                rolls_again: group.rolls_again,
            },
            roll: group.roll,
            grant,
            holders: std::mem::take(&mut group.holders),
        });
    }
    Some((file.boot, file.since, groups))
}

fn to_text(grant: &Grant) -> String {
    let mut bytes = Zeroizing::new(Vec::new());
    write(&Message::Answer(grant.clone()), &mut bytes);
    hex(&bytes)
}

fn from_text(text: &str) -> Option<Grant> {
    let mut bytes = Zeroizing::new(unhex(text)?);
    match take(&mut bytes) {
        Ok(Some(Message::Answer(grant))) if bytes.is_empty() => Some(grant),
        _ => None,
    }
}

/// `bytes` in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
    text
}

/// The bytes of hexadecimal digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|it| it as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut bytes = Vec::with_capacity(pairs.len());
    for &[high, low] in pairs {
        bytes.push(digit(high)? << 4 | digit(low)?);
    }
    rest.is_empty().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_kept_is_for_its_owner_alone_and_comes_back_or_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("state"));
        let at = Instant::from_nanos(5);
        assert!(store.load(at).unwrap().is_none());
        let group = KeptGroup {
            name: "tank".into(),
            leads: true,
            numbers: Numbers {
                era: 3,
                last: 9,
                rolls_again: true,
            },
            roll: false,
            grant: None,
            holders: vec![Holder {
                name: "left.tank".into(),
                shown: vec![hex(&[0, 171, 255])],
            }],
        };
        store.keep([group.clone()], at).unwrap();
        let mode = fs::metadata(store.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let kept = store.load(at).unwrap().unwrap();
        assert_eq!(kept.since, Some(at));
        assert_eq!(
            (kept.groups[0].numbers, &kept.groups[0].holders),
            (group.numbers, &group.holders)
        );
        assert_eq!(
            unhex(&kept.groups[0].holders[0].shown[0]),
            Some(vec![0, 171, 255])
        );
        let earlier = Instant::from_nanos(4);
        assert_eq!(
            store.load(earlier).unwrap().unwrap().since,
            None,
            "the clock went back"
        );
        let text = fs::read_to_string(store.path()).unwrap();
        for len in (0..text.len()).step_by(23) {
            fs::write(store.path(), &text[..len]).unwrap();
            assert!(store.load(at).is_err(), "cut at {len}");
        }
        fs::write(store.path(), &text).unwrap();
        fs::set_permissions(store.path(), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(store.load(at).unwrap_err().to_string().contains("640"));
    }
}
