//! Network namespaces without names: descriptors hold them, so the kernel removes them, with everything in them, when
//! the process that has the descriptors ends, however it does.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use bumpless_capture::netlink::Netlink;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// A new network namespace, in which the calling thread is from here on.
///
/// # Errors
/// The right to it is missing (CAP_SYS_ADMIN), or the kernel has no more.
#[allow(unsafe_code)]
pub fn begin() -> io::Result<OwnedFd> {
    // SAFETY: it concerns this thread's network namespace alone, not its descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Puts the calling thread in a namespace.
///
/// # Errors
/// The right to it is missing (CAP_SYS_ADMIN).
pub fn enter(namespace: &impl AsFd) -> io::Result<()> {
    let network = Some(LinkNameSpaceType::Network);
    Ok(move_into_link_name_space(namespace.as_fd(), network)?)
}

/// Does `work` on a thread of its own, which may enter namespaces.
///
/// # Errors
/// What `work` says.
pub fn apart<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
}

/// A socket to the part of the kernel that has interfaces and routes, in the namespace of the calling thread. It stays
/// there.
///
/// # Errors
/// The kernel has none.
pub fn socket() -> io::Result<Netlink> {
    Netlink::open(None)
}

/// Sets a value below `/proc/sys/net` in the namespace of the calling thread; one that this kernel has not is left out.
///
/// # Errors
/// The kernel refuses the value.
pub fn set(name: &str, value: &str) -> io::Result<()> {
    match fs::write(format!("/proc/sys/net/{name}"), value) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io::Error::new(
            error.kind(),
            format!("cannot set {name} to {value}: {error}"),
        )),
        _ => Ok(()),
    }
}
