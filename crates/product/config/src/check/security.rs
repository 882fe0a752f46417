//! What protects messages.

use bumpless_base::Duration;

use crate::file::File;
use crate::reader::Reader;
use crate::schema::PacketsWord;
use crate::security::{Certificates, Security};

/// What protects messages, by the file; reports what would protect nothing.
pub(crate) fn check(reader: &mut Reader, file: &File) -> Option<Security> {
    let given = &file.security;
    let (packets, keys) = (given.packets?, given.keys.as_ref()?);
    let (folder, lifetime) = (given.certificates.as_ref()?, given.key_lifetime_s?);
    let wrong = match (packets, keys, folder, lifetime) {
        (PacketsWord::Open, Some(_), ..) => ("keys", OPEN),
        (PacketsWord::Open, _, Some(_), _) => ("certificates", OPEN),
        (PacketsWord::Open, .., Some(_)) => ("key_lifetime_s", OPEN),
        (PacketsWord::Open, ..) => return Some(Security::Open),
        (_, Some(_), Some(_), _) => ("certificates", BOTH),
        (_, Some(_), _, Some(_)) => ("key_lifetime_s", FILES),
        (_, Some(keys), ..) => {
            return Some(Security::Protected(keys.iter().map(Into::into).collect()));
        }
        (_, None, folder, lifetime) => {
            return Some(Security::Certificates(Certificates {
                folder: folder.as_deref().unwrap_or(FOLDER).into(),
                key_lifetime: Duration::from_secs(lifetime.unwrap_or(KEY_LIFETIME_S)),
            }));
        }
    };
    let (field, (wrong, right)) = wrong;
    reader.wrong(&given.place, field, wrong, right);
    None
}

/// Where certificates are.
const FOLDER: &str = ".";
/// After how many seconds a key is replaced.
const KEY_LIFETIME_S: u64 = 3600;

const OPEN: (&str, &str) = (
    "stands here although packets are open",
    "leave it out, or write packets = \"protected\"",
);
const BOTH: (&str, &str) = (
    "stands here beside keys, and there is one way to keys",
    "leave one of both out",
);
const FILES: (&str, &str) = (
    "stands here although keys come from files, which last until they are changed",
    "leave it out, or leave keys out for certificates",
);
