//! The file of a state on disk (spec/persist.md): what it says, byte for byte. All big endian.
//!
//! [`parse`] is total over all inputs, and finds whatever was not written whole.

use bumpless_base::Epoch;
use bumpless_controller::retain::{RECORD_MAX, Record};
use bumpless_controller::state::Progress;
use crc::{CRC_64_XZ, Crc, Table};

const MAGIC: [u8; 8] = *b"bumpless";
/// The layout's version that is written and read.
pub const VERSION: u16 = 2;
/// The one before, which is read as well: it has no record of retained variables.
const WITHOUT_RECORD: u16 = 1;
/// Bytes before the application's name.
const FIXED: usize = 52;
/// Bytes of the check sequence at the end.
const CHECK: usize = 8;
/// Longest name of an application (C-6).
const NAME_MAX: usize = 32;

const CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// What a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateFile<'a> {
    /// Hash of the pair's name.
    pub pair: u32,
    /// Hash of what the application's program is.
    pub program: u64,
    /// Its name.
    pub application: &'a str,
    /// How far it had come.
    pub progress: Progress,
    /// When the state was published, or came from the partner: nanoseconds since 1970, by the computer's clock.
    pub published_ns: u64,
    /// The state as it was published, envelope included.
    pub state: &'a [u8],
    /// The values of its retained variables.
    pub retained: Record<'a>,
}

/// Why some bytes are no file of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// They do not begin like one.
    Foreign,
    /// They are of another version of the layout.
    Version(u16),
    /// They were not written whole, or have changed since.
    Torn,
}

/// The most bytes that the file of a state of up to `state_max` bytes has.
pub const fn size_max(state_max: usize) -> usize {
    FIXED + NAME_MAX + state_max + RECORD_MAX + CHECK
}

/// Writes `file` to `into`, whose memory is kept.
pub fn encode(file: &StateFile<'_>, into: &mut Vec<u8>) {
    into.clear();
    into.extend(MAGIC);
    into.extend(VERSION.to_be_bytes());
    into.extend((file.application.len() as u16).to_be_bytes());
    into.extend(file.pair.to_be_bytes());
    into.extend(file.program.to_be_bytes());
    into.extend(file.progress.epoch.0.to_be_bytes());
    into.extend(file.progress.cycle.to_be_bytes());
    into.extend(file.published_ns.to_be_bytes());
    into.extend((file.state.len() as u32).to_be_bytes());
    into.extend((file.retained.bytes().len() as u32).to_be_bytes());
    into.extend(file.application.as_bytes());
    into.extend(file.state);
    into.extend(file.retained.bytes());
    into.extend(CRC.checksum(into).to_be_bytes());
}

/// Takes `bytes` apart.
///
/// # Errors
/// [`FormatError`] for whatever [`encode`] has not written.
pub fn parse(bytes: &[u8]) -> Result<StateFile<'_>, FormatError> {
    let mut rest = Rest(bytes);
    if rest.take::<8>() != Some(MAGIC) {
        return Err(FormatError::Foreign);
    }
    let version = rest.take().map(u16::from_be_bytes);
    match version {
        Some(version @ (VERSION | WITHOUT_RECORD)) => {
            parse_body(bytes, rest, version == VERSION).ok_or(FormatError::Torn)
        }
        Some(other) => Err(FormatError::Version(other)),
        None => Err(FormatError::Torn),
    }
}

fn parse_body<'a>(bytes: &'a [u8], mut rest: Rest<'a>, has_record: bool) -> Option<StateFile<'a>> {
    let (covered, check) = bytes.split_last_chunk::<CHECK>()?;
    if CRC.checksum(covered) != u64::from_be_bytes(*check) {
        return None;
    }
    let name = usize::from(rest.take().map(u16::from_be_bytes)?);
    let pair = rest.take().map(u32::from_be_bytes)?;
    let program = rest.take().map(u64::from_be_bytes)?;
    let epoch = rest.take().map(u32::from_be_bytes)?;
    let cycle = rest.take().map(u64::from_be_bytes)?;
    let published_ns = rest.take().map(u64::from_be_bytes)?;
    let state = rest.take().map(u32::from_be_bytes)?;
    let retained = match has_record {
        true => rest.take().map(u32::from_be_bytes)?,
        false => 0,
    };
    let application = str::from_utf8(rest.split(name)?).ok()?;
    let state = rest.split(usize::try_from(state).ok()?)?;
    let retained = Record::parse(rest.split(usize::try_from(retained).ok()?)?)?;
    (rest.0.len() == CHECK).then_some(StateFile {
        pair,
        program,
        application,
        progress: Progress {
            epoch: Epoch(epoch),
            cycle,
        },
        published_ns,
        state,
        retained,
    })
}

/// What is left to take apart.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn split(&mut self, len: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests;
