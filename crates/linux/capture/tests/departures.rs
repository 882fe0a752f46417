//! Copies that wait and leave together, by real sockets on the loopback device.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use bumpless_capture::{Card, Departed, Departures, Ports, Segmentation};
use proptest::collection::vec;
use proptest::prelude::*;

const ROOM: usize = 4 << 20;

fn to(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The copy at `at` in a list: its number, as far as it fits.
fn content(at: usize, len: usize) -> Vec<u8> {
    let number = (at as u32).to_be_bytes();
    number.into_iter().cycle().take(len).collect()
}

#[test]
fn what_finds_no_room_is_refused_and_there_is_room_again_when_all_have_left() {
    let mut ports = on_loopback(1);
    let mut departures = Departures::new(2, 100);
    let way = (0, to(9));
    assert!(departures.have_room(2, 50) && !departures.have_room(2, 51));
    assert!(departures.add(way, 0, &[1; 60]));
    assert!(!departures.add(way, 1, &[1; 41]), "bytes");
    assert!(departures.add(way, 1, &[1; 40]));
    assert!(!departures.add(way, 2, &[]), "copies");
    let mut seen = 0;
    departures.leave(&mut ports, |_| seen += 1);
    assert!(departures.have_room(2, 50) && seen >= 2);
    departures.leave(&mut ports, |it| panic!("{it:?} once more"));
}

/// So many networks that all are the loopback device, at addresses of their own.
fn on_loopback(networks: u8) -> Ports {
    let card = |number: u8| Card {
        interface: "lo".into(),
        address: [127, 0, 77, number + 1].into(),
    };
    let cards: Vec<_> = (0..networks).map(card).collect();
    Ports::open(&cards, 0, false).unwrap()
}

/// What waits at a socket.
fn drain(socket: &UdpSocket, count: usize) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; 65_536];
    let mut come = Vec::new();
    while come.len() < count {
        let len = socket.recv(&mut buffer).expect("a datagram is missing");
        come.push(buffer[..len].to_vec());
    }
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut buffer).is_err(), "one too many");
    socket.set_nonblocking(false).unwrap();
    come
}

fn receivers() -> Vec<UdpSocket> {
    let open = |_| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let patience = Some(Duration::from_secs(10));
        socket.set_read_timeout(patience).unwrap();
        let socket = socket2::Socket::from(socket);
        let _ = socket.set_recv_buffer_size(8 << 20);
        socket.into()
    };
    (0..2).map(open).collect()
}

/// Sends copies of these lengths by real sockets in one turn, on two networks to two receivers, and checks what comes.
fn carry(ports: &mut Ports, receivers: &[UdpSocket], lengths: &[usize]) -> usize {
    let mut departures = Departures::new(2 * lengths.len(), ROOM);
    let mut expected = vec![Vec::new(); 2];
    for (at, &len) in lengths.iter().enumerate() {
        for on in 0..2 {
            let receiver = (at / 3 + on) % 2;
            let to = receivers[receiver].local_addr().unwrap();
            let copy = content(2 * at + on, len);
            assert!(departures.add((on, to), at, &copy));
            expected[receiver].push((on, copy));
        }
    }
    let (mut left, mut in_segments) = (0, 0);
    departures.leave(ports, |it| match it {
        Departed::Left { .. } => left += 1,
        Departed::InSegments { copies, .. } => in_segments += copies,
        Departed::RunRefused { .. } => {}
        Departed::NotTaken { .. } => panic!("{it:?}"),
    });
    assert_eq!(left, 2 * lengths.len());
    for (receiver, expected) in receivers.iter().zip(&expected) {
        let come = drain(receiver, expected.len());
        for on in 0..2 {
            // Order holds for each network: the content tells which one it was.
            let of = |all: Vec<&Vec<u8>>| all.into_iter().cloned().collect::<Vec<_>>();
            let wanted = of(expected
                .iter()
                .filter(|it| it.0 == on)
                .map(|it| &it.1)
                .collect());
            let parity = |copy: &&Vec<u8>| copy[3] % 2 == on as u8;
            assert_eq!(of(come.iter().filter(parity).collect()), wanted);
        }
    }
    in_segments
}

#[test]
fn real_sockets_carry_more_and_longer_copies_than_a_message_takes() {
    let (mut ports, receivers) = (on_loopback(2), receivers());
    for lengths in [
        vec![300; 200],
        vec![1_400; 150],
        vec![30_000, 30_000, 30_000, 30],
        vec![65_507, 20],
        vec![30],
        vec![300, 300, 300, 9_000, 300, 300, 30, 30],
    ] {
        carry(&mut ports, &receivers, &lengths);
    }
    assert!(carry(&mut ports, &receivers, &[300; 30]) > 0);
    assert_eq!(ports.segmentations(), [Segmentation::Used; 2]);
}

#[test]
fn real_sockets_without_segments_carry_the_same_and_are_not_asked_twice() {
    let (mut ports, receivers) = (on_loopback(2), receivers());
    // The kernel refuses to segment for a socket without transmit checksums.
    let socket = ports.descriptors().next().unwrap();
    let on = 1i32;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_NO_CHECK);
    // SAFETY: `on` is readable for 4 bytes through the call.
    let result = unsafe { libc::setsockopt(socket, level, name, (&raw const on).cast(), 4) };
    assert_eq!(result, 0);
    assert!(
        carry(&mut ports, &receivers, &[300; 40]) > 0,
        "the other network"
    );
    let states = [Segmentation::Refused, Segmentation::Used];
    assert_eq!(ports.segmentations(), states);
    carry(&mut ports, &receivers, &[300; 40]);
    assert_eq!(ports.segmentations(), states);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn real_sockets_carry_any_sizes(
        lengths in vec(prop_oneof![Just(40usize), Just(300), 4usize..1_500], 1..100),
    ) {
        let (mut ports, receivers) = (on_loopback(2), receivers());
        carry(&mut ports, &receivers, &lengths);
    }
}
