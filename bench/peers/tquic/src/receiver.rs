//! The receiver: puts each stream's state together and answers with its digest.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use peer_conversation::{Arguments, digest};
use peer_tquic::network::{Driver, Sockets};
use tquic::{Connection, Endpoint, Error, TransportHandler};

use crate::settings::config;

const WAIT: Duration = Duration::from_secs(1);

/// Receives for ever; calls `ready` when it listens.
pub fn run(arguments: &Arguments, ready: impl FnOnce()) -> anyhow::Result<()> {
    let sockets = Sockets::bind(&arguments.local, arguments.port)?;
    let mut driver = Driver::new(&sockets)?;
    let handler = Box::new(Receiver {
        max_size: arguments.max_size,
        states: HashMap::new(),
        spare: Vec::new(),
    });
    let config = Box::new(config(arguments, true)?);
    let mut endpoint = Endpoint::new(config, true, handler, sockets);
    ready();
    loop {
        driver.turn(&mut endpoint, WAIT)?;
        endpoint.process_connections()?;
    }
}

struct Receiver {
    max_size: usize,
    /// States that are coming in, by connection and stream.
    states: HashMap<(Option<u64>, u64), State>,
    /// Buffers that are not in use.
    spare: Vec<Vec<u8>>,
}

/// A state that is coming in: a buffer, and how much of it is filled.
struct State {
    bytes: Vec<u8>,
    length: usize,
}

impl Receiver {
    /// Reads what there is; gives the digest when that was the end.
    fn read(&mut self, connection: &mut Connection, stream: u64) -> Option<u64> {
        let key = (connection.index(), stream);
        let state = self.states.entry(key).or_insert_with(|| State {
            bytes: self
                .spare
                .pop()
                .unwrap_or_else(|| vec![0; self.max_size + 1]),
            length: 0,
        });
        loop {
            match connection.stream_read(stream, &mut state.bytes[state.length..]) {
                Ok((read, end)) => {
                    state.length += read;
                    if end {
                        let state = self.states.remove(&key)?;
                        let digest = digest(&state.bytes[..state.length]);
                        self.spare.push(state.bytes);
                        return Some(digest);
                    }
                    if read == 0 {
                        return None;
                    }
                }
                Err(Error::Done) => return None,
                Err(error) => {
                    eprintln!("tquic: stream {stream}: {error}");
                    self.spare
                        .extend(self.states.remove(&key).map(|state| state.bytes));
                    return None;
                }
            }
        }
    }
}

impl TransportHandler for Receiver {
    fn on_conn_created(&mut self, _: &mut Connection) {}
    fn on_conn_established(&mut self, _: &mut Connection) {}
    fn on_stream_writable(&mut self, _: &mut Connection, _: u64) {}
    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}

    fn on_stream_created(&mut self, connection: &mut Connection, stream: u64) {
        let _ = connection.stream_want_read(stream, true);
    }

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        if let Some(digest) = self.read(connection, stream) {
            let acknowledgement = Bytes::copy_from_slice(&digest.to_le_bytes());
            if let Err(error) = connection.stream_write(stream, acknowledgement, true) {
                eprintln!("tquic: cannot acknowledge on stream {stream}: {error}");
            }
        }
    }

    fn on_stream_closed(&mut self, connection: &mut Connection, stream: u64) {
        let state = self.states.remove(&(connection.index(), stream));
        self.spare.extend(state.map(|state| state.bytes));
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let index = connection.index();
        self.states.retain(|(of, _), _| *of != index);
    }
}
