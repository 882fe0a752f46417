//! Opening a link's socket: options, buffers, binding, and what the kernel granted.

use crate::errno::Errno;
use crate::sys;
use bumpless_base::Duration;
use libc::c_int;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// How to open a [`UdpLink`](super::UdpLink).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// Local address and port to bind. Port 0 lets the kernel choose.
    pub local: SocketAddr,
    /// Differentiated services code point of every packet, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// Socket priority, which selects the queue of a classful device. Above 6 needs CAP_NET_ADMIN.
    pub priority: u8,
    /// Wanted receive buffer in bytes; the kernel doubles it for its own overhead. Too small, and
    /// a burst is dropped while the receiving thread is not running.
    pub receive_buffer: usize,
    /// Wanted send buffer in bytes. Pacing keeps it nearly empty; too small, and a burst does not
    /// fit at once.
    pub send_buffer: usize,
    /// Use segmentation offload where the kernel has it. `false` forces single datagrams.
    pub segmentation: bool,
    /// For how long the kernel may ask the interface itself when a receiver finds nothing (SO_BUSY_POLL, whole microseconds); zero: as
    /// the system has it. Above what the system has it needs CAP_NET_ADMIN.
    pub busy_poll: Duration,
    /// Open even if the address is not on this machine (yet): the link then reports
    /// [`Unreachable`](crate::SendFailure::Unreachable) until the address appears. For a node that
    /// must start while one of its networks is down. `false` makes an absent address an error.
    pub may_be_absent: bool,
}

impl UdpConfig {
    /// The defaults for `local`: no marking, 4 MB to receive, 1 MB to send, offload where possible,
    /// and the address must be on this machine.
    pub const fn new(local: SocketAddr) -> Self {
        Self {
            local,
            dscp: 0,
            priority: 0,
            receive_buffer: 4 << 20,
            send_buffer: 1 << 20,
            segmentation: true,
            busy_poll: Duration::ZERO,
            may_be_absent: false,
        }
    }
}

/// What the kernel granted when the link was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UdpReport {
    /// Receive buffer in bytes, in the unit of [`UdpConfig::receive_buffer`].
    pub receive_buffer: usize,
    /// Send buffer in bytes, in the unit of [`UdpConfig::send_buffer`].
    pub send_buffer: usize,
    /// Whether the kernel coalesces received datagrams (UDP_GRO).
    pub coalescing: bool,
    /// Whether the local address was on this machine; the link stays down until it is.
    pub address_present: bool,
    /// One line for people per request that was not granted: what, what it costs, what to do.
    pub notes: Vec<String>,
}

/// Why a link could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// The address that was asked for.
    pub local: SocketAddr,
    /// What is wrong with it.
    pub cause: OpenCause,
}

/// What kept a link from being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenCause {
    /// The address is not on this machine.
    AddressAbsent,
    /// Another socket has the address and port.
    AddressInUse,
    /// The port needs a privilege that this process lacks.
    PortForbidden,
    /// The kernel has no support for this IP version.
    NoSuchFamily,
    /// The named system call or option was refused for another reason.
    Refused(&'static str, Errno),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { local, cause } = self;
        write!(f, "cannot open UDP {local}: ")?;
        match cause {
            OpenCause::AddressAbsent => write!(
                f,
                "address {} is not on this machine; correct the node's address, or give it to an \
                 interface (see `ip address`)",
                local.ip()
            ),
            OpenCause::AddressInUse => write!(
                f,
                "port {} is in use; stop the other process (see `ss -ulpn sport = :{0}`) or choose \
                 another port",
                local.port()
            ),
            OpenCause::PortForbidden => write!(
                f,
                "port {} needs a privilege; choose a port above 1023 or grant CAP_NET_BIND_SERVICE",
                local.port()
            ),
            OpenCause::NoSuchFamily => {
                f.write_str("this kernel lacks that IP version; enable it or use the other one")
            }
            OpenCause::Refused(what, errno) => write!(f, "{what} was refused: {errno}"),
        }
    }
}

impl std::error::Error for OpenError {}

pub(super) fn open(config: &UdpConfig) -> Result<(OwnedFd, UdpReport), OpenError> {
    open_socket(config).map_err(|cause| OpenError {
        local: config.local,
        cause,
    })
}

