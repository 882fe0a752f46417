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
/// How long the process that holds a network has to end by a signal that it could hold back, as one that is stopped does.
const HOLDER_GRACE: Duration = Duration::from_secs(2);
/// How long the kernel is waited for, which removes a network behind the back of whoever ends it.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(2);

/// Ends a network and the programs in it, and waits until the kernel has removed it. `None`: none of this name is up, and
/// what a killed one may have left is removed.
///
/// # Errors
/// [`PlaceError`]; [`PlaceError::Stays`] if it is not gone. Its files are, once nobody holds it.
pub fn down(place: &Place) -> Result<Option<Vec<Process>>, PlaceError> {
    let Some(running) = place.running()? else {
        return Ok(None);
    };
    let ended = processes::end(&running, GRACE);
    let witness = witness(&running);
    // The kernel ends them with the process that holds the network, but not before it has returned.
    let daemons = match running.routing {
        Routing::Fixed | Routing::EqualCost => Vec::new(),
        Routing::Ospf => processes::daemons(&running),
    };
    let stays = |what: &str| PlaceError::Stays(running.name.clone(), what.to_owned());
    let holder = format!("its process {}", running.pid);
    let system = |error| PlaceError::System(running.namespace(0), error);
    if !end(&running).map_err(system)? {
        return Err(stays(&holder));
    }
    // A daemon leaves no file once those of the network are gone.
    let left = [
        (
            "a routing daemon",
            !daemons.iter().all(|it| processes::gone(it, PATIENCE)),
        ),
        (
            "a namespace with cables",
            witness.is_some_and(|it| !emptied(it)),
        ),
    ];
    // Another one may have come up meanwhile.
    if let Some(still) = place.running()?
        && still.pid == running.pid
    {
        return Err(stays(&holder));
    }
    match left.into_iter().find(|(_, is_there)| *is_there) {
        Some((what, _)) => Err(stays(what)),
        None => Ok(Some(ended)),
    }
}

/// Whether a namespace has lost its cables in time.
fn emptied(namespace: File) -> bool {
    let until = Instant::now() + PATIENCE;
    let emptied = thread::spawn(move || {
        while connected(&namespace).unwrap_or(false) {
            if Instant::now() > until {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    });
    emptied.join().unwrap_or(false)
}

/// Ends the process that holds the network; whether it has ended.
fn end(running: &Running) -> io::Result<bool> {
    let gone = |error: rustix::io::Errno| error == rustix::io::Errno::SRCH;
    let pid = Pid::from_raw(running.pid as i32).ok_or(io::ErrorKind::InvalidData)?;
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(error) if gone(error) => return Ok(true),
        other => other?,
    };
    // The number may have gone to another process before it was held.
    if running.has_ended() {
        return Ok(true);
    }
    for (signal, patience) in [(Signal::TERM, HOLDER_GRACE), (Signal::KILL, PATIENCE)] {
        match pidfd_send_signal(&process, signal) {
            Err(error) if gone(error) => return Ok(true),
            other => other?,
        }
        if processes::gone(&process, patience) {
            return Ok(true);
        }
    }
    Ok(false)
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::super::build::Delays;
    use super::*;

    #[test]
    fn a_holder_that_does_not_end_when_it_is_asked_is_ended_all_the_same() {
        let mut holder = Command::new("sleep").arg("600").spawn().unwrap();
        let running = Running {
            name: "stopped".to_owned(),
            pid: holder.id(),
            pool: String::new(),
            routing: Routing::Fixed,
            delays: Delays::Nothing,
            took_ms: 0,
            // Standard input stands for a namespace.
            namespaces: vec![0],
            topology: String::new(),
        };
        let pid = Pid::from_raw(holder.id() as i32).unwrap();
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        let status = format!("/proc/{}/status", holder.id());
        while !fs::read_to_string(&status).unwrap().contains("State:\tT") {
            thread::yield_now();
        }
        assert!(end(&running).unwrap());
        assert_eq!(holder.wait().unwrap().signal(), Some(9));
        assert!(end(&running).unwrap(), "it is gone already");
    }
}
