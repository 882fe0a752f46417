//! The section on what protects messages.

use toml_edit::Item;

use super::numbers::Whole;
use super::section;
use crate::lines::Lines;
use crate::other_shape::{Each, ServerAt};
use crate::security::{Encryption, Integrity, KeyServerAt, Replay};
use crate::shape::{Choice, Describe, Fault, Shape, Text, fault, show};

/// The two ways as the file names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketsWord {
    Protected,
    Open,
}

const PACKETS_WORDS: Choice<PacketsWord> = Choice(&[
    ("protected", PacketsWord::Protected),
    ("open", PacketsWord::Open),
]);

section! {
    /// What protects messages between nodes, and between nodes and witnesses (spec/security.md).
    Security = "security", Once, [] {
        /// `protected`: each message is enciphered and authenticated, and is heard once. `open`: messages are as
        /// they are.
        /// Cost: 39 bytes in each packet, and on a computer with AES instructions less than a microsecond of
        /// processor time on each side.
        /// Hazard: open, whoever can send to these networks can disturb the pair, and take it over. Status says so
        /// as long as it holds.
        packets: PacketsWord = "packets", "none", PACKETS_WORDS, default("\"protected\"");
        /// A folder with the certificates of nodes, each in a folder called NODE.PAIR as `bumpless pki issue` makes it;
        /// a node needs its own. Nodes agree on keys by themselves, over TLS on the port of their data, and give
        /// them to the witnesses in the same way. A path that is not absolute begins at the folder of this file.
        /// Local: not compared between nodes.
        /// Cost: a connection, and a handshake of some milliseconds for each key. A node is heard when its first session is made.
        /// Hazard: certificates end. The pair goes on with the keys that it has then, and a node that starts is not let in.
        certificates: String = "certificates", "path", PATH, computed("\".\", the folder of this file, unless keys are named");
        /// Files with the secret that the nodes and the witnesses of the pair share, made by `bumpless key new
        /// FILE`, instead of certificates. What the first one seals is sent; what any of them opens is heard. So a secret changes without a
        /// gap: give the new one to all as the second, then put it first, then take the old one away. A path that is
        /// not absolute begins at the folder of this file. Local: not compared between nodes.
        /// Cost: none.
        /// Hazard: whoever reads such a file can read what was sent before, forge and take over. Only its owner may have the right to
        /// read it.
        keys: Vec<String> = "keys", "paths", Paths, computed("none: nodes agree on keys with certificates");
        /// Key servers (`bumpless key-server`), besides certificates: the keys of what nodes send each other come from there,
        /// those of the group with the pair's name. The first one that answers is asked, and the ones before it
        /// are tried again. Witnesses agree on keys with each node all the same. Local: which ones is not compared between nodes, whether
        /// there are any is.
        /// Cost: a connection to a server.
        /// Hazard: whoever has a server's state can read what is sent, forge and take over. When no server has answered for as long
        /// as keys were given in advance, nothing is sent and nodes lose each other; status warns from the tenth second on.
        key_servers: Vec<KeyServerAt> = "key_servers", "servers", KEY_SERVERS, computed("none: nodes agree on keys with each other");
        /// How long a key lasts that nodes agree on with certificates. Local.
        /// Cost: a handshake each time.
        /// Hazard: who gets hold of a node's memory can read what was sent for about as long.
        key_lifetime_s: u64 = "key_lifetime_s", "seconds", Whole { min: 1, max: 2_592_000 }, computed("3600");
    }
}

const KEY_SERVERS: Each<ServerAt> = Each {
    of: ServerAt,
    several: "key servers",
    max: 4,
    example: "[\"main@10.0.0.5:7300\"]",
};

const INTEGRITY_WORDS: Choice<Integrity> = Choice(&[
    (Integrity::None.name(), Integrity::None),
    (Integrity::Checksum.name(), Integrity::Checksum),
    (Integrity::Symmetric.name(), Integrity::Symmetric),
    (Integrity::Certificate.name(), Integrity::Certificate),
]);
const ENCRYPTION_WORDS: Choice<Encryption> = Choice(&[
    (Encryption::None.name(), Encryption::None),
    (Encryption::Symmetric.name(), Encryption::Symmetric),
    (Encryption::Aes256Gcm.name(), Encryption::Aes256Gcm),
    (
        Encryption::ChaCha20Poly1305.name(),
        Encryption::ChaCha20Poly1305,
    ),
]);
const REPLAY_WORDS: Choice<Replay> = Choice(&[
    (Replay::None.name(), Replay::None),
    (Replay::Counter.name(), Replay::Counter),
    (Replay::Session.name(), Replay::Session),
    (Replay::Timestamp.name(), Replay::Timestamp),
]);

