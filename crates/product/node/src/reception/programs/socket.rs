//! Which packets a program's socket stands for, and whether it is one of this host's.
//!
//! A socket of another network namespace could have any port, and so could one at an address that the guarded interfaces do not have: what
//! is not in the tables of the guard's own namespace, or is bound to the loopback interface, gets nobody else's packets.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use bumpless_guard::{Match, Transport};
use bumpless_net_linux::sockets::{Row, Table};
use bumpless_reception::in_words;
use bumpless_registration::message::Refusal;
use rustix::fs::fstat;
use rustix::net::sockopt::{socket_domain, socket_protocol, socket_type};
use rustix::net::{AddressFamily, SocketType, getpeername, getsockname, ipproto};

/// Where a socket is found again: its table, and its file in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    table: Table,
    inode: u64,
}

/// What a program's socket stands for: what its peer sends if it is connected, else its port.
///
/// # Errors
/// It is none that a flow can be made of, or another user has a socket at its port.
pub fn examine(socket: &OwnedFd, user: u32) -> Result<(Match, Lookup), (Refusal, String)> {
    let none = |sentence: &str| (Refusal::Socket, sentence.to_owned());
    let no_socket = || none("it is no socket of UDP or TCP: open one of these");
    let kind = socket_type(socket).map_err(|_| no_socket())?;
    let (domain, protocol) = (socket_domain(socket), socket_protocol(socket));
    let (domain, protocol) = (
        domain.map_err(|_| no_socket())?,
        protocol.map_err(|_| no_socket())?,
    );
    let transport = match (kind, protocol) {
        (SocketType::DGRAM, Some(ipproto::UDP)) => Transport::Udp,
        (SocketType::STREAM, Some(ipproto::TCP)) => Transport::Tcp,
        _ => return Err(no_socket()),
    };
    let table = match (transport, domain) {
        (Transport::Udp, AddressFamily::INET) => Table::Udp,
        (Transport::Udp, AddressFamily::INET6) => Table::Udp6,
        (Transport::Tcp, AddressFamily::INET) => Table::Tcp,
        (Transport::Tcp, AddressFamily::INET6) => Table::Tcp6,
        _ => return Err(no_socket()),
    };
    let address = |it: rustix::net::SocketAddrAny| SocketAddr::try_from(it).ok();
    let local = getsockname(socket).ok().and_then(address);
    let local = local.filter(|it| it.port() != 0);
    let local = local.ok_or_else(|| none("it is not bound to a port: bind it first"))?;
    if local.ip().to_canonical().is_loopback() {
        return Err(none(
            "it is bound to the loopback interface, which no guard is on: bind it to an address of a guarded interface, or to all",
        ));
    }
    let pattern = match getpeername(socket).ok().flatten().and_then(address) {
        Some(peer) => Match::PortFrom(transport, local.port(), peer.ip().to_canonical()),
        None => Match::Port(transport, local.port()),
    };
    let file =
        fstat(socket.as_fd()).map_err(|error| none(&format!("it cannot be looked at: {error}")))?;
    let lookup = Lookup {
        table,
        inode: file.st_ino,
    };
    alone(
        &rows(transport),
        (lookup.inode, user),
        &pattern,
        local.port(),
    )?;
    Ok((pattern, lookup))
}

/// All of this host's sockets of a transport, of both families: one of IPv6 may take packets of IPv4, too.
fn rows(transport: Transport) -> Vec<Row> {
    let tables = match transport {
        Transport::Udp => [Table::Udp, Table::Udp6],
        Transport::Tcp => [Table::Tcp, Table::Tcp6],
    };
    let rows = tables.iter().map(|table| table.rows().unwrap_or_default());
    rows.flatten().collect()
}

