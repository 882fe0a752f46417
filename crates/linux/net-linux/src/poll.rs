//! Waiting for datagrams, for another thread's call, or for an instant, whichever comes first.

use crate::clock::{Clock, timespec};
use crate::errno::Errno;
use crate::sys;
use bumpless_base::{Duration, Instant};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Most descriptors that one [`Poller`] watches besides its waker.
pub const MAX_DESCRIPTORS: usize = 64;

/// Wakes a thread that waits in [`Poller::wait`]. Clones wake the same thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// A new waker, at rest.
    ///
    /// # Errors
    /// When the process or the system is out of descriptors or memory.
    pub fn new() -> Result<Self, Errno> {
        // SAFETY: eventfd() takes integers only.
        let fd = sys::check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
        // SAFETY: the kernel just handed out `fd` and nothing else owns it.
        Ok(Self(Arc::new(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    /// Ends the current or else the next wait. One system call, never blocks; calls before the
    /// thread wakes are merged into one.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: `one` holds 8 readable bytes. The only possible failure is a counter at its
        // limit, and then the thread is already due to wake.
        unsafe { libc::write(sys::raw(&self.0), one.as_ptr().cast(), one.len()) };
    }

    /// Takes the calls that there were; whether there was one.
    fn drain(&self) -> bool {
        let mut count = [0u8; 8];
        // SAFETY: `count` has room for 8 bytes. Failure means that nobody called, which is fine.
        let read = unsafe { libc::read(sys::raw(&self.0), count.as_mut_ptr().cast(), count.len()) };
        read > 0
    }
}

/// Whether a socket has something to read or an error to collect, which stays there.
fn has_input(socket: RawFd) -> bool {
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: nothing is written: there is room for no byte.
    let result = unsafe { libc::recv(socket, std::ptr::null_mut(), 0, flags) };
    result >= 0 || Errno::last().0 != libc::EAGAIN
}

/// What ended a wait. Nothing set: the time had come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// [`Waker::wake`] was called.
    pub woken: bool,
    descriptors: u64,
}

impl Ready {
    /// Whether the descriptor at `index`, in the order given to [`Poller::new`], has something to
    /// read, can be written if that was asked, or has an error to collect.
    pub const fn contains(self, index: usize) -> bool {
        index < MAX_DESCRIPTORS && self.descriptors & (1 << index) != 0
    }

    /// Whether nothing but time ended the wait.
    pub const fn is_empty(self) -> bool {
        !self.woken && self.descriptors == 0
    }
}

/// Waits on a fixed set of descriptors and one [`Waker`], with nanosecond timeouts.
pub struct Poller {
    /// The waker's descriptor, then the caller's.
    entries: Box<[libc::pollfd]>,
    waker: Waker,
}

impl Poller {
    /// Watches `descriptors` for input, and `waker`. The descriptors must stay open as long as the
    /// poller is used; those beyond [`MAX_DESCRIPTORS`] are not watched.
    pub fn new(descriptors: &[RawFd], waker: Waker) -> Self {
        let own = sys::raw(&waker.0);
        let entries = std::iter::once(own)
            .chain(descriptors.iter().copied().take(MAX_DESCRIPTORS))
            .map(|fd| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            })
            .collect();
        Self { entries, waker }
    }

    /// Also watch the descriptor at `index` for room to write, or stop doing so. For a link whose
    /// queue was full.
    pub fn watch_writable(&mut self, index: usize, watch: bool) {
        if let Some(entry) = self.entries.get_mut(index + 1) {
            entry.events = if watch {
                libc::POLLIN | libc::POLLOUT
            } else {
                libc::POLLIN
            };
        }
    }

    /// Waits until a descriptor is ready, the waker was called, or `until` has come. With an
    /// instant in the past it only looks. Signals do not end the wait.
    ///
    /// # Errors
    /// When the kernel is out of memory; nothing has been waited for.
    pub fn wait(&mut self, until: Instant) -> Result<Ready, Errno> {
        loop {
            let ready = self.poll(until.since(Clock.now()))?;
            if ready.is_some_and(|ready| !ready.is_empty()) || Clock.now() >= until {
                return Ok(ready.unwrap_or_default());
            }
        }
    }

    /// Looks without sleeping until a descriptor has something to read, the waker was called, or `until` has come; whether something was
    /// there. Another thread that is ready to run on this processor runs in between. The descriptors are sockets.
    ///
    /// A socket for which the kernel may ask its interface ([`UdpConfig::busy_poll`](crate::UdpConfig)) does that with each look.
    pub fn look_busily(&mut self, until: Instant) -> bool {
        loop {
            let (own, others) = (&self.waker, &self.entries[1..]);
            if own.drain() || others.iter().any(|entry| has_input(entry.fd)) {
                return true;
            }
            if Clock.now() >= until {
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// One system call; `None` if a signal interrupted it.
    fn poll(&mut self, timeout: Duration) -> Result<Option<Ready>, Errno> {
        let timeout = timespec(timeout.as_nanos());
        let (entries, count) = (
            self.entries.as_mut_ptr(),
            self.entries.len() as libc::nfds_t,
        );
        // SAFETY: `entries` points to `count` entries that are borrowed mutably through the call,
        // `timeout` lives through it, and a null mask leaves the signal mask alone.
        let result = sys::check(unsafe {
            libc::ppoll(entries, count, &raw const timeout, std::ptr::null())
        });
        match result {
            Ok(_) => Ok(Some(self.collect())),
            Err(Errno(libc::EINTR)) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn collect(&mut self) -> Ready {
        let mut ready = Ready::default();
        for (index, entry) in self.entries[1..].iter().enumerate() {
            ready.descriptors |= u64::from(entry.revents != 0) << index;
        }
        if self.entries[0].revents != 0 {
            self.waker.drain();
            ready.woken = true;
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Clock.now() + Duration::from_millis(5)
    }

    #[test]
    fn a_wait_ends_at_its_instant_and_not_before() {
        let mut poller = Poller::new(&[], Waker::new().unwrap());
        let until = soon();
        assert!(poller.wait(until).unwrap().is_empty());
        assert!(Clock.now() >= until);
        assert!(poller.wait(Instant::ZERO).unwrap().is_empty());
    }

    #[test]
    fn calls_before_a_wait_end_it_once() {
        let waker = Waker::new().unwrap();
        let mut poller = Poller::new(&[], waker.clone());
        waker.wake();
        waker.clone().wake();
        assert!(poller.wait(Instant::FAR_FUTURE).unwrap().woken);
        assert!(poller.wait(Instant::ZERO).unwrap().is_empty());
    }

    #[test]
    fn a_call_from_another_thread_ends_a_wait_without_end() {
        let waker = Waker::new().unwrap();
        let mut poller = Poller::new(&[], waker.clone());
        let caller = std::thread::spawn(move || waker.wake());
        assert!(poller.wait(Instant::FAR_FUTURE).unwrap().woken);
        caller.join().unwrap();
    }

    #[test]
    fn a_look_without_sleeping_finds_datagrams_and_calls_and_takes_no_datagram() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let waker = Waker::new().unwrap();
        let mut poller = Poller::new(&[std::os::fd::AsRawFd::as_raw_fd(&socket)], waker.clone());
        let until = soon();
        assert!(!poller.look_busily(until) && Clock.now() >= until);
        socket.send_to(b"", socket.local_addr().unwrap()).unwrap();
        assert!(poller.look_busily(Instant::FAR_FUTURE) && poller.look_busily(Instant::ZERO));
        socket.recv(&mut [0; 1]).unwrap();
        assert!(!poller.look_busily(Instant::ZERO));
        waker.wake();
        assert!(poller.look_busily(Instant::FAR_FUTURE) && !poller.look_busily(Instant::ZERO));
    }

    #[test]
    fn the_ready_descriptor_is_named_by_its_index() {
        let quiet = Waker::new().unwrap();
        let busy = Waker::new().unwrap();
        busy.wake();
        let descriptors = [sys::raw(&quiet.0), sys::raw(&busy.0)];
        let mut poller = Poller::new(&descriptors, Waker::new().unwrap());
        let ready = poller.wait(Instant::FAR_FUTURE).unwrap();
        assert_eq!(
            (ready.contains(0), ready.contains(1), ready.woken),
            (false, true, false)
        );
        poller.watch_writable(0, true);
        assert!(poller.wait(Instant::FAR_FUTURE).unwrap().contains(0));
        poller.watch_writable(0, false);
        assert!(!poller.wait(Instant::FAR_FUTURE).unwrap().contains(0));
    }
}
