//! ICMP echo, for an address that serves as a reference point where no witness can be installed.

use crate::errno::Errno;
use crate::link::SendFailure;
use crate::sys::{self, RawAddress};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// type(1) code(1) checksum(2) identifier(2) sequence(2) nonce(8)   (RFC 792, RFC 4443)
const MESSAGE_LEN: usize = 16;
const V4_REQUEST: u8 = 8;
const V4_REPLY: u8 = 0;
const V6_REQUEST: u8 = 128;
const V6_REPLY: u8 = 129;
/// Most messages looked at in one [`Pinger::receive`].
const MAX_LOOKS: usize = 32;

/// Sends ICMP echo requests to one address and recognises its replies.
///
/// Uses the kernel's unprivileged echo socket where `net.ipv4.ping_group_range` permits it, else a
/// raw socket where the process may open one. Never blocks, and takes no memory after opening.
pub struct Pinger {
    socket: OwnedFd,
    target: IpAddr,
    raw: bool,
    nonce: u64,
    /// The target has answered since the last request was sent.
    answered: bool,
    passed_over: PassedOver,
}

/// The target's answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoReply {
    /// The number given to [`Pinger::send`].
    pub sequence: u16,
}

/// What [`Echo::receive`] has not passed on since the socket was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// Messages that are no reply of the target to a request of this process. A raw socket sees all of the
    /// computer's ICMP.
    pub foreign: u64,
    /// Calls that failed.
    pub failures: u64,
}

/// Echo requests to one address, as the data plane sees them. No method blocks or panics.
pub trait Echo {
    /// Sends one request.
    ///
    /// # Errors
    /// As for [`Link::send`](crate::Link::send); the next call is worth making.
    fn send(&mut self, sequence: u16) -> Result<(), SendFailure>;

    /// The next reply to one of the requests, if one has arrived.
    fn receive(&mut self) -> Option<EchoReply>;

    /// What was received besides.
    fn passed_over(&self) -> PassedOver;
}

impl Echo for Pinger {
    fn send(&mut self, sequence: u16) -> Result<(), SendFailure> {
        Self::send(self, sequence)
    }
    fn receive(&mut self) -> Option<EchoReply> {
        Self::receive(self)
    }
    fn passed_over(&self) -> PassedOver {
        self.passed_over
    }
}

/// Why there can be no echo socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingError {
    /// Neither the unprivileged nor the raw socket is permitted.
    Forbidden,
    /// The local address is not on this machine.
    AddressAbsent(IpAddr),
    /// The local address and the target are of different IP versions.
    MixedFamilies,
    /// The named system call was refused for another reason.
    Refused(&'static str, Errno),
}

