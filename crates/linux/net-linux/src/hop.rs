//! Datagrams with few hops to live, and what routers say of them: a socket needs no rights for that, since the kernel
//! keeps ICMP errors for whoever caused them (`IP_RECVERR`, ip(7); `IPV6_RECVERR`, ipv6(7)).

use crate::errno::Errno;
use crate::sys::{self, RawAddress};
use libc::c_int;
use std::mem::offset_of;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Bytes of a probe, all zero.
const PROBE_LEN: usize = 32;
/// A failed call may tell of an earlier probe, and is then worth making again.
const TRIES: usize = 4;
/// Length, level and kind of a control message (cmsg(3)), where the latter two lie, and what its length is rounded up to.
const CONTROL_HEADER: usize = size_of::<libc::cmsghdr>();
const LEVEL_AT: usize = offset_of!(libc::cmsghdr, cmsg_level);
const TYPE_AT: usize = offset_of!(libc::cmsghdr, cmsg_type);
const CONTROL_ALIGN: usize = size_of::<usize>();
/// Bytes of `sock_extended_err`; the address of who has found the error follows.
const ERROR_LEN: usize = 16;
/// Values of its `ee_origin` (linux/errqueue.h).
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopFate {
    /// Its hops were used up at a router (ICMP time exceeded).
    Exceeded,
    /// It came to the host: nobody has its port there, or somebody has and answered.
    Reached,
    /// It cannot go on: type and code of the ICMP message.
    Refused(u8, u8),
}

/// An answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopAnswer {
    /// The port to which the probe went.
    pub port: u16,
    /// Who answered.
    pub from: IpAddr,
    /// What became of the probe.
    pub fate: HopFate,
}

/// Sends probes from one address on one interface to one address. Never blocks.
#[derive(Debug)]
pub struct HopProber {
    socket: OwnedFd,
    target: IpAddr,
}

impl HopProber {
    /// Opens a socket at `local`, whose packets leave on `interface`.
    ///
    /// # Errors
    /// What the system refused, by the name of the call.
    pub fn open(
        target: IpAddr,
        local: IpAddr,
        interface: Option<&str>,
    ) -> Result<Self, (&'static str, Errno)> {
        let at = |call: &'static str| move |errno| (call, errno);
        let socket = sys::socket(sys::family(&target), libc::SOCK_DGRAM, 0);
        let socket = socket.map_err(at("socket"))?;
        if let Some(name) = interface {
            bind_to(&socket, name).map_err(at("bind to the interface"))?;
        }
        sys::bind(&socket, SocketAddr::new(local, 0)).map_err(at("bind"))?;
        let (level, name) = match target {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        };
        sys::set_option(&socket, level, name, 1).map_err(at("setsockopt"))?;
        Ok(Self { socket, target })
    }

