//! What members and servers say to each other: frames of a length, a kind and fields, all numbers big endian.

use bumpless_base::Duration;
use bumpless_secure::RingSuite;
use bumpless_secure::group::{Grant, GrantedKey, GroupKey, KEYS_MAX, Place};
use zeroize::Zeroizing;

/// Longest name of a group, bytes.
pub const GROUP_MAX: usize = 63;
/// Longest body of a message, bytes.
pub const LONGEST: usize = 1 + 8 + 1 + KEYS_MAX * KEY_LEN;
/// Bytes of the length before each.
const LENGTH: usize = 4;
/// Bytes of one key: place, key, three spans.
const KEY_LEN: usize = 16 + 32 + 24;

const ASK: u8 = 1;
const ANSWER: u8 = 2;
const PUSH: u8 = 3;
const REFUSED: u8 = 4;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A member asks for the keys of a group, and says what it seals with (`GetSecurityKeys`).
    Ask {
        /// The group.
        group: String,
        /// The place of the key that it seals with; zeros without one.
        place: Place,
    },
    /// What was asked for.
    Answer(Grant),
    /// What has changed, to who has asked (`SetSecurityKeys`).
    Push(Grant),
    /// There are no keys for who asks.
    Refused(Refused),
}

/// Why there are no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Who asks is no member of the group, or there is no such group.
    NoMember,
    /// The server has no key itself: it follows another one that it has not reached, or cannot store one.
    NoKeys,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoMember => {
                "it says that this one is no member of the group; name it in `members` of the group in the key server's file"
            }
            Self::NoKeys => {
                "it has no keys itself; its status says why (`bumpless key-server status`)"
            }
        })
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Adds `message` to `out` as it is sent.
pub fn write(message: &Message, out: &mut Zeroizing<Vec<u8>>) {
    // As long as it gets at once: growing would leave keys where they were.
    let mut body = Zeroizing::new(Vec::with_capacity(LONGEST));
    match message {
        Message::Ask { group, place } => {
            body.push(ASK);
            let name = group.as_bytes();
            let name = &name[..name.len().min(GROUP_MAX)];
            body.push(name.len() as u8);
            body.extend_from_slice(name);
            write_place(*place, &mut body);
        }
        Message::Answer(grant) => write_grant(ANSWER, grant, &mut body),
        Message::Push(grant) => write_grant(PUSH, grant, &mut body),
        Message::Refused(why) => body.extend_from_slice(&[REFUSED, *why as u8]),
    }
    out.reserve(LENGTH + body.len());
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(&body);
}

fn write_place(place: Place, body: &mut Vec<u8>) {
    body.extend_from_slice(&place.era.to_be_bytes());
    body.extend_from_slice(&place.token.to_be_bytes());
}

fn write_grant(kind: u8, grant: &Grant, body: &mut Vec<u8>) {
    let keys = &grant.keys[..grant.keys.len().min(KEYS_MAX)];
    body.push(kind);
    body.extend_from_slice(&grant.withdrawn_for.as_nanos().to_be_bytes());
    body.push(keys.len() as u8);
    for key in keys {
        write_place(key.place, body);
        body.extend_from_slice(&key.key.bytes()[..]);
        for span in [key.seals_in, key.seals_for, key.opens_for] {
            body.extend_from_slice(&span.as_nanos().to_be_bytes());
        }
    }
}

/// Takes the first whole message from `bytes`; `None` if there is none yet. What it had is overwritten.
///
/// # Errors
/// It is none, and nothing that comes after it can be understood.
pub fn take(bytes: &mut Zeroizing<Vec<u8>>) -> Result<Option<Message>, Malformed> {
    let Some(length) = bytes.first_chunk::<LENGTH>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length > LONGEST {
        return Err(Malformed);
    }
    let Some(body) = bytes.get(LENGTH..LENGTH + length) else {
        return Ok(None);
    };
    let message = read(body)?;
    bytes.copy_within(LENGTH + length.., 0);
    let left = bytes.len() - LENGTH - length;
    bytes[left..].fill(0);
    bytes.truncate(left);
    Ok(Some(message))
}

fn read(body: &[u8]) -> Result<Message, Malformed> {
    let mut fields = Fields(body);
    let message = match fields.byte()? {
        ASK => {
            let length = fields.byte()?;
            let name = fields.bytes(usize::from(length))?;
            let name = std::str::from_utf8(name).map_err(|_| Malformed)?;
            if name.is_empty() || name.len() > GROUP_MAX {
                return Err(Malformed);
            }
            Message::Ask {
                group: name.to_owned(),
                place: fields.place()?,
            }
        }
        ANSWER => Message::Answer(fields.grant()?),
        PUSH => Message::Push(fields.grant()?),
        REFUSED => Message::Refused(match fields.byte()? {
            0 => Refused::NoMember,
            1 => Refused::NoKeys,
            _ => return Err(Malformed),
        }),
        _ => return Err(Malformed),
    };
    match fields.0.is_empty() {
        true => Ok(message),
        false => Err(Malformed),
    }
}

