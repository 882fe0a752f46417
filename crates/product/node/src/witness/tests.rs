//! The witness behind real sockets.

use std::cell::Cell;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};

use bumpless_base::{Epoch, NodeId};
use bumpless_net_linux::{Errno, ReceiveOutcome, SendOutcome};
use bumpless_wire::WitnessKind;
use serde_json::Value;

use super::*;

/// What the journal wrote.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<u8>>>);

impl io::Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Told {
    fn lines(&self) -> Vec<Value> {
        let bytes = self.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn asked(group: u16) -> WitnessRequest {
    WitnessRequest {
        pair: 1,
        group,
        node: NodeId(0),
        candidates: 2,
        session: 7,
        kind: WitnessKind::AcquireLone,
        epoch: Epoch(2),
        lease_us: 1000,
        sent_at: 1,
        token: 1,
        witness_session: 0,
    }
}

fn request(group: u16) -> [u8; WitnessRequest::LEN] {
    encoded(&asked(group))
}

fn with_lease(lease_us: u32) -> [u8; WitnessRequest::LEN] {
    encoded(&WitnessRequest {
        lease_us,
        ..asked(0)
    })
}

fn encoded(request: &WitnessRequest) -> [u8; WitnessRequest::LEN] {
    let mut bytes = [0; WitnessRequest::LEN];
    request.encode(&mut bytes);
    bytes
}

/// What another witness answers.
fn reply() -> [u8; WitnessReply::LEN] {
    let mut bytes = [0; WitnessReply::LEN];
    let mut other = Witness::new(WitnessSetup::default(), 2, Instant::ZERO).unwrap();
    let reply = other.handle_request(&asked(0), Instant::ZERO).unwrap();
    reply.encode(&mut bytes);
    bytes
}

/// A witness with room for one group, its socket, and what it tells.
fn served() -> (Server, UdpLink, Told) {
    let setup = WitnessSetup {
        capacity: 1,
        ..WitnessSetup::default()
    };
    let told = Told::default();
    let journal = Journal::start(true, told.clone()).unwrap();
    let witness = Witness::new(setup, 1, Instant::ZERO).unwrap();
    let envelopes = Envelopes::new([], &[], true, Instant::ZERO);
    let server = Server::new((witness, envelopes), journal, Instant::ZERO);
    let socket = UdpLink::open(&UdpConfig::new("127.0.0.1:0".parse().unwrap())).unwrap();
    (server, socket, told)
}

#[test]
fn whatever_is_not_served_is_counted_under_its_cause_and_told() {
    let (mut server, mut socket, told) = served();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |bytes: &[u8]| client.send_to(bytes, socket.local_address()).unwrap();
    send(&[0x77; 60]);
    send(&request(0)[..20]);
    send(&reply());
    // The second needs more room than the table has; the third asks for too long.
    send(&request(0));
    send(&request(1));
    send(&with_lease(u32::MAX));
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    server.serve(&mut socket, at(10));
    server.tell_discards(std::slice::from_ref(&socket), at(10));
    let counters = server.counters(std::slice::from_ref(&socket));
    let figures = [
        (Counter::DatagramsReceived, 6),
        (Counter::DatagramsSent, 3),
        (Counter::WitnessRequests, 3),
        (Counter::DiscardUnknownType, 1),
        (Counter::DiscardTruncated, 1),
        (Counter::DiscardWrongKind, 1),
        (Counter::WitnessTableFull, 1),
        (Counter::WitnessLeaseRefused, 1),
    ];
    for (counter, figure) in figures {
        assert_eq!(counters.get(counter), figure, "{}", counter.name());
    }

    // A request more changes nothing that is told; what is discarded waits for its time.
    server.tell_discards(std::slice::from_ref(&socket), at(21));
    client.send_to(&[0x77; 60], socket.local_address()).unwrap();
    server.serve(&mut socket, at(22));
    server.tell_discards(std::slice::from_ref(&socket), at(22));
    client.send_to(&[0x77; 60], socket.local_address()).unwrap();
    server.serve(&mut socket, at(23));
    server.tell_discards(std::slice::from_ref(&socket), at(23));
    server.end(std::slice::from_ref(&socket), at(24));
    let lines = told.lines();
    let counted: Vec<_> = lines
        .iter()
        .filter(|line| line["event"] == "counted")
        .map(|line| line["counters"]["discard_unknown_type"].as_u64().unwrap())
        .collect();
    assert_eq!(counted, [1, 2, 3], "{lines:#?}");
}

/// A network on which more arrives at once than is answered, and that fails.
#[derive(Default)]
struct Flooded {
    requests: u16,
    drops: u32,
    /// How often it was asked what the kernel dropped.
    asked: Cell<u32>,
}

impl Link for Flooded {
    fn send(&mut self, _: SocketAddr, _: &[Segment<'_>]) -> SendOutcome {
        SendOutcome::default()
    }
    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        (0..self.requests).for_each(|_| sink(self.local_address(), &mut request(0)));
        ReceiveOutcome {
            failure: Some(Errno(5)),
            ..Default::default()
        }
    }
    fn receive_drops(&self) -> Option<u32> {
        self.asked.set(self.asked.get() + 1);
        Some(self.drops)
    }
    fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        None
    }
    fn local_address(&self) -> SocketAddr {
        "127.0.0.1:9".parse().unwrap()
    }
}

#[test]
fn requests_beyond_the_bound_and_failures_of_the_network_are_counted() {
    let (mut server, ..) = served();
    let mut flooded = Flooded {
        requests: ANSWERS as u16 + 3,
        drops: 4,
        ..Flooded::default()
    };
    server.serve(&mut flooded, Instant::ZERO + Duration::from_secs(10));
    let counters = server.counters(std::slice::from_ref(&flooded));
    let figures = [
        (Counter::DiscardTooManyRequests, 3),
        (Counter::SendFailures, ANSWERS as u64),
        (Counter::ReceiveFailures, 1),
        (Counter::DiscardSocketFull, 4),
    ];
    for (counter, figure) in figures {
        assert_eq!(counters.get(counter), figure, "{}", counter.name());
    }
    server.end(&[flooded], Instant::ZERO);
}

#[test]
fn what_was_discarded_is_not_looked_at_with_every_request() {
    let (mut server, ..) = served();
    let quiet = [Flooded::default()];
    for millis in (10_000..13_000).step_by(10) {
        let now = Instant::ZERO + Duration::from_millis(millis);
        server.tell_discards(&quiet, now);
    }
    assert_eq!(quiet[0].asked.get(), 3);
    server.end(&quiet, Instant::ZERO);
}

/// An output without room.
struct Full;

impl io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_that_cannot_be_written_are_counted_as_lost() {
    let mut journal = Journal::start(true, Full).unwrap();
    let lost = Arc::clone(&journal.lost);
    journal.tell(Entry::Counted(Instant::ZERO, Box::default()));
    journal.end(Entry::Counted(Instant::ZERO, Box::default()));
    assert_eq!(lost.load(Ordering::Relaxed), 2);
}

mod protected;
