//! What a node's drivers lose or refuse stands in its status, each under its cause.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

use bumpless_base::{Counter, Duration, Instant, LinkId};
use bumpless_config::Config;
use bumpless_net_linux::{
    Echo, EchoReply, Link, PassedOver, ReceiveOutcome, Segment, SendFailure, SendOutcome,
};
use bumpless_node::build::{Beginning, Node};
use bumpless_node::data_plane::Turn;
use bumpless_node::data_plane::addresses::Addresses;
use bumpless_node::data_plane::drivers::Drivers;
use bumpless_node::data_plane::link_port::LinkPort;
use bumpless_node::data_plane::protection::Protection;
use bumpless_node::wiring::Wiring;

const PAIR: &str = "[pair]\nname = \"counted\"\n[security]\npackets = \"open\"\n[[network]]\nname = \"A\"\nbandwidth_mbit = 1000\n\
    [[node]]\nname = \"left\"\naddresses = { A = \"127.0.0.1:4700\" }\n\
    [[node]]\nname = \"right\"\naddresses = { A = \"127.0.0.2:4700\" }\n\
    [[reference]]\nname = \"r\"\nkind = \"ping\"\nnetwork = \"A\"\naddress = \"127.0.0.3\"\n\
    [[group]]\nname = \"g\"\nnodes = [\"left\", \"right\"]\nreferences = [\"r\"]\n\
    [[application]]\nname = \"a\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 1\nperiod_ms = 50\n\
    size = \"100 B\"\nchanged_share = 1.0\n";

/// A network that takes nothing, and names no source of what arrives.
struct Odd;

impl Link for Odd {
    fn send(&mut self, _: SocketAddr, _: &[Segment<'_>]) -> SendOutcome {
        SendOutcome::default()
    }
    fn receive(&mut self, _: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        ReceiveOutcome {
            without_source: 2,
            ..ReceiveOutcome::default()
        }
    }
    fn receive_drops(&self) -> Option<u32> {
        Some(6)
    }
    fn descriptor(&self) -> Option<RawFd> {
        None
    }
    fn local_address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 4700))
    }
}

/// An echo socket that sends nothing, and has one reply that nobody asked for.
struct Deaf(Option<EchoReply>);

impl Echo for Deaf {
    fn send(&mut self, _: u16) -> Result<(), SendFailure> {
        Err(SendFailure::Unreachable)
    }
    fn receive(&mut self) -> Option<EchoReply> {
        self.0.take()
    }
    fn passed_over(&self) -> PassedOver {
        PassedOver {
            foreign: 4,
            failures: 5,
        }
    }
}

enum Fake {}

impl Drivers for Fake {
    type Link = Odd;
    type Echo = Deaf;
    type Suite = bumpless_secure::RingSuite;
}

#[test]
fn whatever_the_drivers_lose_is_counted_under_a_cause_of_its_own() {
    let config = Config::parse(PAIR, "counted.toml").unwrap_or_else(|all| panic!("{all:#?}"));
    let begin = Instant::from_nanos(1_000_000_000);
    let wiring = Wiring::new(&config, config.node("left").unwrap());
    let link = LinkId(0);
    let with = (Addresses::new(&config, &wiring, link), Protection::none(1));
    let settings = wiring.links(&config)[0].clone().unwrap();
    let ports = vec![Some(LinkPort::new(link, Odd, &settings, with, begin))];
    let echo = Deaf(Some(EchoReply { sequence: 999 }));
    let drivers = (ports, vec![Some(echo)]);
    let beginning = Beginning {
        seed: 1,
        now: begin,
        stop: Arc::default(),
        log_transfers: false,
    };
    let node = Node::<Fake>::new(&config, &wiring, drivers, beginning);
    let Node {
        mut plane,
        snapshot,
        ..
    } = node.unwrap();
    for turn in 0..30 {
        let now = begin + Duration::from_millis(turn);
        assert!(matches!(plane.turn(|| now), Turn::Wait(_)));
    }
    let snapshot = snapshot.lock().unwrap();
    let counted = |counter| snapshot.counters.get(counter);
    let figures = [
        (Counter::DiscardSocketFull, 6),
        (Counter::DiscardForeignIcmp, 4),
        (Counter::ReceiveFailures, 5),
        (Counter::DiscardUnaskedEcho, 1),
        (Counter::DiscardDuplicate, 0),
        // As of the refresh in the turn after 20 ms.
        (Counter::DiscardNoSource, 42),
        (Counter::DatagramsReceived, 42),
    ];
    for (counter, figure) in figures {
        assert_eq!(counted(counter), figure, "{}", counter.name());
    }
    assert!(counted(Counter::PingFailures) > 0);
    assert_eq!(snapshot.links[0].receive_drops, Some(6));
}
