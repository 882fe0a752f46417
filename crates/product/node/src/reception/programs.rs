//! Programs of the host that register their sockets (V-80 and further) with a guard, a node's or that of a host's file: who may is said by the
//! rights of a socket of its own, how much by the registry.

mod listener;
mod program;
mod registry;
mod roster;
mod socket;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bumpless_config::Registration;
use bumpless_registration::USUAL_SOCKET;
pub use bumpless_registration::message::Refusal;
use bumpless_registration::message::reply;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};

use crate::InstanceLock;
use crate::control::{folder_of, group, lets_in};
use listener::{Listener, Said};
pub use registry::{Limits, Registered, Registry};
pub use roster::{Roster, patterns};
use socket::Lookup;

/// How long a program has between its connection and its request.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);
/// Most programs that are connected and have not said what they want; one more takes the place of the longest silent.
pub const SILENT_MAX: usize = 32;
/// A request costs the host at most this part of a processor: so many times as long as it took, nothing is done for another one.
const REST: u32 = 9;
/// So many looks in a row a socket may be missing in the kernel's tables, which are read while they change.
const MISSES: u8 = 2;

/// What carries out what programs ask for.
pub trait Flows {
    /// Why this program's socket cannot be registered, or its place.
    fn admit(&mut self, wanted: Registered) -> Result<u16, (Refusal, String)>;
    /// Takes back the flow in this place.
    fn remove(&mut self, place: u16);
    /// Counts a refusal.
    fn refused(&mut self, refusal: Refusal, sentence: &str);
}

/// Path of the socket at which programs register, where paths that are not absolute begin at `folder`.
pub fn socket_path(asked: &Registration, folder: &Path) -> PathBuf {
    let named = asked.socket.as_ref().map(|path| folder.join(path));
    named.unwrap_or_else(|| PathBuf::from(USUAL_SOCKET))
}

/// What would keep programs of `group` from registering at `path`, without making anything; a guard may listen there already.
///
/// # Errors
/// There is no such group, its members may not enter the folder, or a folder or the lock cannot be made.
pub fn obstacle(path: &Path, named: &str) -> io::Result<()> {
    lets_in(group(named)?, folder_of(path))?;
    InstanceLock::could_be_made(&lock_of(path)).map_err(|error| io::Error::other(error.to_string()))
}

/// The file of the lock beside the socket at `path`.
fn lock_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.lock", path.display()))
}

/// A program that has registered a socket: as long as its connection stands, and its socket.
struct Lease {
    connection: OwnedFd,
    place: u16,
    lookup: Lookup,
    misses: u8,
}

/// A program that has said nothing yet.
struct Silent {
    connection: OwnedFd,
    until: Instant,
}

/// The connections of programs.
pub struct Programs {
    listener: Listener,
    silent: Vec<Silent>,
    leases: Vec<Lease>,
    busy_until: Instant,
}

impl Programs {
    /// Listens for programs; folders that are not there are made so that the group may enter them.
    ///
    /// # Errors
    /// Another guard listens there, there is no such group or it may not enter the socket's folder, or the socket is refused.
    pub fn listen(path: &Path, group: &str) -> io::Result<Self> {
        Ok(Self {
            listener: Listener::new(path, group)?,
            silent: Vec::new(),
            leases: Vec::new(),
            busy_until: Instant::now(),
        })
    }

    /// Waits for `wait` at most, and carries out what came meanwhile.
    pub fn serve(&mut self, wait: Duration, flows: &mut impl Flows) {
        let begun = Instant::now();
        if begun < self.busy_until {
            std::thread::sleep(wait.min(self.busy_until - begun));
            return;
        }
        let Some(ready) = self.wait(wait) else {
            // Out of the kernel's memory: no busy loop.
            std::thread::sleep(wait);
            return;
        };
        let begun = Instant::now();
        // From the end on, so that places before stay where they are.
        let first_lease = 1 + self.silent.len();
        for at in (0..self.leases.len()).rev() {
            if ready[first_lease + at] {
                flows.remove(self.leases.swap_remove(at).place);
            }
        }
        for at in (0..self.silent.len()).rev() {
            if ready[1 + at] {
                let program = self.silent.remove(at);
                self.answer(program.connection, flows);
            }
        }
        self.silent.retain(|program| begun < program.until);
        if ready[0] {
            self.accept(begun);
        }
        if ready.contains(&true) {
            self.busy_until = Instant::now() + begun.elapsed() * REST;
        }
    }

    /// Ends what belongs to sockets that are closed although their programs are connected. To be called now and then.
    pub fn look_after(&mut self, flows: &mut impl Flows) {
        let is_open = socket::open_ones(self.leases.iter().map(|lease| lease.lookup));
        for (lease, is_open) in self.leases.iter_mut().zip(is_open) {
            lease.misses = if is_open { 0 } else { lease.misses + 1 };
        }
        let (gone, here) = std::mem::take(&mut self.leases)
            .into_iter()
            .partition(|lease| lease.misses >= MISSES);
        self.leases = here;
        let gone: Vec<Lease> = gone;
        gone.iter().for_each(|lease| flows.remove(lease.place));
    }

    /// What is ready: the listener, who is silent, who has registered.
    fn wait(&self, wait: Duration) -> Option<Vec<bool>> {
        let silent = self.silent.iter().map(|it| it.connection.as_fd());
        let leases = self.leases.iter().map(|it| it.connection.as_fd());
        let all = std::iter::once(self.listener.as_fd())
            .chain(silent)
            .chain(leases);
        let mut watched: Vec<_> = all
            .map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN))
            .collect();
        let wait = Timespec::try_from(wait).ok()?;
        match poll(&mut watched, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {
                Some(watched.iter().map(|it| !it.revents().is_empty()).collect())
            }
            Err(_) => None,
        }
    }

    fn accept(&mut self, now: Instant) {
        let Some(connection) = self.listener.accept() else {
            return;
        };
        if self.silent.len() == SILENT_MAX {
            self.silent.remove(0);
        }
        self.silent.push(Silent {
            connection,
            until: now + REQUEST_TIMEOUT,
        });
    }

    fn answer(&mut self, connection: OwnedFd, flows: &mut impl Flows) {
        let result = match listener::hear(&connection) {
            // Who went away without a word asked for nothing.
            Said::Nothing => return,
            Said::Refused(refusal, sentence) => Err((refusal, sentence)),
            Said::Wanted(wanted, lookup) => flows.admit(wanted).map(|place| (place, lookup)),
        };
        let said = match &result {
            Ok(_) => reply(Ok(())),
            Err((refusal, sentence)) => {
                flows.refused(*refusal, sentence);
                reply(Err((*refusal, sentence)))
            }
        };
        let sent = send(
            &connection,
            &said,
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        );
        match (result, sent) {
            (Ok((place, lookup)), Ok(_)) => self.leases.push(Lease {
                connection,
                place,
                lookup,
                misses: 0,
            }),
            (Ok((place, _)), Err(_)) => flows.remove(place),
            (Err(_), _) => {}
        }
    }
}
