//! The end of a network.

use std::fs::{self, File};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::namespace;
use super::ospf::Routing;
use super::place::{Place, PlaceError, Running};
use super::processes::{self, Process};

/// How long programs have to end before they are ended.
const GRACE: Duration = Duration::from_secs(1);
/// How long the kernel is waited for, which removes a network behind the back of whoever ends it.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(2);

/// Ends a network and the programs in it, and waits until the kernel has removed it. `None`: none of this name is up, and
/// what a killed one may have left is removed.
///
/// # Errors
/// [`PlaceError`].
pub fn down(place: &Place) -> Result<Option<Vec<Process>>, PlaceError> {
    let Some(running) = place.running()? else {
        return Ok(None);
    };
    let ended = processes::end(&running, GRACE);
    let witness = witness(&running);
    // The kernel ends them with the process that holds the network, but not before it has returned.
    let daemons = match running.routing {
        Routing::Fixed => Vec::new(),
        Routing::Ospf => processes::daemons(&running),
    };
    end(&running).map_err(|error| PlaceError::System(running.namespace(0), error))?;
    for daemon in &daemons {
        processes::gone(daemon, PATIENCE);
    }
    if let Some(witness) = witness {
        let until = Instant::now() + PATIENCE;
        let emptied = thread::spawn(move || {
            while connected(&witness).unwrap_or(false) && Instant::now() < until {
                thread::sleep(LOOK);
            }
        });
        let _ = emptied.join();
    }
    place.running()?;
    Ok(Some(ended))
}

/// Ends the process that holds the network, and waits for that.
fn end(running: &Running) -> io::Result<()> {
    let gone = |error: rustix::io::Errno| error == rustix::io::Errno::SRCH;
    let pid = Pid::from_raw(running.pid as i32).ok_or(io::ErrorKind::InvalidData)?;
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(error) if gone(error) => return Ok(()),
        other => other?,
    };
    match pidfd_send_signal(&process, Signal::TERM) {
        Err(error) if gone(error) => return Ok(()),
        other => other?,
    }
    processes::gone(&process, PATIENCE);
    Ok(())
}

/// The namespace of a node with a link: its cables end when the other ends are removed.
fn witness(running: &Running) -> Option<File> {
    let topology = running.topology().ok()?;
    let link = topology.links().first()?;
    File::open(running.namespace(link.ends[0].index())).ok()
}

/// Whether the namespace has an interface besides loopback. The calling thread is in it from here on.
fn connected(namespace: &File) -> io::Result<bool> {
    namespace::enter(namespace)?;
    let interfaces = fs::read_to_string("/proc/thread-self/net/dev")?;
    Ok(interfaces
        .lines()
        .any(|line| line.trim().starts_with("eth")))
}
