//! What stands in a key file.

use zeroize::Zeroizing;

/// The word before the secret; its number is the version of the file.
pub const KIND: &str = "bumpless-secret-1";
/// Longest file, bytes: comments may be added.
pub const LEN_MAX: usize = 4096;

const ANY_VERSION: &str = "bumpless-secret-";
const COMMENT: &str = "\
# The secret of a Bumpless pair. Whoever has it can read, forge and take over what the pair does.
# Copy it to the pair's computers, and to no others, by a way that nobody else can read (scp, a USB stick that is then
# wiped). Only its owner may have the right to read it: chmod 600. `bumpless key show` tells which key it is.
";

/// A secret, overwritten when dropped.
pub type Bytes = Zeroizing<[u8; 32]>;

/// What keeps a text from being a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garbled {
    /// It has not the one line.
    NoSecret,
    /// That line is of another version.
    OtherVersion,
}

/// The text of a file with `secret`.
pub fn write(secret: &[u8; 32]) -> Zeroizing<String> {
    // As long as it gets at once: growing would leave a part of the secret where it was.
    let len = COMMENT.len() + KIND.len() + 1 + 2 * secret.len() + 1;
    let mut text = Zeroizing::new(String::with_capacity(len));
    text.push_str(COMMENT);
    text.push_str(KIND);
    text.push(' ');
    for half in secret.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        text.extend(char::from_digit(half.into(), 16));
    }
    text.push('\n');
    text
}

/// The secret in a file with this content.
pub fn read(content: &[u8]) -> Result<Bytes, Garbled> {
    let text = str::from_utf8(content).map_err(|_| Garbled::NoSecret)?;
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(Garbled::NoSecret);
    };
    match line.split_once(' ') {
        Some((KIND, digits)) => unhex(digits.trim_start()).ok_or(Garbled::NoSecret),
        Some((word, _)) if word.starts_with(ANY_VERSION) => Err(Garbled::OtherVersion),
        _ => Err(Garbled::NoSecret),
    }
}

fn unhex(digits: &str) -> Option<Bytes> {
    let mut bytes = Bytes::default();
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        for &digit in pair {
            *byte = *byte << 4 | char::from(digit).to_digit(16)? as u8;
        }
    }
    Some(bytes)
}
