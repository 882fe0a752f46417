//! Where connections of others are taken.

use std::io;
use std::net::{SocketAddr, TcpListener};

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
