//! What protects messages.

use bumpless_base::Duration;

use crate::file::File;
use crate::reader::Reader;
use crate::schema::{self, PacketsWord};
use crate::security::{Certificates, Security};

/// What protects messages, by the file; reports keys that would protect nothing.
pub(crate) fn check(reader: &mut Reader, file: &File) -> Option<Security> {
    let given = &file.security;
    let certificates = given.certificates.as_ref()?;
    let lifetime = given.key_lifetime_s?;
    if let Some(folder) = certificates {
        return with_certificates(reader, given, (folder, lifetime));
    }
    if lifetime.is_some() {
        let wrong = "stands here although keys come from files, which last until they are changed";
        let right = "leave it out, or name a folder with certificates";
        reader.wrong(&given.place, "key_lifetime_s", wrong, right);
        return None;
    }
    match (given.packets?, given.keys.as_ref()?) {
        (PacketsWord::Open, None) => Some(Security::Open),
        (PacketsWord::Open, Some(_)) => {
            let wrong = "stands here although packets are open";
            let right = "leave it out, or write packets = \"protected\"";
            reader.wrong(&given.place, "keys", wrong, right);
            None
        }
        (PacketsWord::Protected, Some(keys)) => {
            Some(Security::Protected(keys.iter().map(Into::into).collect()))
        }
        (PacketsWord::Protected, None) => {
            let pair = file.pair.name.as_ref()?;
            Some(Security::Protected(vec![format!("{pair}.key").into()]))
        }
    }
}

/// After how many seconds a key is replaced.
const KEY_LIFETIME_S: u64 = 3600;

fn with_certificates(
    reader: &mut Reader,
    given: &schema::Security,
    (folder, lifetime): (&str, Option<u64>),
) -> Option<Security> {
    let mut wrong = |wrong: &str, right: &str| {
        reader.wrong(&given.place, "certificates", wrong, right);
        None
    };
    match (given.packets?, given.keys.as_ref()?) {
        (PacketsWord::Open, _) => wrong(
            "stands here although packets are open",
            "leave it out, or write packets = \"protected\"",
        ),
        (PacketsWord::Protected, Some(_)) => wrong(
            "stands here beside keys, and there is one way to keys",
            "leave one of both out",
        ),
        (PacketsWord::Protected, None) => Some(Security::Certificates(Certificates {
            folder: folder.into(),
            key_lifetime: Duration::from_secs(lifetime.unwrap_or(KEY_LIFETIME_S)),
        })),
    }
}
