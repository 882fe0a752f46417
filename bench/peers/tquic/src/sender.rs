//! The sender: a thread that takes states from the channels' threads and drives tquic.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use bytes::{Buf, Bytes};
use mio::Waker;
use peer_certificate::NAME;
use peer_conversation::{Arguments, Timing, digest};
use peer_tquic::network::{Driver, Sockets};
use tquic::{Connection, Endpoint, Error, TransportHandler};

use crate::settings::config;

const WAIT: Duration = Duration::from_secs(1);
/// Least urgent of the classes that HTTP uses by default; all streams have the same.
const URGENCY: u8 = 3;
/// How long connections and paths may take to come up.
const CONNECTING: Duration = Duration::from_secs(10);

/// One state to send.
pub struct Job {
    pub channel: usize,
    pub state: Bytes,
    pub answer: mpsc::Sender<anyhow::Result<Timing>>,
}

/// Connects, calls `ready`, then sends what comes from the queue.
pub fn run(
    arguments: &Arguments,
    queue: mpsc::Receiver<Job>,
    ready: impl FnOnce(Waker),
) -> anyhow::Result<()> {
    let sockets = Sockets::bind(&arguments.local, 0)?;
    let mut driver = Driver::new(&sockets)?;
    let waker = driver.waker()?;
    let remote = arguments
        .remote
        .iter()
        .map(|address| (*address, arguments.port).into());
    let paths: Vec<_> = sockets.addresses().into_iter().zip(remote).collect();
    let shared = Rc::new(RefCell::new(Shared::default()));
    let handler = Box::new(Handler {
        paths: paths.clone(),
        shared: shared.clone(),
    });
    let config = Box::new(config(arguments, false)?);
    let mut endpoint = Endpoint::new(config, false, handler, sockets);
    let connections = connect(arguments, &paths, &mut endpoint, &mut driver, &shared)?;
    ready(waker);
    loop {
        while let Ok(job) = queue.try_recv() {
            let place = connections[arguments.connection_of(job.channel)];
            begin(&mut endpoint, place, job, &mut shared.borrow_mut());
        }
        endpoint.process_connections()?;
        driver.turn(&mut endpoint, WAIT)?;
        endpoint.process_connections()?;
    }
}

/// What the loop and tquic's callbacks share.
#[derive(Default)]
struct Shared {
    /// Transfers under way, by connection and stream.
    transfers: HashMap<(u64, u64), Transfer>,
    closed: Option<String>,
}

struct Transfer {
    start: Instant,
    digest: u64,
    /// What tquic has not yet taken.
    rest: Bytes,
    acknowledgement: Vec<u8>,
    answer: mpsc::Sender<anyhow::Result<Timing>>,
}

