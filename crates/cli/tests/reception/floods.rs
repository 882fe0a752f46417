//! What a third host sends to a pair's nodes: all kinds of junk, beside the nodes' own work or before it.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::FromRawFd;

/// One kind of junk.
pub struct Junk {
    socket: UdpSocket,
    payload: Vec<u8>,
    port: u16,
    is_broadcast: bool,
}

/// All kinds, from sockets of the stranger's.
pub fn junk() -> Vec<Junk> {
    let udp = || UdpSocket::bind("0.0.0.0:0").unwrap();
    let of = |socket, length, port| Junk {
        socket,
        payload: vec![7; length],
        port,
        is_broadcast: false,
    };
    // SAFETY: socket() takes integers only.
    let raw = unsafe {
        libc::socket(
            libc::AF_INET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::IPPROTO_ICMP,
        )
    };
    assert!(raw >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor was just made, and nobody else owns it.
    let mut icmp = of(unsafe { UdpSocket::from_raw_fd(raw) }, 64, 0);
    // An echo request of zeros with its checksum.
    icmp.payload = [&[8, 0, 0xf7, 0xff][..], &[0; 60]].concat();
    let broadcast = udp();
    broadcast.set_broadcast(true).unwrap();
    vec![
        of(udp(), 60, 4700),
        of(udp(), 60, 9),
        // In pieces.
        of(udp(), 3000, 4700),
        icmp,
        Junk {
            is_broadcast: true,
            ..of(broadcast, 60, 4700)
        },
    ]
}

/// Sends one of each kind to each node on each network; how many.
pub fn send_round(junk: &[Junk]) -> usize {
    let mut sent = 0;
    for it in junk {
        let nodes: &[u8] = if it.is_broadcast { &[255] } else { &[1, 2] };
        for (network, &node) in [1, 2]
            .into_iter()
            .flat_map(|it| nodes.iter().map(move |node| (it, node)))
        {
            // What the kernel has no room for is not sent; that is a flood all the same.
            let to = SocketAddr::from(([10, 77, network, node], it.port));
            sent += usize::from(it.socket.send_to(&it.payload, to).is_ok());
        }
    }
    sent
}