    /// Sends a probe that lives for `hops` hops to UDP port `port`.
    ///
    /// # Errors
    /// It did not leave: no way there on this interface, or the network is down.
    pub fn send(&self, hops: u8, port: u16) -> Result<(), Errno> {
        let (level, name) = match self.target {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TTL),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
        };
        sys::set_option(&self.socket, level, name, c_int::from(hops))?;
        let mut result = Ok(());
        for _ in 0..TRIES {
            result = self.send_once(port);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn send_once(&self, port: u16) -> Result<(), Errno> {
        let to = RawAddress::new(SocketAddr::new(self.target, port));
        let probe = [0u8; PROBE_LEN];
        // SAFETY: `probe` and `to` hold as many bytes as stated and live through the call.
        let sent = sys::check_len(unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                probe.as_ptr().cast(),
                probe.len(),
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                to.as_ptr(),
                to.len,
            )
        });
        sent.map(drop)
    }

    /// The next answer, if one has come. What answers nothing of this socket's is passed over.
    pub fn receive(&self) -> Option<HopAnswer> {
        while let Ok((to, control, len)) = self.message(libc::MSG_ERRQUEUE) {
            let told = to.and_then(|to| answer(to.port(), control.0.get(..len)?));
            if told.is_some() {
                return told;
            }
        }
        // Somebody has the port, and talks.
        for _ in 0..TRIES {
            match self.message(0) {
                Ok((Some(from), ..)) if from.ip() == self.target => {
                    return Some(HopAnswer {
                        port: from.port(),
                        from: from.ip(),
                        fate: HopFate::Reached,
                    });
                }
                Err(Errno(libc::EAGAIN)) => break,
                _ => {}
            }
        }
        None
    }

    /// The descriptor that becomes ready when something has come.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// A message: its address, control data, and the length of that.
    fn message(&self, flags: c_int) -> Result<(Option<SocketAddr>, ControlRoom, usize), Errno> {
        let mut name = RawAddress::EMPTY;
        let mut control = ControlRoom([0; ControlRoom::LEN]);
        let mut bytes = [0u8; 64];
        let mut part = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let mut header = sys::empty_message().msg_hdr;
        header.msg_name = name.bytes.as_mut_ptr().cast();
        header.msg_namelen = name.len;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len();
        // SAFETY: the header points to `name`, `part`, `bytes` and `control`, which have the stated lengths and live through
        // the call.
        sys::check_len(unsafe {
            libc::recvmsg(
                self.socket.as_raw_fd(),
                &raw mut header,
                flags | libc::MSG_DONTWAIT,
            )
        })?;
        name.len = header.msg_namelen;
        Ok((name.get(), control, header.msg_controllen))
    }
}

/// Room for control messages, aligned as the kernel writes them.
#[repr(C, align(8))]
struct ControlRoom([u8; Self::LEN]);

impl ControlRoom {
    const LEN: usize = 256;
}

fn bind_to(socket: &OwnedFd, interface: &str) -> Result<(), Errno> {
    // SAFETY: `interface` has as many bytes as stated and lives through the call.
    let bound = sys::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            interface.as_ptr().cast(),
            interface.len() as libc::socklen_t,
        )
    });
    bound.map(drop)
}

/// What the control messages of an error say of the probe to `port`.
fn answer(port: u16, mut control: &[u8]) -> Option<HopAnswer> {
    while let Some(header) = control.first_chunk::<CONTROL_HEADER>() {
        let len = usize::from_ne_bytes(*header.first_chunk()?);
        let word = |at: usize| c_int::from_ne_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let body = control.get(CONTROL_HEADER..len)?;
        let wanted = [
            (libc::IPPROTO_IP, libc::IP_RECVERR),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        ];
        if wanted.contains(&(word(LEVEL_AT), word(TYPE_AT))) {
            let error: &[u8; ERROR_LEN] = body.first_chunk()?;
            let fate = fate(error[4], error[5], error[6])?;
            let mut from = RawAddress::EMPTY;
            let offender = &body[ERROR_LEN..];
            let known = offender.len().min(from.bytes.len());
            from.bytes[..known].copy_from_slice(&offender[..known]);
            from.len = known as libc::socklen_t;
            let from = from.get()?.ip();
            return Some(HopAnswer { port, from, fate });
        }
        control = control.get(len.next_multiple_of(CONTROL_ALIGN)..)?;
    }
    None
}

