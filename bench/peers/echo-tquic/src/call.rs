//! The client.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use peer_certificate::NAME;
use peer_echo::{Call, ESTABLISHED, MESSAGE, Talk, now};
use peer_tquic::network::{Driver, Sockets};
use tquic::{Connection, Endpoint, TransportHandler};

use crate::outgoing::Outgoing;
use crate::settings::config;

/// Least urgent of the classes that HTTP uses by default.
const URGENCY: u8 = 3;
/// How long the end of the connection may take.
const LEAVING: Duration = Duration::from_millis(200);
/// How often whoever waits for paths looks.
const LOOK: Duration = Duration::from_millis(10);

/// Sends all messages, and tells what came of them.
pub fn call(call: &Call) -> anyhow::Result<()> {
    let sockets = Sockets::bind(&[call.from, call.backup_from], 0)?;
    let mut driver = Driver::new(&sockets)?.with_dead_paths();
    let remote = [call.to, call.backup_to].map(|address| SocketAddr::from((address, call.port)));
    let paths: Vec<_> = sockets.addresses().into_iter().zip(remote).collect();
    let shared = Rc::new(RefCell::new(Shared::default()));
    let handler = Box::new(Handler {
        backup: paths[1],
        shared: Rc::clone(&shared),
    });
    let mut endpoint = Endpoint::new(Box::new(config(false)?), false, handler, sockets);
    let place = connect(&mut endpoint, &mut driver, &paths)?;
    let connection = endpoint.conn_get_mut(place).context("no connection")?;
    let stream = connection.stream_bidi_new(URGENCY, true)?;
    connection.stream_want_read(stream, true)?;
    let mut talk = Talk::begin(call);
    loop {
        let at = now();
        for (answer, at) in shared.borrow_mut().take() {
            talk.hear(&answer, at);
        }
        if let Some(message) = talk.send(at) {
            // A connection that has ended leaves its messages without answers.
            if let Some(connection) = endpoint.conn_get_mut(place) {
                let outgoing = &mut shared.borrow_mut().outgoing;
                outgoing.send(connection, stream, &message);
            }
            endpoint.process_connections()?;
            continue;
        }
        if talk.is_over(at) {
            break;
        }
        let most = Duration::from_nanos(talk.next().saturating_sub(at));
        driver.turn(&mut endpoint, most)?;
        endpoint.process_connections()?;
    }
    // Before it tells everything: whoever hears that ends this process.
    let left = leave(&mut endpoint, &mut driver, place);
    talk.tell(None);
    left
}

/// Ends the connection, so that the server has none that it sends to in vain.
fn leave(endpoint: &mut Endpoint, driver: &mut Driver, place: u64) -> anyhow::Result<()> {
    if let Some(connection) = endpoint.conn_get_mut(place) {
        let _ = connection.close(true, 0, b"");
    }
    let end = Instant::now() + LEAVING;
    endpoint.process_connections()?;
    while endpoint.conn_get_mut(place).is_some() && Instant::now() < end {
        driver.turn(endpoint, LOOK)?;
        endpoint.process_connections()?;
    }
    Ok(())
}

/// Connects over the network, and waits until both paths are valid.
fn connect(
    endpoint: &mut Endpoint,
    driver: &mut Driver,
    paths: &[(SocketAddr, SocketAddr)],
) -> anyhow::Result<u64> {
    let (local, remote) = paths[0];
    let place = endpoint.connect(local, remote, Some(NAME), None, None, None)?;
    let end = Instant::now() + ESTABLISHED;
    loop {
        endpoint.process_connections()?;
        let connection = endpoint.conn_get_mut(place);
        let connection = connection.context("the connection has ended")?;
        let is_valid = |(local, remote): &(SocketAddr, SocketAddr)| {
            let path = connection.get_path(*local, *remote);
            path.is_ok_and(tquic::Path::validated)
        };
        if paths.iter().all(is_valid) && connection.is_confirmed() {
            return Ok(place);
        }
        if Instant::now() > end {
            bail!("no connection with both paths within {ESTABLISHED:?}");
        }
        driver.turn(endpoint, LOOK)?;
    }
}

/// What the loop and tquic's callbacks share.
#[derive(Default)]
struct Shared {
    outgoing: Outgoing,
    incoming: Vec<u8>,
    /// When the last of those bytes came.
    at: u64,
}

impl Shared {
    /// Takes the answers that are whole.
    fn take(&mut self) -> Vec<([u8; MESSAGE], u64)> {
        let at = self.at;
        let (whole, _) = self.incoming.as_chunks::<MESSAGE>();
        let answers: Vec<_> = whole.iter().map(|answer| (*answer, at)).collect();
        self.incoming.drain(..answers.len() * MESSAGE);
        answers
    }
}

struct Handler {
    backup: (SocketAddr, SocketAddr),
    shared: Rc<RefCell<Shared>>,
}

impl TransportHandler for Handler {
    fn on_conn_created(&mut self, _: &mut Connection) {}
    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}
    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}
    fn on_conn_closed(&mut self, _: &mut Connection) {}
    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}

    fn on_conn_established(&mut self, connection: &mut Connection) {
        let (local, remote) = self.backup;
        if let Err(error) = connection.add_path(local, remote) {
            eprintln!("echo-tquic: no path from {local} to {remote}: {error}");
        }
    }

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let shared = &mut *self.shared.borrow_mut();
        let mut chunk = [0; 4 * MESSAGE];
        while let Ok((length, _)) = connection.stream_read(stream, &mut chunk) {
            if length == 0 {
                break;
            }
            shared.incoming.extend_from_slice(&chunk[..length]);
            shared.at = now();
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.shared.borrow_mut().outgoing.flush(connection, stream);
    }
}