/// Whether the file is among the host's sockets, and no other user's is at its port.
fn alone(
    rows: &[Row],
    (inode, user): (u64, u32),
    pattern: &Match,
    port: u16,
) -> Result<(), (Refusal, String)> {
    if !rows.iter().any(|row| row.inode == inode) {
        let sentence = "it is none of this host's: it listens nowhere, or is in another network namespace than the guard; have it listen \
                        first, or run a guard there";
        return Err((Refusal::Socket, sentence.to_owned()));
    }
    let here = rows.iter().filter(|row| row.local.port() == port);
    let mut others = here.filter(|row| row.inode != inode && row.inode != 0 && row.user != user);
    match others.next() {
        None => Ok(()),
        Some(other) => Err((
            Refusal::Taken,
            format!(
                "{} is the port of a socket of user {}, too, whose packets it would be: give this one another port",
                in_words(pattern),
                other.user
            ),
        )),
    }
}

/// Of each of these sockets, whether some program has it open.
pub fn open_ones(sockets: impl Iterator<Item = Lookup>) -> Vec<bool> {
    let mut read: Vec<(Table, Option<Vec<Row>>)> = Vec::new();
    let mut is_open = Vec::new();
    for Lookup { table, inode } in sockets {
        let known = read.iter().position(|(of, _)| *of == table);
        let at = known.unwrap_or_else(|| {
            read.push((table, table.rows().ok()));
            read.len() - 1
        });
        // What cannot be read says nothing.
        let rows = read[at].1.as_ref();
        is_open.push(rows.is_none_or(|rows| rows.iter().any(|row| row.inode == inode)));
    }
    is_open
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixDatagram;

    use super::*;

    fn user() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn refused(socket: impl Into<OwnedFd>) -> String {
        let (refusal, sentence) = examine(&socket.into(), user()).expect_err("none for a flow");
        assert_eq!(refusal, Refusal::Socket);
        sentence
    }

    #[test]
    fn a_socket_stands_for_its_port_or_its_peer_until_it_is_closed() {
        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        let socket = OwnedFd::from(udp.try_clone().unwrap());
        let (pattern, lookup) = examine(&socket, user()).unwrap();
        assert_eq!(pattern, Match::Port(Transport::Udp, port));
        udp.connect("192.0.2.1:9").unwrap_or(());
        if udp.peer_addr().is_ok() {
            let (pattern, _) = examine(&socket, user()).unwrap();
            let peer = [192, 0, 2, 1].into();
            assert_eq!(pattern, Match::PortFrom(Transport::Udp, port, peer));
        }
        assert_eq!(open_ones([lookup].into_iter()), [true]);
        drop((udp, socket));
        assert_eq!(open_ones([lookup].into_iter()), [false]);
        let tcp = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let (pattern, _) = examine(&tcp.into(), user()).unwrap();
        assert_eq!(pattern, Match::Port(Transport::Tcp, port));
    }

    #[test]
    fn what_is_no_bound_socket_of_udp_or_tcp_is_refused_with_what_would_be_right() {
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        assert!(refused(file).contains("UDP or TCP"));
        assert!(refused(UnixDatagram::unbound().unwrap()).contains("UDP or TCP"));
        assert!(refused(UdpSocket::bind("127.0.0.1:0").unwrap()).contains("loopback"));
        let unbound = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        assert!(refused(unbound).contains("bind it first"));
    }

    #[test]
    fn nobody_gets_the_packets_of_another_user_or_of_another_namespace() {
        let row = |local: &str, user, inode| Row {
            local: local.parse().unwrap(),
            user,
            inode,
        };
        let pattern = Match::Port(Transport::Udp, 9);
        let judged = |rows: &[Row]| alone(rows, (5, 1000), &pattern, 9);
        let own = row("10.0.0.1:9", 1000, 5);
        assert_eq!(judged(&[own, row("10.0.0.2:9", 1000, 6)]), Ok(()));
        assert_eq!(judged(&[own, row("10.0.0.2:8", 1001, 6)]), Ok(()));
        assert!(judged(&[row("10.0.0.1:9", 1000, 6)]).is_err());
        let (refusal, told) = judged(&[own, row("10.0.0.2:9", 1001, 6)]).unwrap_err();
        assert_eq!(refusal, Refusal::Taken);
        assert!(
            told.contains("udp 9") && told.contains("user 1001"),
            "{told}"
        );
    }
}