/// Where keys of states come from, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyExchangeWord {
    None,
    File,
    Server,
    Session,
}

const KEY_EXCHANGE_WORDS: Choice<KeyExchangeWord> = Choice(&[
    ("none", KeyExchangeWord::None),
    ("file", KeyExchangeWord::File),
    ("server", KeyExchangeWord::Server),
    ("session", KeyExchangeWord::Session),
]);

section! {
    /// What protects the states of one application by themselves, besides the messages that carry them (first paper,
    /// 7.5 and table 19; spec/security.md, N-60 and further). It works in the application's thread; the
    /// data plane neither opens nor seals anything of it. Without this section nothing is done: messages
    /// are enciphered, authenticated and heard once already.
    StateSecurity = "application.security", Once, [] {
        /// What proves that a state is as it was published: `checksum`, a check sequence, against faults of memory and
        /// program alone; `symmetric`, a tag by a secret; `certificate`, the same by a secret that only the two nodes
        /// have who have shown each other their certificates.
        /// Cost: 48 bytes in each state, one more buffer of it on each node, and a pass over it on each side.
        /// Hazard: `checksum` keeps nobody out who can change states.
        integrity: Integrity = "integrity", "none", INTEGRITY_WORDS, default("\"none\"");
        /// Whether a state is enciphered: `symmetric`, by AES-256-GCM where the computer that seals has instructions for
        /// it, else by ChaCha20-Poly1305; or by the one that is named. Takes `integrity`.
        /// Cost: the backup deciphers the state when it takes over, which `bumpless plan` tells.
        /// Hazard: files of `persist` have the state in the clear all the same.
        encryption: Encryption = "encryption", "none", ENCRYPTION_WORDS, default("\"none\"");
        /// By what a state shows that comes again: `counter`, one of the same process of the sender that is older than
        /// one that was read; `session`, also one of an earlier process, since keys are of a session; `timestamp`, one that is older
        /// than `hot_restart_ms`, or than one that was read. Takes a tag.
        /// Cost: none.
        /// Hazard: `timestamp` takes clocks that agree to a second: a backup whose clock is wrong cannot use what it has,
        /// and says so.
        replay: Replay = "replay", "none", REPLAY_WORDS, default("\"none\"");
        /// Where the secret comes from: `file`, from `keys`; `session`, from the sessions in which nodes agree on
        /// secrets; `server`, from the `key_servers` of `[security]`.
        /// Cost: none.
        /// Hazard: a secret from a file is shared with whoever has the file, such as witnesses.
        key_exchange: KeyExchangeWord = "key_exchange", "none", KEY_EXCHANGE_WORDS,
            computed("`session` if [security] names certificates, else `file`; `none` if no secret is needed");
        /// With `file`: files as `[security]` has them. Local: not compared between nodes.
        /// Cost: none.
        /// Hazard: as there.
        keys: Vec<String> = "keys", "paths", Paths, computed("those of [security]");
    }
}

/// A list of paths, each once.
pub(crate) struct Paths;

/// Most secrets that a node opens with.
const MOST: usize = 4;
const PATH: Text = Text {
    what: "a path",
    max: 200,
};

impl Describe for Paths {
    fn accepts(&self) -> String {
        format!("a list of 1 to {MOST} paths, each once, such as [\"pair.key\"]")
    }
}

impl Shape for Paths {
    type Out = Vec<String>;
    fn read(&self, item: &Item, lines: &Lines) -> Result<Vec<String>, Vec<Fault>> {
        let Some(list) = item.as_array() else {
            return fault(show(item));
        };
        if list.is_empty() || list.len() > MOST {
            return fault(format!("names {} files", list.len()));
        }
        let (mut paths, mut faults) = (Vec::new(), Vec::new());
        for (i, value) in list.iter().enumerate() {
            let wrong = match PATH.read(&Item::Value(value.clone()), lines) {
                Ok(path) if paths.contains(&path) => format!("names {path:?} again"),
                Ok(path) => {
                    paths.push(path);
                    continue;
                }
                Err(_) => show(&Item::Value(value.clone())),
            };
            faults.push(Fault {
                line: Some(lines.of(value.span())),
                element: format!("[{}]", i + 1),
                wrong,
                right: Some(PATH.accepts() + ", once"),
            });
        }
        if faults.is_empty() {
            Ok(paths)
        } else {
            Err(faults)
        }
    }
}