/// What an ICMP message says (RFC 792, RFC 4443); `None` for errors that are no ICMP messages.
const fn fate(origin: u8, kind: u8, code: u8) -> Option<HopFate> {
    match (origin, kind, code) {
        (ORIGIN_ICMP, 11, 0) | (ORIGIN_ICMP6, 3, 0) => Some(HopFate::Exceeded),
        (ORIGIN_ICMP, 3, 3) | (ORIGIN_ICMP6, 1, 4) => Some(HopFate::Reached),
        (ORIGIN_ICMP | ORIGIN_ICMP6, _, _) => Some(HopFate::Refused(kind, code)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    fn received(prober: &HopProber) -> HopAnswer {
        let began = Instant::now();
        loop {
            if let Some(answer) = prober.receive() {
                return answer;
            }
            assert!(began.elapsed() < Duration::from_secs(10), "no answer");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_port_that_nobody_has_is_told_by_its_host_and_belongs_to_its_probe() {
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        // A port that was free a moment ago.
        let free = || UdpSocket::bind((local, 0)).unwrap().local_addr().unwrap();
        let (first, second) = (free().port(), free().port());
        let prober = HopProber::open(local, local, Some("lo")).unwrap();
        prober.send(1, first).unwrap();
        // The first one's error does not keep the second one from leaving.
        prober.send(1, second).unwrap();
        let expected = |port| HopAnswer {
            port,
            from: local,
            fate: HopFate::Reached,
        };
        assert_eq!(received(&prober), expected(first));
        assert_eq!(received(&prober), expected(second));
        assert_eq!(prober.receive(), None);
    }

    #[test]
    fn who_has_the_port_and_talks_was_reached() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let here = socket.local_addr().unwrap();
        let prober = HopProber::open(here.ip(), here.ip(), None).unwrap();
        prober.send(1, here.port()).unwrap();
        let mut probe = [0; 64];
        let (len, from) = socket.recv_from(&mut probe).unwrap();
        assert_eq!(len, PROBE_LEN);
        socket.send_to(b"answer", from).unwrap();
        let answer = received(&prober);
        assert_eq!((answer.port, answer.fate), (here.port(), HopFate::Reached));
    }

    #[test]
    fn an_error_is_read_where_this_processors_kernel_writes_it() {
        let length = (CONTROL_HEADER + ERROR_LEN + 16).to_ne_bytes();
        let [level, kind] = [libc::IPPROTO_IP, libc::IP_RECVERR].map(c_int::to_ne_bytes);
        let error = [0, 0, 0, 0, ORIGIN_ICMP, 11, 0, 0];
        let family = (libc::AF_INET as u16).to_ne_bytes();
        let from = [family.as_slice(), &[0; 2], &[10, 0, 0, 1], &[0; 8]].concat();
        let message = [&length[..], &level, &kind, &error, &[0; 8], &from].concat();
        let expected = HopAnswer {
            port: 7,
            from: "10.0.0.1".parse().unwrap(),
            fate: HopFate::Exceeded,
        };
        assert_eq!(answer(7, &message), Some(expected));
        // Behind another one.
        let other = (CONTROL_HEADER + CONTROL_ALIGN).to_ne_bytes();
        let room = [0; CONTROL_ALIGN];
        let both = [&other[..], &[0; 4], &[0; 4], &room, &message].concat();
        assert_eq!(answer(7, &both), Some(expected));
    }

    #[test]
    fn what_icmp_says_is_told_apart_and_what_is_cut_is_nothing() {
        assert_eq!(fate(ORIGIN_ICMP, 11, 0), Some(HopFate::Exceeded));
        assert_eq!(fate(ORIGIN_ICMP6, 3, 0), Some(HopFate::Exceeded));
        assert_eq!(fate(ORIGIN_ICMP, 3, 1), Some(HopFate::Refused(3, 1)));
        assert_eq!(fate(ORIGIN_ICMP6, 1, 4), Some(HopFate::Reached));
        // An error of the host itself is no router's.
        assert_eq!(fate(1, 0, 0), None);
        assert_eq!(answer(1, &[]), None);
        let mut control = [0; 40];
        let length = size_of::<usize>();
        control[..length].copy_from_slice(&200usize.to_ne_bytes());
        assert_eq!(answer(1, &control), None, "longer than what there is");
        control[..length].copy_from_slice(&0usize.to_ne_bytes());
        assert_eq!(answer(1, &control), None, "shorter than its own head");
    }
}
