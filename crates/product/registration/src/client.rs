//! The program's side.

use std::fmt;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, sendmsg, socket_with,
};

use crate::message::{REPLY_LEN, Refusal, Terms, USUAL_SOCKET, read_reply, request};

/// How long a guard may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why a socket is not registered. Its packets arrive as those of ports that nobody registered.
#[derive(Debug)]
pub enum Error {
    /// No guard runs on this host, or programs may not register with it.
    NoGuard(String),
    /// This user may not.
    Forbidden(String),
    /// The guard refuses, for this cause and in these words.
    Refused(Refusal, String),
    /// The guard took the request and did not answer as one of this version does.
    NoAnswer(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGuard(path) => write!(
                f,
                "no guard takes registrations at {path}: start `bumpless guard run` with a section [registration], or name its socket"
            ),
            Self::Forbidden(path) => write!(
                f,
                "this user may not register with the guard at {path}: be a member of the group that its section [registration] names"
            ),
            Self::Refused(_, sentence) => f.write_str(sentence),
            Self::NoAnswer(error) => write!(
                f,
                "the guard did not answer as this version of the library expects: {error}; see what `bumpless guard run` says"
            ),
        }
    }
}

impl std::error::Error for Error {}

/// A registered socket, until this is dropped or the process ends. The socket itself stays the program's: when it is closed,
/// the guard ends this, too.
#[derive(Debug)]
pub struct Registration(OwnedFd);

impl Registration {
    /// Whether it still holds. It ends with the guard, and when the guard's file has no room for it any more.
    pub fn holds(&self) -> bool {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        let at_once = Timespec::default();
        // The guard says nothing more: whatever comes is the end.
        matches!(retry_on_intr(|| poll(&mut watched, Some(&at_once))), Ok(0))
    }
}

impl AsFd for Registration {
    /// Becomes readable when the registration ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Has this host's guard receive the packets of `socket`, of UDP or TCP and bound, on these terms. A connected one stands for what its
/// peer sends, any other for its port.
///
/// # Errors
/// [`Error`]; nothing has changed.
pub fn register(socket: impl AsFd, terms: &Terms) -> Result<Registration, Error> {
    register_at(Path::new(USUAL_SOCKET), socket, terms)
}

/// The same with the guard whose socket for registrations is at `path`.
///
/// # Errors
/// [`Error`]; nothing has changed.
pub fn register_at(path: &Path, socket: impl AsFd, terms: &Terms) -> Result<Registration, Error> {
    let guard = reach(path).map_err(|error| match error {
        Errno::NOENT | Errno::CONNREFUSED => Error::NoGuard(path.display().to_string()),
        Errno::ACCESS | Errno::PERM => Error::Forbidden(path.display().to_string()),
        other => Error::NoAnswer(other.into()),
    })?;
    let said = ask(&guard, socket.as_fd(), terms).map_err(|it| Error::NoAnswer(it.into()))?;
    match read_reply(&said) {
        Some(Ok(())) => Ok(Registration(guard)),
        Some(Err((refusal, sentence))) => Err(Error::Refused(refusal, sentence)),
        None => Err(Error::NoAnswer(io::ErrorKind::InvalidData.into())),
    }
}

fn reach(path: &Path) -> Result<OwnedFd, Errno> {
    let guard = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    for direction in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&guard, direction, Some(TIMEOUT))?;
    }
    retry_on_intr(|| connect(&guard, &SocketAddrUnix::new(path)?))?;
    Ok(guard)
}

fn ask(guard: &OwnedFd, socket: BorrowedFd<'_>, terms: &Terms) -> Result<Vec<u8>, Errno> {
    let sockets = [socket];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    along.push(SendAncillaryMessage::ScmRights(&sockets));
    let request = request(terms);
    let said = [IoSlice::new(&request)];
    retry_on_intr(|| sendmsg(guard, &said, &mut along, SendFlags::NOSIGNAL))?;
    let mut reply = vec![0; REPLY_LEN];
    let (_, len) = retry_on_intr(|| recv(guard, &mut reply[..], RecvFlags::empty()))?;
    reply.truncate(len);
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_guard_the_error_says_how_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("guard.sock");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let terms = Terms {
            capacity: 1,
            period: Duration::from_secs(1),
            priority: 0,
        };
        let error = register_at(&path, &socket, &terms).unwrap_err();
        assert!(matches!(error, Error::NoGuard(_)), "{error:?}");
        let told = error.to_string();
        assert!(
            told.contains("guard.sock") && told.contains("[registration]"),
            "{told}"
        );
    }
}