impl Transfer {
    /// Gives tquic as much as it takes.
    fn write(&mut self, connection: &mut Connection, stream: u64) -> anyhow::Result<()> {
        while !self.rest.is_empty() {
            match connection.stream_write(stream, self.rest.clone(), true) {
                Ok(written) if written > 0 => self.rest.advance(written),
                Ok(_) | Err(Error::Done) => {
                    connection.stream_want_write(stream, true)?;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        connection.stream_want_write(stream, false)?;
        Ok(())
    }

    /// Reads the acknowledgement; says whether it is whole.
    fn read(&mut self, connection: &mut Connection, stream: u64) -> anyhow::Result<bool> {
        let mut bytes = [0; 8];
        loop {
            match connection.stream_read(stream, &mut bytes) {
                Ok((read, end)) => {
                    self.acknowledgement.extend_from_slice(&bytes[..read]);
                    if end || self.acknowledgement.len() >= bytes.len() {
                        break;
                    }
                }
                Err(Error::Done) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        if self.acknowledgement != self.digest.to_le_bytes() {
            bail!("the acknowledgement is of another state");
        }
        Ok(true)
    }
}

/// Opens the connections and waits until every path of each is valid.
fn connect(
    arguments: &Arguments,
    paths: &[(SocketAddr, SocketAddr)],
    endpoint: &mut Endpoint,
    driver: &mut Driver,
    shared: &Rc<RefCell<Shared>>,
) -> anyhow::Result<Vec<u64>> {
    let end = Instant::now() + CONNECTING;
    let mut connections = Vec::new();
    let (local, remote) = paths[0];
    for _ in 0..arguments.connection_count() {
        let place = endpoint.connect(local, remote, Some(NAME), None, None, None)?;
        connections.push(place);
        while !is_up(endpoint, place, paths) {
            endpoint.process_connections()?;
            driver.turn(endpoint, Duration::from_millis(10))?;
            if let Some(reason) = &shared.borrow().closed {
                bail!("cannot connect to {remote}: {reason}");
            }
            if Instant::now() > end {
                bail!("cannot connect to {remote} on every path within {CONNECTING:?}");
            }
        }
    }
    Ok(connections)
}

fn is_up(endpoint: &mut Endpoint, place: u64, paths: &[(SocketAddr, SocketAddr)]) -> bool {
    let Some(connection) = endpoint.conn_get_mut(place) else {
        return false;
    };
    let valid = |(local, remote): &(SocketAddr, SocketAddr)| {
        connection
            .get_path(*local, *remote)
            .is_ok_and(tquic::Path::validated)
    };
    paths.iter().all(valid) && connection.is_confirmed()
}

/// Opens a stream for the state and begins to write it.
fn begin(endpoint: &mut Endpoint, place: u64, job: Job, shared: &mut Shared) {
    let mut transfer = Transfer {
        start: Instant::now(),
        digest: digest(&job.state),
        rest: job.state,
        acknowledgement: Vec::new(),
        answer: job.answer,
    };
    let Some(connection) = endpoint.conn_get_mut(place) else {
        let reason = shared.closed.clone().unwrap_or_default();
        let _ = transfer
            .answer
            .send(Err(anyhow!("the connection is closed: {reason}")));
        return;
    };
    let opened = connection.stream_bidi_new(URGENCY, true);
    let begun = opened.map_err(anyhow::Error::from).and_then(|stream| {
        connection.stream_want_read(stream, true)?;
        transfer.write(connection, stream)?;
        Ok(stream)
    });
    match begun {
        Ok(stream) => drop(shared.transfers.insert((place, stream), transfer)),
        Err(error) => drop(transfer.answer.send(Err(error))),
    }
}

struct Handler {
    paths: Vec<(SocketAddr, SocketAddr)>,
    shared: Rc<RefCell<Shared>>,
}

impl Handler {
    /// Works on the transfer of a stream and answers if it has ended.
    fn with(
        &mut self,
        connection: &mut Connection,
        stream: u64,
        work: impl FnOnce(&mut Transfer, &mut Connection) -> anyhow::Result<bool>,
    ) {
        let key = (connection.index().unwrap_or_default(), stream);
        let mut shared = self.shared.borrow_mut();
        let Some(transfer) = shared.transfers.get_mut(&key) else {
            return;
        };
        let result = work(transfer, connection);
        let timing = Timing {
            start: transfer.start,
            end: Instant::now(),
        };
        let answer = match result {
            Ok(false) => return,
            Ok(true) => Ok(timing),
            Err(error) => Err(error),
        };
        let _ = transfer.answer.send(answer);
        shared.transfers.remove(&key);
    }
}

impl TransportHandler for Handler {
    fn on_conn_created(&mut self, _: &mut Connection) {}
    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}
    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}

    fn on_conn_established(&mut self, connection: &mut Connection) {
        for (local, remote) in &self.paths[1..] {
            if let Err(error) = connection.add_path(*local, *remote) {
                eprintln!("tquic: cannot add the path from {local} to {remote}: {error}");
            }
        }
    }

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        self.with(connection, stream, |transfer, connection| {
            transfer.read(connection, stream)
        });
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.with(connection, stream, |transfer, connection| {
            transfer.write(connection, stream).map(|()| false)
        });
    }

    fn on_stream_closed(&mut self, connection: &mut Connection, stream: u64) {
        let place = connection.index().unwrap_or_default();
        self.shared.borrow_mut().transfers.remove(&(place, stream));
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let reason = match (connection.peer_error(), connection.local_error()) {
            (Some(error), _) => format!("the receiver says {error:?}"),
            (None, Some(error)) => format!("{error:?}"),
            (None, None) => "idle for too long".to_owned(),
        };
        self.shared.borrow_mut().closed = Some(reason);
    }
}
