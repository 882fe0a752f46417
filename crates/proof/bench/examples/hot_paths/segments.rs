//! Copies that leave in one message and come in one, through real sockets of the loopback device: what this program does about them, without
//! the kernel's part.

use std::hint::black_box;
use std::net::SocketAddr;

use bumpless_base::Duration;
use bumpless_net_linux::{Clock, Poller, Waker};

use bumpless_capture::{Card, Departed, Departures, Ports, Segmentation};

/// Copies of a turn: as many packets as the queue gives at once, on one network.
pub const COPIES: u64 = 64;
/// The paper's datagrams (IX-A) with their header.
const COPY: [u8; 327] = [7; 327];
const ROOM: usize = 65_535;

fn ports(host: u8) -> Ports {
    let card = Card {
        interface: "lo".into(),
        address: [127, 0, 79, host].into(),
    };
    Ports::open(&[card], port(), false).expect("the loopback device has these addresses")
}

/// How long the kernel has.
const PATIENCE: Duration = Duration::from_secs(5);

/// One of this process's own: nobody else has these addresses but another one of this program.
fn port() -> u16 {
    20_000 + (std::process::id() % 40_000) as u16
}

/// Copies that leave; takes them out of the sockets again, and apart if `takes`.
fn pass(rounds: u64, takes: bool) {
    let (mut near, far) = (ports(1), ports(2));
    let to = SocketAddr::from(([127, 0, 79, 2], port()));
    let coalesces = far.coalesce();
    assert!(
        coalesces && near.segmentations() == [Segmentation::Used],
        "this kernel has no segmentation of UDP (UDP_SEGMENT, UDP_GRO; Linux 5.0 has): this path cannot be counted here"
    );
    let mut departures = Departures::new(COPIES as usize, 64 << 10);
    let mut buffer = vec![0; ROOM];
    for _ in 0..rounds {
        for packet in 0..COPIES as usize {
            assert!(departures.add((0, to), packet, &COPY));
        }
        let mut left = 0;
        departures.leave(&mut near, |it| {
            left += u64::from(matches!(it, Departed::Left { .. }));
        });
        assert_eq!(left, COPIES);
        let (mut came, mut any) = (0, false);
        loop {
            let Ok(Some(arrived)) = far.receive(0, &mut buffer) else {
                if any {
                    break;
                }
                until_one_waits(&far);
                continue;
            };
            any = true;
            if !takes {
                continue;
            }
            for datagram in arrived.datagrams(&mut buffer) {
                assert_eq!(datagram.len(), COPY.len());
                black_box(datagram);
                came += 1;
            }
        }
        assert!(!takes || came == COPIES);
    }
}

/// The kernel brings the message a moment later now and then, when its own work was put off.
#[cold]
fn until_one_waits(ports: &Ports) {
    let sockets: Vec<_> = ports.descriptors().collect();
    let mut poller = Poller::new(&sockets, Waker::new().expect("a descriptor is free"));
    let ready = poller.wait(Clock.now() + PATIENCE);
    let ready = ready.is_ok_and(|ready| (0..sockets.len()).any(|at| ready.contains(at)));
    assert!(
        ready,
        "the loopback device has brought nothing for {PATIENCE}"
    );
}

pub fn leave(rounds: u64) {
    pass(rounds, false);
}

pub fn leave_and_come(rounds: u64) {
    pass(rounds, true);
}