fn open_socket(config: &UdpConfig) -> Result<(OwnedFd, UdpReport), OpenCause> {
    let family = sys::family(&config.local.ip());
    let socket = sys::socket(family, libc::SOCK_DGRAM, 0).map_err(|errno| match errno.0 {
        libc::EAFNOSUPPORT => OpenCause::NoSuchFamily,
        _ => OpenCause::Refused("socket", errno),
    })?;
    forbid_fragments(&socket, config.local.ip())?;
    let mut report = UdpReport::default();
    mark(&socket, config, &mut report.notes);
    size_buffers(&socket, config, &mut report);
    poll_busily(&socket, config, &mut report.notes);
    report.coalescing = sys::set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
    report.address_present = bind(&socket, config)?;
    Ok((socket, report))
}

/// Sets "don't fragment", and keeps ICMP from having a say.
///
/// A fragmented packet is lost with any of its fragments and cannot be paced; a packet that does
/// not fit is an error in the configuration and is reported as such. PROBE rather than DO: both
/// set the flag and refuse what exceeds the interface's MTU, but DO also believes every "too big"
/// from the network, so that one forged ICMP message would stop all full-sized packets for
/// minutes. For the same reason ICMP errors are not queued on the socket (IP_RECVERR stays off).
fn forbid_fragments(socket: &OwnedFd, ip: IpAddr) -> Result<(), OpenCause> {
    let set = |level, name, value, what| {
        sys::set_option(socket, level, name, value).map_err(|e| OpenCause::Refused(what, e))
    };
    if ip.is_ipv4() {
        let level = libc::IPPROTO_IP;
        set(
            level,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_PROBE,
            "IP_MTU_DISCOVER",
        )?;
        set(level, libc::IP_RECVERR, 0, "IP_RECVERR")
    } else {
        let level = libc::IPPROTO_IPV6;
        set(level, libc::IPV6_V6ONLY, 1, "IPV6_V6ONLY")?;
        set(
            level,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
            "IPV6_MTU_DISCOVER",
        )?;
        set(level, libc::IPV6_RECVERR, 0, "IPV6_RECVERR")
    }
}

/// DSCP, then priority: setting the former changes the latter.
fn mark(socket: &OwnedFd, config: &UdpConfig, notes: &mut Vec<String>) {
    let class = c_int::from(config.dscp) << 2;
    let result = match config.local {
        SocketAddr::V4(_) => sys::set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, class),
        SocketAddr::V6(_) => sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class),
    };
    if let Err(errno) = result {
        notes.push(format!(
            "{}: DSCP {} refused ({errno}); switches will not prefer this traffic; use 0 to 63",
            config.local, config.dscp
        ));
    }
    let priority = c_int::from(config.priority);
    if let Err(errno) = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, priority) {
        notes.push(format!(
            "{}: socket priority {priority} refused ({errno}); local queues will not prefer this \
             traffic; use 0 to 6 or grant CAP_NET_ADMIN",
            config.local
        ));
    }
}

/// Whether the kernel asks the interface is a matter of microseconds: refused, the receiver finds what an interrupt brings.
fn poll_busily(socket: &OwnedFd, config: &UdpConfig, notes: &mut Vec<String>) {
    let micros = config.busy_poll.as_nanos() / 1000;
    let value = c_int::try_from(micros).unwrap_or(c_int::MAX);
    if value == 0 {
        return;
    }
    if let Err(errno) = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, value) {
        notes.push(format!(
            "{}: asking the interface itself for packets refused ({errno}); they are there some microseconds later; grant \
             CAP_NET_ADMIN",
            config.local
        ));
    }
}

