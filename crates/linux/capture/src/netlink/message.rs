//! How messages and their attributes lie in memory: lengths and kinds in the machine's byte order, everything
//! aligned to four bytes.

const HEADER_LEN: usize = 16;
const ATTRIBUTE_LEN: usize = 4;
/// The upper two bits of an attribute's kind say something of its content.
const KIND_MASK: u16 = 0x3FFF;
const NESTED: u16 = 0x8000;

const REQUEST: u16 = 1;
/// An answer is asked for.
const ACKNOWLEDGE: u16 = 4;

/// Messages under construction, one after the other.
#[derive(Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
    /// Where the last one begins.
    at: usize,
}

impl Message {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a message that is answered.
    pub fn begin(self, kind: u16, flags: u16) -> Self {
        self.header(kind, flags | REQUEST | ACKNOWLEDGE)
    }

    /// Begins a message that is answered only if something is wrong.
    pub fn begin_quiet(self, kind: u16, flags: u16) -> Self {
        self.header(kind, flags | REQUEST)
    }

    fn header(mut self, kind: u16, flags: u16) -> Self {
        self.at = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend([0; 8]);
        self.close()
    }

    /// Netfilter's own header: address family, and a number that its subsystem gives a meaning.
    pub fn netfilter(self, family: u8, number: u16) -> Self {
        let [high, low] = number.to_be_bytes();
        self.raw(&[family, 0, high, low])
    }

    /// Bytes as they are.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self.close()
    }

    /// An attribute.
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let length = (ATTRIBUTE_LEN + value.len()) as u16;
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.close()
    }

    /// An attribute with text, which ends with a zero.
    pub fn text(self, kind: u16, text: &str) -> Self {
        self.attribute(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// An attribute with a number in network byte order.
    pub fn number(self, kind: u16, number: u32) -> Self {
        self.attribute(kind, &number.to_be_bytes())
    }

    /// An attribute with attributes in it.
    pub fn nested(mut self, kind: u16, inner: impl FnOnce(Self) -> Self) -> Self {
        let at = self.bytes.len();
        self.bytes.extend([0; ATTRIBUTE_LEN]);
        let mut all = inner(self);
        let length = (all.bytes.len() - at) as u16;
        all.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        all.bytes[at + 2..at + 4].copy_from_slice(&(kind | NESTED).to_ne_bytes());
        all.close()
    }

    /// Pads the last message and writes its length.
    fn close(mut self) -> Self {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
        let length = (padded - self.at) as u32;
        self.bytes[self.at..self.at + 4].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Puts these bytes in the place of as many last ones.
    pub fn set_end(&mut self, end: &[u8]) {
        let at = self.bytes.len().saturating_sub(end.len());
        let len = self.bytes.len() - at;
        self.bytes[at..].copy_from_slice(&end[..len]);
    }

    /// What is to be sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The messages in what has come: kind and body. What is cut off ends them.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header: &[u8; HEADER_LEN] = bytes.first_chunk()?;
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let body = bytes.get(HEADER_LEN..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// Attributes one after the other: kind and value. What is cut off ends them.
#[derive(Clone, Debug)]
pub struct Attributes<'a>(&'a [u8]);

/// The attributes in a body behind a header of `skip` bytes.
pub fn attributes(body: &[u8], skip: usize) -> Attributes<'_> {
    Attributes(body.get(skip..).unwrap_or_default())
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let &[a, b, c, d] = self.0.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = self.0.get(ATTRIBUTE_LEN..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & KIND_MASK, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let made = Message::new()
            .begin(7, 0)
            .netfilter(2, 0x0102)
            .text(1, "abc")
            .nested(2, |it| it.number(3, 5).attribute(4, &[9]))
            .begin_quiet(8, 0x400)
            .netfilter(0, 0);
        let all: Vec<_> = messages(made.bytes()).collect();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].0, all[1].0), (7, 8));
        assert_eq!(all[0].1[..4], [2, 0, 1, 2]);
        let found: Vec<_> = attributes(all[0].1, 4).collect();
        assert_eq!(found[0], (1, &b"abc\0"[..]));
        let inner: Vec<_> = attributes(found[1].1, 0).collect();
        assert_eq!(inner, [(3, &[0, 0, 0, 5][..]), (4, &[9][..])]);
    }

    #[test]
    fn lengths_that_lie_end_what_is_read() {
        let whole = Message::new().begin(7, 0).raw(&[0; 4]).text(1, "abc");
        for cut in 0..whole.bytes().len() {
            assert_eq!(messages(&whole.bytes()[..cut]).count(), 0, "{cut}");
        }
        let lies = |length: u16| {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.extend([0; 6]);
            attributes(&bytes, 0).count()
        };
        assert_eq!([0, 3, 9, u16::MAX].map(lies), [0; 4]);
        let mut none = [0u8; 16];
        assert_eq!(messages(&none).count(), 0);
        none[0] = 200;
        assert_eq!(messages(&none).count(), 0);
    }
}
