//! Stream sockets of the kernel with what the standard library does not set: MPTCP, a source address,
//! and the shortest timers.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::Kind;

/// Since Linux 6.15; microseconds.
const TCP_RTO_MIN_US: libc::c_int = 45;
const TCP_DELACK_MAX_US: libc::c_int = 46;
/// Tried from the shortest on: what the kernel takes depends on its tick.
const TIMERS_US: [libc::c_int; 9] = [100, 500, 1000, 2000, 4000, 8000, 10_000, 20_000, 40_000];

/// Listens at `address`.
///
/// # Errors
/// What the system says.
pub fn listen(kind: Kind, address: SocketAddr) -> io::Result<TcpListener> {
    let socket = open(kind, address)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

/// Connects from `from` to `to`.
///
/// # Errors
/// What the system says.
pub fn connect(kind: Kind, from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = open(kind, to)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    Ok(socket.into())
}

/// Sets a connection up as `kind` wants it; returns in words what was set.
///
/// # Errors
/// What the system says.
pub fn prepare(kind: Kind, stream: &TcpStream) -> io::Result<String> {
    stream.set_nodelay(true)?;
    if kind != Kind::TcpTuned {
        return Ok("TCP_NODELAY".into());
    }
    let timer = |option, name: &str| {
        let had = TIMERS_US
            .into_iter()
            .find(|&us| set_micros(stream, option, us).is_ok());
        had.map_or_else(
            || format!("{name} not offered by this kernel (since Linux 6.15)"),
            |us| format!("{name} {us}, the shortest that this kernel takes"),
        )
    };
    let rto = timer(TCP_RTO_MIN_US, "TCP_RTO_MIN_US");
    let delayed = timer(TCP_DELACK_MAX_US, "TCP_DELACK_MAX_US");
    quick_ack(stream);
    Ok(format!(
        "TCP_NODELAY, {rto}, {delayed}, TCP_QUICKACK before each read"
    ))
}

/// Asks for acknowledgements at once; the kernel forgets it now and then.
pub fn quick_ack(stream: &TcpStream) {
    // Refused is slower, not wrong.
    let _ = SockRef::from(stream).set_tcp_quickack(true);
}

fn open(kind: Kind, address: SocketAddr) -> io::Result<Socket> {
    let protocol = match kind {
        Kind::Mptcp => Protocol::MPTCP,
        _ => Protocol::TCP,
    };
    Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))
}

/// Sets one of the timers that are too new for a library.
fn set_micros(stream: &TcpStream, option: libc::c_int, micros: libc::c_int) -> io::Result<()> {
    // SAFETY: `micros` is valid for reading its size through the call; the descriptor is open.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const micros).cast(),
            size_of_val(&micros) as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
