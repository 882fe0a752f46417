//! The server: each stream comes back.

use std::collections::HashMap;
use std::time::Duration;

use peer_echo::{MESSAGE, Serve};
use peer_tquic::network::{Driver, Sockets};
use tquic::{Connection, Endpoint, TransportHandler};

use crate::outgoing::Outgoing;
use crate::settings::config;

const WAIT: Duration = Duration::from_secs(1);

/// Listens at both addresses, says so, and serves for ever.
pub fn serve(serve: &Serve) -> anyhow::Result<()> {
    let sockets = Sockets::bind(&[serve.address, serve.backup], serve.port)?;
    let mut driver = Driver::new(&sockets)?.with_dead_paths();
    let echo = Box::new(Echo::default());
    let mut endpoint = Endpoint::new(Box::new(config(true)?), true, echo, sockets);
    peer_echo::say_listening();
    loop {
        driver.turn(&mut endpoint, WAIT)?;
        endpoint.process_connections()?;
    }
}

/// What goes back, by connection and stream.
#[derive(Default)]
struct Echo(HashMap<(Option<u64>, u64), Outgoing>);

impl TransportHandler for Echo {
    fn on_conn_created(&mut self, _: &mut Connection) {}
    fn on_conn_established(&mut self, _: &mut Connection) {}
    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}

    fn on_stream_created(&mut self, connection: &mut Connection, stream: u64) {
        let _ = connection.stream_want_read(stream, true);
    }

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let outgoing = self.0.entry((connection.index(), stream)).or_default();
        let mut chunk = [0; 4 * MESSAGE];
        while let Ok((length, _)) = connection.stream_read(stream, &mut chunk) {
            if length == 0 {
                break;
            }
            outgoing.send(connection, stream, &chunk[..length]);
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        if let Some(outgoing) = self.0.get_mut(&(connection.index(), stream)) {
            outgoing.flush(connection, stream);
        }
    }

    fn on_stream_closed(&mut self, connection: &mut Connection, stream: u64) {
        self.0.remove(&(connection.index(), stream));
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let index = connection.index();
        self.0.retain(|(of, _), _| *of != index);
    }
}
