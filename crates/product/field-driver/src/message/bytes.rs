//! Reading and writing the parts of messages.

use super::{Fault, HEADER, Kind, MESSAGE_MAX, VERSION};

/// Empties `buffer` and begins a message in it.
pub(super) fn begin(buffer: &mut Vec<u8>, kind: Kind, number: u32) {
    buffer.clear();
    buffer.extend([VERSION, kind as u8, 0, 0]);
    buffer.extend(number.to_be_bytes());
}

/// Appends a text, cut where it is longer than a message may have it.
pub(super) fn put_text(buffer: &mut Vec<u8>, text: &str) {
    let mut len = text.len().min(u16::MAX.into());
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    buffer.extend((len as u16).to_be_bytes());
    buffer.extend(&text.as_bytes()[..len]);
}

/// What of a message has not been read yet.
pub(super) struct Rest<'m>(&'m [u8]);

/// The kind and number of a message, and the rest of it.
pub(super) fn open(message: &[u8]) -> Result<(Kind, u32, Rest<'_>), Fault> {
    let version = *message.first().ok_or(Fault::Malformed)?;
    if version != VERSION {
        return Err(Fault::Version(version));
    }
    if message.len() > MESSAGE_MAX || message.len() < HEADER {
        return Err(Fault::Malformed);
    }
    let mut rest = Rest(&message[1..]);
    let kind = Kind::of(rest.byte()?).ok_or(Fault::Malformed)?;
    rest.zeros(2)?;
    let number = rest.u32()?;
    Ok((kind, number, rest))
}

impl<'m> Rest<'m> {
    /// Of a part that has no header.
    pub fn of(bytes: &'m [u8]) -> Self {
        Self(bytes)
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'m [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Fault::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn byte(&mut self) -> Result<u8, Fault> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.bytes(N)?.try_into().map_err(|_| Fault::Malformed)
    }

    pub fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_be_bytes)
    }

    pub fn f64(&mut self) -> Result<f64, Fault> {
        self.u64().map(f64::from_bits)
    }

    pub fn zeros(&mut self, count: usize) -> Result<(), Fault> {
        let zeros = self.bytes(count)?;
        zeros
            .iter()
            .all(|&byte| byte == 0)
            .then_some(())
            .ok_or(Fault::Malformed)
    }

    pub fn text(&mut self) -> Result<&'m str, Fault> {
        let len = self.u16()?;
        std::str::from_utf8(self.bytes(len.into())?).map_err(|_| Fault::Malformed)
    }

    /// All of it.
    pub fn all(&mut self) -> &'m [u8] {
        std::mem::take(&mut self.0)
    }

    pub fn end(self) -> Result<(), Fault> {
        self.0.is_empty().then_some(()).ok_or(Fault::Malformed)
    }
}
