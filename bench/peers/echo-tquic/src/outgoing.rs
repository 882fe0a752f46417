//! Bytes for a stream that it does not take at once.

use bytes::{Buf, BytesMut};
use tquic::{Connection, Error};

/// What a stream has not taken yet.
#[derive(Debug, Default)]
pub struct Outgoing(BytesMut);

impl Outgoing {
    /// Appends `bytes`, and gives the stream as much as it takes.
    pub fn send(&mut self, connection: &mut Connection, stream: u64, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.flush(connection, stream);
    }

    /// Gives the stream as much as it takes. One that fails is its client's to notice.
    pub fn flush(&mut self, connection: &mut Connection, stream: u64) {
        while !self.0.is_empty() {
            let rest = self.0.clone().freeze();
            match connection.stream_write(stream, rest, false) {
                Ok(written) if written > 0 => self.0.advance(written),
                Ok(_) | Err(Error::Done) => break,
                Err(_) => return self.0.clear(),
            }
        }
        let _ = connection.stream_want_write(stream, !self.0.is_empty());
    }
}
