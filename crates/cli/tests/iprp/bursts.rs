//! Bursts of an ordinary program: copies leave in segments, whatever lies between them and happens to a network.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::site::{BOTH, PORT, Site};
use crate::support::hosts::with_hosts;
use crate::support::wait_until;

/// Datagrams in a burst: more than one message takes, and few enough for the buffer of a socket of the receiver.
const BURST: u32 = 80;
/// Too long for a copy, and not for a packet.
const TOO_LONG: usize = 1_470;
const SHORTEST: usize = 4;

/// A program that sends bursts and looks at what comes of each before the next one.
struct Program {
    from: UdpSocket,
    at: UdpSocket,
    to: SocketAddr,
    next: u32,
}

impl Program {
    fn new(site: &Site) -> Self {
        let to: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let at = site.udp("right", &to.to_string());
        let patience = Some(Duration::from_secs(10));
        at.set_read_timeout(patience).unwrap();
        Self {
            from: site.udp("left", "10.77.1.1:40000"),
            at,
            to,
            next: 0,
        }
    }

    /// Sends a burst that is replicated: what is copied comes in order.
    fn burst(&mut self, length: impl Fn(u32) -> usize, half_way: impl FnOnce()) {
        let copied = self.burst_in_any_order(length, half_way);
        assert!(copied.is_sorted(), "{copied:?}");
    }

    /// Sends a burst of these lengths, does something after half of it, and requires each datagram once and whole. In which
    /// order those came that are short enough for copies.
    fn burst_in_any_order(
        &mut self,
        length: impl Fn(u32) -> usize,
        half_way: impl FnOnce(),
    ) -> Vec<u32> {
        let first = self.next;
        self.next += BURST;
        let content = |number: u32| {
            let mut bytes = vec![number as u8; length(number).max(SHORTEST)];
            bytes[..SHORTEST].copy_from_slice(&number.to_be_bytes());
            bytes
        };
        let mut half_way = Some(half_way);
        for number in first..self.next {
            if number == first + BURST / 2 {
                half_way.take().unwrap()();
            }
            self.from.send_to(&content(number), self.to).unwrap();
        }
        let (mut times, mut copied) = (BTreeMap::new(), Vec::new());
        let mut buffer = [0; 2_000];
        while times.len() < BURST as usize {
            let len = self.at.recv(&mut buffer).expect("a datagram was lost");
            let number = u32::from_be_bytes(*buffer.first_chunk().unwrap());
            assert!(buffer[..len] == content(number), "{number}: {len} bytes");
            *times.entry(number).or_insert(0) += 1;
            if len < TOO_LONG {
                copied.push(number);
            }
        }
        assert!(times.values().all(|it| *it == 1), "{times:?}");
        assert_eq!(*times.first_key_value().unwrap().0, first);
        copied
    }
}

/// What the sender says of a network of its own.
fn said(site: &Site, network: usize, what: &str) -> u64 {
    said_by(site, "left", network, what)
}

fn said_by(site: &Site, host: &str, network: usize, what: &str) -> u64 {
    let status = site.status(host).unwrap();
    status["networks"][network][what].as_u64().unwrap()
}

pub fn bursts_leave_and_come_in_segments_and_lose_nothing_when_a_network_shrinks_or_goes() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let mut program = Program::new(&site);
        wait_until("the stream is replicated", || {
            program.burst_in_any_order(|_| 300, || ());
            site.sends_on("left", "udp", PORT) == 2
        });
        let mixed = |number: u32| match number % 16 {
            7 => TOO_LONG,
            11 => 30 + number as usize % 700,
            15 => 0,
            _ => 300,
        };
        wait_until("copies leave in segments", || {
            program.burst(mixed, || ());
            (0..2).all(|network| said(&site, network, "in_segments") > 500)
        });
        // Nothing between the hosts takes them apart, and each is counted.
        for network in 0..2 {
            let count = |what| said_by(&site, "right", network, what);
            assert!(count("came_in_segments") > 500);
            assert!(count("came") >= count("came_in_segments"));
        }
        assert!(site.status("left").unwrap()["counters"]["too_long"].as_u64() > Some(0));
        // Longer than what the network takes until the daemon looks at it again.
        wait_until("a message in segments is refused", || {
            site.hosts.shorten_b("left", 400);
            program.burst(|number| 500 + number as usize / 8 % 2, || ());
            let refused = said(&site, 1, "runs_refused") > 0;
            site.hosts.shorten_b("left", 1500);
            refused
        });
        assert!(said(&site, 1, "not_taken") > 0);
        let hosts = &site.hosts;
        for _ in 0..5 {
            program.burst(|_| 300, || hosts.switch_b("left", "down"));
            program.burst(mixed, || hosts.switch_b("left", "up"));
        }
        assert_eq!(said(&site, 0, "not_taken"), 0, "the other network");
        assert_eq!(said(&site, 0, "runs_refused"), 0);
        let status = site.status("left").unwrap();
        let networks = status["networks"].as_array().unwrap();
        assert!(
            networks.iter().all(|it| it["segments"] == "used"),
            "{status}"
        );
    });
}
