//! What the tests of this crate share.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod netns;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{Clock, Link, Segment, SendOutcome, UdpConfig, UdpLink};
use std::net::SocketAddr;

/// A link on `ip` with a port of the kernel's choice.
pub fn open(ip: &str, segmentation: bool) -> UdpLink {
    let local = SocketAddr::new(ip.parse().unwrap(), 0);
    UdpLink::open(&UdpConfig {
        segmentation,
        ..UdpConfig::new(local)
    })
    .unwrap()
}

/// A datagram's content by number and size, with its own number in it as far as it fits.
pub fn content(number: usize, size: usize) -> Vec<u8> {
    (0..size)
        .map(|at| (number.wrapping_mul(31) ^ (number >> 8) ^ at.wrapping_mul(7)) as u8)
        .collect()
}

/// Sends `datagrams`, each split after `header` bytes at most, in one call.
pub fn send(
    link: &mut UdpLink,
    to: SocketAddr,
    datagrams: &[Vec<u8>],
    header: usize,
) -> SendOutcome {
    let segments: Vec<Segment<'_>> = datagrams
        .iter()
        .map(|bytes| {
            let (header, payload) = bytes.split_at(header.min(bytes.len()));
            Segment { header, payload }
        })
        .collect();
    link.send(to, &segments)
}

/// Receives until `count` datagrams are there; gives up after ten seconds without any.
pub fn receive(link: &mut UdpLink, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut received = Vec::new();
    let mut timeout = later();
    while received.len() < count && Clock.now() < timeout {
        let outcome = link.receive(&mut |from, bytes| received.push((from, bytes.to_vec())));
        assert_eq!(outcome.failure, None);
        if outcome.datagrams > 0 {
            timeout = later();
        } else {
            std::thread::yield_now();
        }
    }
    received
}

/// Whatever is there now.
pub fn drain(link: &mut UdpLink) -> Vec<Vec<u8>> {
    let mut received = Vec::new();
    while link
        .receive(&mut |_, bytes| received.push(bytes.to_vec()))
        .datagrams
        > 0
    {}
    received
}

fn later() -> Instant {
    Clock.now() + Duration::from_secs(10)
}
