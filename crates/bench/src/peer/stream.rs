//! Stream sockets of the kernel with what the standard library does not set: MPTCP, a source address,
//! and the shortest timers.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::Kind;

const IPPROTO_MPTCP: libc::c_int = 262;
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
    set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    bind(&socket, address)?;
    // SAFETY: listen() takes integers only; the descriptor is open.
    check(unsafe { libc::listen(socket.as_raw_fd(), 1024) })?;
    Ok(TcpListener::from(socket))
}

/// Connects from `from` to `to`.
///
/// # Errors
/// What the system says.
pub fn connect(kind: Kind, from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = open(kind, to)?;
    bind(&socket, SocketAddr::new(from, 0))?;
    with_address(to, |address, length| {
        // SAFETY: `address` is valid for reading `length` bytes; the descriptor is open.
        check(unsafe { libc::connect(socket.as_raw_fd(), address, length) })
    })?;
    Ok(TcpStream::from(socket))
}

/// Sets a connection up as `kind` wants it; returns in words what was set.
///
/// # Errors
/// What the system says.
pub fn prepare(kind: Kind, stream: &TcpStream) -> io::Result<String> {
    stream.set_nodelay(true)?;
    let socket = stream.as_raw_fd();
    if kind != Kind::TcpTuned {
        return Ok("TCP_NODELAY".into());
    }
    let timer = |option, name: &str| {
        let had = TIMERS_US
            .into_iter()
            .find(|&us| set(socket, libc::IPPROTO_TCP, option, us).is_ok());
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
    let _ = set(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
}

fn open(kind: Kind, address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let protocol = if kind == Kind::Mptcp {
        IPPROTO_MPTCP
    } else {
        libc::IPPROTO_TCP
    };
    // SAFETY: socket() takes integers only.
    let socket = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, protocol) };
    check(socket)?;
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

fn bind(socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    with_address(address, |address, length| {
        // SAFETY: `address` is valid for reading `length` bytes; the descriptor is open.
        check(unsafe { libc::bind(socket.as_raw_fd(), address, length) })
    })
}

fn set(
    socket: RawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: `value` is valid for reading its size through the call; the descriptor is open.
    check(unsafe {
        libc::setsockopt(
            socket,
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Calls `use_it` with `address` in the kernel's layout.
fn with_address<T>(
    address: SocketAddr,
    use_it: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> T,
) -> T {
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            use_it(
                (&raw const raw).cast(),
                size_of_val(&raw) as libc::socklen_t,
            )
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            use_it(
                (&raw const raw).cast(),
                size_of_val(&raw) as libc::socklen_t,
            )
        }
    }
}
