//! What protects messages.

use bumpless_base::Duration;

use crate::file::File;
use crate::reader::Reader;
use crate::schema::{self, KeyExchangeWord, PacketsWord};
use crate::security::{
    Certificates, Encryption, Integrity, Replay, Security, StateKeys, StateSecurity,
};

/// What protects messages, by the file; reports what would protect nothing.
pub(crate) fn check(reader: &mut Reader, file: &File) -> Option<Security> {
    let given = &file.security;
    let (packets, keys) = (given.packets?, given.keys.as_ref()?);
    let (folder, lifetime) = (given.certificates.as_ref()?, given.key_lifetime_s?);
    let servers = given.key_servers.as_ref()?;
    let wrong = match (packets, keys, folder, lifetime) {
        (PacketsWord::Open, ..) if servers.is_some() => ("key_servers", OPEN),
        (_, Some(_), ..) if servers.is_some() => ("key_servers", BOTH),
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
                key_servers: servers.clone().unwrap_or_default(),
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

/// What protects the states of an application, by its section; reports what would protect nothing. `packets`: what protects
/// messages.
pub(crate) fn of_states(
    reader: &mut Reader,
    given: Option<&schema::StateSecurity>,
    packets: Option<&Security>,
) -> Option<StateSecurity> {
    let Some(given) = given else {
        return Some(StateSecurity::NONE);
    };
    let (integrity, encryption, replay) = (given.integrity?, given.encryption?, given.replay?);
    let tagged = matches!(integrity, Integrity::Symmetric | Integrity::Certificate);
    let mut sound = true;
    let mut wrong = |field: &str, wrong: String, right: &str| {
        reader.wrong(&given.place, field, wrong, right);
        sound = false;
    };
    let without = format!("takes a tag, and integrity is {:?}", integrity.name());
    let tag = "write integrity = \"symmetric\" or \"certificate\"";
    if encryption != Encryption::None && !tagged {
        wrong("encryption", without.clone(), tag);
    }
    if replay != Replay::None && !tagged {
        wrong("replay", without, tag);
    }
    let (exchange, files) = (given.key_exchange?, given.keys.as_ref()?);
    let of_sessions = matches!(packets?, Security::Certificates(_));
    let of_server = packets?.has_key_servers();
    let usual = match (tagged, of_sessions && files.is_none()) {
        (false, _) => KeyExchangeWord::None,
        (true, true) => KeyExchangeWord::Session,
        (true, false) => KeyExchangeWord::File,
    };
    let exchange = exchange.unwrap_or(usual);
    match exchange {
        KeyExchangeWord::None if tagged => wrong(
            "key_exchange",
            "is \"none\", and a tag takes a secret".into(),
            "write \"file\", \"server\" or \"session\"",
        ),
        KeyExchangeWord::File | KeyExchangeWord::Server | KeyExchangeWord::Session if !tagged => {
            wrong(
                "key_exchange",
                format!(
                    "gives a secret that nothing needs, since integrity is {:?}",
                    integrity.name()
                ),
                "leave it out, or write integrity = \"symmetric\" or \"certificate\"",
            )
        }
        KeyExchangeWord::Session if !of_sessions => wrong(
            "key_exchange",
            "is \"session\", and [security] names no certificates with which nodes have sessions"
                .into(),
            "name certificates in [security], or write \"file\"",
        ),
        KeyExchangeWord::Server if !of_server => wrong(
            "key_exchange",
            "is \"server\", and [security] names no key servers".into(),
            "name key_servers in [security], or write \"file\" or \"session\"",
        ),
        _ => {}
    }
    if exchange != KeyExchangeWord::Session {
        let takes =
            "takes a secret of a session, and keys come from a file or a server or there are none";
        let right = "name certificates in [security] and write key_exchange = \"session\", or choose another one";
        if integrity == Integrity::Certificate {
            wrong(
                "integrity",
                format!("is \"certificate\", which {takes}"),
                right,
            );
        }
        if replay == Replay::Session {
            wrong("replay", format!("is \"session\", which {takes}"), right);
        }
    }
    let keys = match (exchange, files, packets?) {
        (KeyExchangeWord::File, Some(files), _) => {
            StateKeys::Files(files.iter().map(Into::into).collect())
        }
        (KeyExchangeWord::File, None, Security::Protected(files)) => {
            StateKeys::Files(files.clone())
        }
        (KeyExchangeWord::File, None, _) => {
            wrong(
                "key_exchange",
                "is \"file\", and there is no file: [security] names none".into(),
                "name files with keys = [\"...\"]; `bumpless key new FILE` makes one",
            );
            StateKeys::None
        }
        (_, Some(_), _) => {
            wrong(
                "keys",
                "stands here although no secret comes from a file".into(),
                "leave it out, or write key_exchange = \"file\"",
            );
            StateKeys::None
        }
        (KeyExchangeWord::Server, None, _) => StateKeys::Servers,
        (KeyExchangeWord::Session, None, _) => StateKeys::Sessions,
        (KeyExchangeWord::None, None, _) => StateKeys::None,
    };
    sound.then_some(StateSecurity {
        integrity,
        encryption,
        replay,
        keys,
    })
}
