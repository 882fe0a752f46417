//! Sends 1,400-byte packets over loopback for a second per path and prints what arrived.
//!
//! `cargo run --release -p bumpless-net-linux --example loopback_throughput`

use bumpless_base::Duration;
use bumpless_net_linux::{Clock, Link, Segment, UdpConfig, UdpLink};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const RUN: Duration = Duration::from_secs(1);

fn main() {
    for ip in [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ] {
        for segmentation in [true, false] {
            let (sent, received) = measure(ip, segmentation);
            let path = if segmentation {
                "segmentation offload"
            } else {
                "single datagrams"
            };
            println!(
                "{ip:<9} {path:<20} sent {:5.1} Gbit/s, received {:5.1} Gbit/s ({} kpps)",
                gigabits(sent),
                gigabits(received),
                received / 1_400 / 1_000
            );
        }
    }
}

fn gigabits(bytes: usize) -> f64 {
    bytes as f64 * 8.0 / 1e9 / RUN.as_secs_f64()
}

/// Bytes sent and bytes received in the time.
fn measure(ip: IpAddr, segmentation: bool) -> (usize, usize) {
    let config = UdpConfig {
        segmentation,
        ..UdpConfig::new(SocketAddr::new(ip, 0))
    };
    let mut from = UdpLink::open(&config).expect("loopback can be opened");
    let mut to = UdpLink::open(&config).expect("loopback can be opened");
    let address = to.local_address();
    let done = Arc::new(AtomicBool::new(false));
    let over = done.clone();
    let receiver = std::thread::spawn(move || {
        let mut received = 0;
        while !over.load(Ordering::Relaxed) {
            to.receive(&mut |_, bytes| received += bytes.len());
        }
        received
    });
    let state = vec![0u8; 1_400];
    let packets = [Segment {
        header: &state[..30],
        payload: &state[30..],
    }; 44];
    let end = Clock.now() + RUN;
    let mut sent = 0;
    while Clock.now() < end {
        sent += from.send(address, &packets).sent * 1_400;
    }
    done.store(true, Ordering::Relaxed);
    (sent, receiver.join().expect("the receiver does not panic"))
}
