//! Where connections of others are taken.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be taken.
pub const BACKLOG: i32 = 16;

/// Listens at `address`, whose network may not be there yet. Taking a connection does not wait for one.
///
/// # Errors
/// What the system says, with the address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{address} (TCP): {error}"));
    open(address).map_err(named)
}

/// The addresses among `addresses` that this computer does not have: nobody reaches whoever listens there until it has them.
pub fn absent(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_absent = |address: &&SocketAddr| {
        let mut any_port = **address;
        any_port.set_port(0);
        // Sends nothing, and whoever listens is not in its way.
        let bound = UdpSocket::bind(any_port);
        bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
    };
    addresses.iter().filter(is_absent).copied().collect()
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Connections of an earlier process that are still being ended do not matter.
    socket.set_reuse_address(true)?;
    // A network whose address is not there yet may come.
    match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_this_computer_does_not_have_is_told_though_one_listens_there() {
        let [here, elsewhere] = ["127.0.0.1:0", "192.0.2.77:0"].map(|it| it.parse().unwrap());
        let _listens = listen(elsewhere).unwrap();
        assert_eq!(absent(&[here, elsewhere]), [elsewhere]);
    }
}