impl fmt::Display for PingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden => f.write_str(
                "ICMP echo is not permitted to this process: widen net.ipv4.ping_group_range to \
                 its group (`sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"`), grant \
                 CAP_NET_RAW, or use a witness instead",
            ),
            Self::AddressAbsent(ip) => write!(
                f,
                "cannot ping from {ip}: the address is not on this machine; correct it, or give it \
                 to an interface (see `ip address`)"
            ),
            Self::MixedFamilies => f.write_str(
                "cannot ping: local address and target are of different IP versions; use the same",
            ),
            Self::Refused(what, errno) => write!(f, "cannot ping: {what} was refused: {errno}"),
        }
    }
}

impl std::error::Error for PingError {}

impl Pinger {
    /// Opens a socket towards `target`, sending from `local` if given. `nonce` should be random:
    /// only replies that carry it are taken for ours.
    ///
    /// # Errors
    /// See [`PingError`]; its text says what to do.
    pub fn open(target: IpAddr, local: Option<IpAddr>, nonce: u64) -> Result<Self, PingError> {
        if local.is_some_and(|local| local.is_ipv4() != target.is_ipv4()) {
            return Err(PingError::MixedFamilies);
        }
        let (socket, raw) = open_socket(target)?;
        if let Some(local) = local {
            sys::bind(&socket, SocketAddr::new(local, 0)).map_err(|errno| match errno.0 {
                libc::EADDRNOTAVAIL => PingError::AddressAbsent(local),
                _ => PingError::Refused("bind", errno),
            })?;
        }
        Ok(Self {
            socket,
            target,
            raw,
            nonce,
            answered: false,
            passed_over: PassedOver::default(),
        })
    }

    /// Sends one request.
    ///
    /// # Errors
    /// As for [`Link::send`](crate::Link::send); the next call is worth making.
    pub fn send(&mut self, sequence: u16) -> Result<(), SendFailure> {
        let message = self.request(sequence);
        let to = RawAddress::new(SocketAddr::new(self.target, 0));
        // Whom the last request has reached, the kernel need not look for (as for Link::send_confirmed).
        let confirm = match std::mem::take(&mut self.answered) {
            true => libc::MSG_CONFIRM,
            false => 0,
        };
        // SAFETY: `message` and `to` hold as many bytes as stated and live through the call.
        let result = sys::check_len(unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | confirm,
                to.as_ptr(),
                to.len,
            )
        });
        result.map(drop).map_err(SendFailure::from_errno)
    }

    /// The next reply of the target to one of our requests, if one has arrived. Foreign messages
    /// are passed over and counted, a bounded number per call.
    pub fn receive(&mut self) -> Option<EchoReply> {
        let mut buffer = [0u8; 256];
        for _ in 0..MAX_LOOKS {
            match self.receive_message(&mut buffer) {
                Ok((len, from)) => {
                    let reply = self.recognise(&buffer[..len]);
                    if let Some(reply) = reply.filter(|_| from == self.target) {
                        self.answered = true;
                        return Some(reply);
                    }
                    self.passed_over.foreign += 1;
                }
                Err(Errno(libc::EAGAIN)) => return None,
                Err(_) => self.passed_over.failures += 1,
            }
        }
        None
    }

    /// The descriptor that becomes readable when something arrives.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The address that is asked.
    pub fn target(&self) -> IpAddr {
        self.target
    }

    fn request(&self, sequence: u16) -> [u8; MESSAGE_LEN] {
        let mut message = [0; MESSAGE_LEN];
        message[0] = if self.target.is_ipv4() {
            V4_REQUEST
        } else {
            V6_REQUEST
        };
        // The kernel puts its own identifier on an unprivileged socket's requests.
        message[4..6].copy_from_slice(&self.identifier());
        message[6..8].copy_from_slice(&sequence.to_be_bytes());
        message[8..].copy_from_slice(&self.nonce.to_be_bytes());
        if self.target.is_ipv4() {
            let sum = checksum(&message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        message
    }

    fn identifier(&self) -> [u8; 2] {
        let bytes = self.nonce.to_be_bytes();
        [bytes[6], bytes[7]]
    }

    fn receive_message(&self, buffer: &mut [u8]) -> Result<(usize, IpAddr), Errno> {
        let mut from = RawAddress::EMPTY;
        let name = from.bytes.as_mut_ptr().cast();
        // SAFETY: `buffer` and `from` have room for as many bytes as stated, and both live through
        // the call.
        let len = sys::check_len(unsafe {
            libc::recvfrom(
                self.socket.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
                name,
                &raw mut from.len,
            )
        })?;
        let from = from.get().ok_or(Errno(libc::EAFNOSUPPORT))?;
        Ok((len.min(buffer.len()), from.ip()))
    }

    fn recognise(&self, bytes: &[u8]) -> Option<EchoReply> {
        let v4 = self.target.is_ipv4();
        // A raw IPv4 socket shows the IP header too, whose first nibble but one is its length in
        // words (RFC 791).
        let skip = if self.raw && v4 {
            usize::from(bytes.first()? & 0x0f) * 4
        } else {
            0
        };
        let message: &[u8; MESSAGE_LEN] = bytes.get(skip..)?.first_chunk()?;
        let reply = if v4 { V4_REPLY } else { V6_REPLY };
        let ours = message[..2] == [reply, 0]
            && (!self.raw || message[4..6] == self.identifier())
            && message[8..] == self.nonce.to_be_bytes();
        let sequence = u16::from_be_bytes([message[6], message[7]]);
        ours.then_some(EchoReply { sequence })
    }
}

/// The unprivileged socket, else the raw one; and whether it is the raw one.
fn open_socket(target: IpAddr) -> Result<(OwnedFd, bool), PingError> {
    let family = sys::family(&target);
    let protocol = if target.is_ipv4() {
        libc::IPPROTO_ICMP
    } else {
        libc::IPPROTO_ICMPV6
    };
    if let Ok(socket) = sys::socket(family, libc::SOCK_DGRAM, protocol) {
        return Ok((socket, false));
    }
    match sys::socket(family, libc::SOCK_RAW, protocol) {
        Ok(socket) => Ok((socket, true)),
        Err(Errno(libc::EPERM | libc::EACCES)) => Err(PingError::Forbidden),
        Err(errno) => Err(PingError::Refused("socket", errno)),
    }
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks_exact(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // The example of RFC 1071, section 3: the sum is ddf2.
        assert_eq!(
            checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2
        );
    }

    #[test]
    fn versions_may_not_be_mixed_and_the_error_says_so() {
        let target = "127.0.0.1".parse().unwrap();
        let error = Pinger::open(target, Some("::1".parse().unwrap()), 1).err();
        assert_eq!(error, Some(PingError::MixedFamilies));
        assert!(
            PingError::Forbidden
                .to_string()
                .contains("ping_group_range")
        );
    }
}
