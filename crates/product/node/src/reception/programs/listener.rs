//! The socket at which programs ask, and what one says.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use bumpless_registration::message::{REQUEST_LEN, Refusal, read_request};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, recvmsg, socket_with,
};

use super::lock_of;
use super::program::Program;
use super::registry::Registered;
use super::socket::{Lookup, examine};
use crate::InstanceLock;
use crate::control::{self, put_socket};

/// Connections that the kernel keeps until they are accepted.
const WAITING: i32 = 64;

/// A listening socket; its file is removed when this is dropped.
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    _lock: InstanceLock,
}

impl Listener {
    /// Listens at `path`, which root, this user and the members of `group` may reach.
    pub fn new(path: &Path, group: &str) -> io::Result<Self> {
        let (number, folder) = (control::group(group)?, control::folder_of(path));
        // What is refused has made nothing.
        control::lets_in(number, folder)?;
        control::make_for(number, folder)?;
        let lock = InstanceLock::take(&lock_of(path));
        let lock = lock.map_err(|error| io::Error::other(error.to_string()))?;
        let bound = |draft: &Path| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            bind(&socket, &SocketAddrUnix::new(draft)?)?;
            listen(&socket, WAITING)?;
            Ok(socket)
        };
        Ok(Self {
            socket: put_socket(path, Some(group), bound)?,
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Who is next; `None`: nobody, or there is no file left to open.
    pub fn accept(&self) -> Option<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        accept_with(&self.socket, flags).ok()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What a program said.
pub enum Said {
    /// It went away.
    Nothing,
    /// What is to be refused whatever else there is.
    Refused(Refusal, String),
    /// What it wants, and where its socket is found again.
    Wanted(Registered, Lookup),
}

/// Reads the request of a program. The socket that comes with it is looked at and closed: it stays the program's alone.
pub fn hear(connection: &OwnedFd) -> Said {
    // A byte more than a request has: a longer one is none.
    let mut bytes = [0; REQUEST_LEN + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut along = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut room = [IoSliceMut::new(&mut bytes)];
    let Ok(received) = recvmsg(connection, &mut room, &mut along, flags) else {
        return Said::Nothing;
    };
    if received.bytes == 0 {
        return Said::Nothing;
    }
    let sockets: Vec<OwnedFd> = along
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
            _ => None,
        })
        .flatten()
        .collect();
    let terms = match read_request(&bytes[..received.bytes]) {
        Ok(terms) => terms,
        Err(sentence) => return Said::Refused(Refusal::Version, sentence),
    };
    let [socket] = &sockets[..] else {
        let sentence = "exactly one socket comes with a request";
        return Said::Refused(Refusal::Socket, sentence.to_owned());
    };
    if received.flags.contains(ReturnFlags::CTRUNC) {
        let sentence =
            "exactly one socket comes with a request, or the guard has no file left to open";
        return Said::Refused(Refusal::Socket, sentence.to_owned());
    }
    let Ok(caller) = socket_peercred(connection) else {
        return Said::Nothing;
    };
    let program = Program::new(caller.pid.as_raw_pid(), caller.uid.as_raw());
    match examine(socket, program.user) {
        Ok((pattern, lookup)) => Said::Wanted(
            Registered {
                program,
                pattern,
                terms,
            },
            lookup,
        ),
        Err((refusal, sentence)) => Said::Refused(refusal, sentence),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_keeps_a_group_out_is_told_before_a_folder_is_made() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("new");
        // What is above it is its user's alone.
        std::fs::set_permissions(top.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let strangers = (rustix::process::getegid().as_raw() + 4321).to_string();
        let refused = Listener::new(&folder.join("programs.sock"), &strangers);
        let told = refused.err().expect("a refusal").to_string();
        assert!(told.contains("may not enter the folder"), "{told}");
        assert!(!folder.exists());
    }
}