fn size_buffers(socket: &OwnedFd, config: &UdpConfig, report: &mut UdpReport) {
    report.receive_buffer = size_buffer(
        socket,
        config.receive_buffer,
        libc::SO_RCVBUFFORCE,
        libc::SO_RCVBUF,
    );
    report.send_buffer = size_buffer(
        socket,
        config.send_buffer,
        libc::SO_SNDBUFFORCE,
        libc::SO_SNDBUF,
    );
    for (name, wanted, granted, limit, cost) in [
        (
            "receive",
            config.receive_buffer,
            report.receive_buffer,
            "net.core.rmem_max",
            "bursts may be lost when this process is late",
        ),
        (
            "send",
            config.send_buffer,
            report.send_buffer,
            "net.core.wmem_max",
            "bursts may have to wait",
        ),
    ] {
        if granted < wanted {
            report.notes.push(format!(
                "{}: {name} buffer is {granted} bytes instead of {wanted}; {cost}; raise {limit} \
                 or grant CAP_NET_ADMIN",
                config.local
            ));
        }
    }
}

/// Asks for `wanted` bytes, beyond the system's limit where permitted; returns what there is.
fn size_buffer(socket: &OwnedFd, wanted: usize, force: c_int, plain: c_int) -> usize {
    let value = c_int::try_from(wanted).unwrap_or(c_int::MAX);
    if sys::set_option(socket, libc::SOL_SOCKET, force, value).is_err() {
        // Clamped to the system's limit instead of refused; the caller compares.
        let _ = sys::set_option(socket, libc::SOL_SOCKET, plain, value);
    }
    let doubled = sys::option(socket, libc::SOL_SOCKET, plain).unwrap_or(0);
    usize::try_from(doubled).unwrap_or(0) / 2
}

/// Binds, and returns whether the address is on this machine.
fn bind(socket: &OwnedFd, config: &UdpConfig) -> Result<bool, OpenCause> {
    let cause = |errno: Errno| match errno.0 {
        libc::EADDRNOTAVAIL => OpenCause::AddressAbsent,
        libc::EADDRINUSE => OpenCause::AddressInUse,
        libc::EACCES => OpenCause::PortForbidden,
        _ => OpenCause::Refused("bind", errno),
    };
    match sys::bind(socket, config.local).map_err(cause) {
        Ok(()) => Ok(true),
        Err(OpenCause::AddressAbsent) if config.may_be_absent => {
            let (level, name) = match config.local {
                SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_FREEBIND),
                SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_FREEBIND),
            };
            sys::set_option(socket, level, name, 1)
                .map_err(|errno| OpenCause::Refused("FREEBIND", errno))?;
            sys::bind(socket, config.local).map_err(cause)?;
            Ok(false)
        }
        Err(cause) => Err(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(ip: &str) -> (OwnedFd, UdpReport) {
        let local = SocketAddr::new(ip.parse().unwrap(), 0);
        open(&UdpConfig {
            dscp: 46,
            priority: 5,
            ..UdpConfig::new(local)
        })
        .unwrap()
    }

    #[test]
    fn packets_carry_the_configured_marks_and_are_never_fragmented() {
        let options = [
            ("127.0.0.1", libc::IPPROTO_IP, libc::IP_TOS, 46 << 2),
            ("::1", libc::IPPROTO_IPV6, libc::IPV6_TCLASS, 46 << 2),
            ("127.0.0.1", libc::SOL_SOCKET, libc::SO_PRIORITY, 5),
            ("::1", libc::SOL_SOCKET, libc::SO_PRIORITY, 5),
            (
                "127.0.0.1",
                libc::IPPROTO_IP,
                libc::IP_MTU_DISCOVER,
                libc::IP_PMTUDISC_PROBE,
            ),
            (
                "::1",
                libc::IPPROTO_IPV6,
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_PMTUDISC_PROBE,
            ),
        ];
        for (ip, level, name, value) in options {
            let (socket, _) = opened(ip);
            assert_eq!(
                sys::option(&socket, level, name),
                Ok(value),
                "{ip} {level} {name}"
            );
        }
    }

    #[test]
    fn buffers_are_reported_in_the_unit_in_which_they_are_asked_for() {
        let local = "127.0.0.1:0".parse().unwrap();
        let wanted = 100_000;
        let config = UdpConfig {
            receive_buffer: wanted,
            send_buffer: wanted,
            ..UdpConfig::new(local)
        };
        let (_, report) = open(&config).unwrap();
        assert_eq!(
            (report.receive_buffer, report.send_buffer),
            (wanted, wanted)
        );
        assert!(report.notes.is_empty(), "{:?}", report.notes);
    }
}