/// What is left of a body.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Result<&'a [u8; LEN], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|&[byte]| byte)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        self.array().map(|bytes| u64::from_be_bytes(*bytes))
    }

    fn span(&mut self) -> Result<Duration, Malformed> {
        self.number().map(Duration::from_nanos)
    }

    fn place(&mut self) -> Result<Place, Malformed> {
        Ok(Place {
            era: self.number()?,
            token: self.number()?,
        })
    }

    fn grant(&mut self) -> Result<Grant, Malformed> {
        let withdrawn_for = self.span()?;
        let count = usize::from(self.byte()?);
        if count > KEYS_MAX {
            return Err(Malformed);
        }
        let mut keys = Vec::with_capacity(count);
        for _ in 0..count {
            keys.push(GrantedKey {
                place: self.place()?,
                key: GroupKey::new::<RingSuite>(Zeroizing::new(*self.array()?)),
                seals_in: self.span()?,
                seals_for: self.span()?,
                opens_for: self.span()?,
            });
        }
        Ok(Grant {
            keys,
            withdrawn_for,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grant(seeds: &[(u64, u8)]) -> Grant {
        let key = |&(number, byte): &(u64, u8)| GrantedKey {
            place: Place {
                era: number / 3,
                token: number,
            },
            key: GroupKey::new::<RingSuite>(Zeroizing::new([byte; 32])),
            seals_in: Duration::from_nanos(number),
            seals_for: Duration::from_nanos(number ^ 1),
            opens_for: Duration::from_nanos(!number),
        };
        Grant {
            keys: seeds.iter().map(key).collect(),
            withdrawn_for: Duration::from_millis(7),
        }
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_however_they_are_cut(
            seeds in prop::collection::vec(any::<(u64, u8)>(), 0..=KEYS_MAX),
            name in "[a-z]{1,63}",
            cut in 1usize..300,
        ) {
            let said = [
                Message::Ask { group: name, place: Place { era: 7, token: 9 } },
                Message::Answer(grant(&seeds)),
                Message::Refused(Refused::NoMember),
                Message::Push(grant(&seeds)),
                Message::Refused(Refused::NoKeys),
            ];
            let mut bytes = Zeroizing::new(Vec::new());
            said.iter().for_each(|message| write(message, &mut bytes));
            let (mut arrived, mut heard) = (Zeroizing::new(Vec::new()), Vec::new());
            for piece in bytes.chunks(cut) {
                arrived.extend_from_slice(piece);
                while let Some(message) = take(&mut arrived).unwrap() {
                    heard.push(message);
                }
            }
            prop_assert!(arrived.is_empty());
            prop_assert_eq!(&heard[..], &said[..]);
        }

        #[test]
        fn what_is_understood_is_written_again_as_it_came(body in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..6) {
            let mut bytes = Zeroizing::new(((body.len() + 1) as u32).to_be_bytes().to_vec());
            bytes.push(kind);
            bytes.extend_from_slice(&body);
            let came = bytes.clone();
            if let Ok(Some(message)) = take(&mut bytes) {
                let mut again = Zeroizing::new(Vec::new());
                write(&message, &mut again);
                prop_assert_eq!(&*again, &*came);
            }
        }
    }

    #[test]
    fn what_is_too_long_too_short_or_followed_by_more_is_refused() {
        let refused = |bytes: &[u8]| take(&mut Zeroizing::new(bytes.to_vec())) == Err(Malformed);
        assert!(refused(&[0xFF; 4]), "before anything is kept for it");
        assert!(refused(&((LONGEST + 1) as u32).to_be_bytes()));
        assert!(refused(&[0, 0, 0, 0]));
        assert!(refused(&[0, 0, 0, 3, REFUSED, 0, 0]));
        assert!(refused(&[0, 0, 0, 2, REFUSED, 2]));
        assert!(refused(&[0, 0, 0, 2, ASK, 0]), "a group without a name");
        let mut many = vec![0, 0, 0, 10, ANSWER];
        many.extend([0; 8]);
        many.push(KEYS_MAX as u8 + 1);
        assert!(refused(&many), "more keys than anybody gives");
    }
}
