//! What protects messages.

use crate::file::File;
use crate::reader::Reader;
use crate::schema::PacketsWord;
use crate::security::Security;

/// What protects messages, by the file; reports keys that would protect nothing.
pub(crate) fn check(reader: &mut Reader, file: &File) -> Option<Security> {
    let given = &file.security;
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
