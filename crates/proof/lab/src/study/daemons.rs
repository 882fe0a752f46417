//! The daemons of iPRP, one at each host: the shipped program, in a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bumpless_node::key_file;
use bumpless_wan::emulation::Backup;

use super::host::Host;
use crate::demo::processes::{Process, describe};

/// How long daemons have to start.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// Daemons that run; they end when this is dropped.
#[derive(Debug)]
pub struct Daemons {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Who has ended, and with which words.
    ended: Mutex<Receiver<Result<(), String>>>,
}

impl Daemons {
    /// Starts one at each host, with files in `folder`; `monitors` is the part of the configuration that says what is
    /// protected.
    ///
    /// # Errors
    /// What one says that does not start.
    pub fn start(
        binary: &Path,
        folder: &Path,
        (hosts, monitors): (Vec<Host>, &str),
        stop: &AtomicBool,
    ) -> Result<Self, String> {
        let refused = |error: std::io::Error| format!("cannot write a file: {error}");
        key_file::create(&folder.join("group.key")).map_err(|error| error.to_string())?;
        for host in &hosts {
            let file = folder.join(format!("{}.toml", host.name));
            fs::write(file, configuration(&host.name, monitors)).map_err(refused)?;
        }
        let sockets: Vec<PathBuf> = hosts
            .iter()
            .map(|host| socket(folder, &host.name))
            .collect();
        let (started, whether) = channel();
        let (end, ends) = channel();
        let (binary, folder) = (binary.to_owned(), folder.to_owned());
        // The kernel ends a process with the thread that started it: this one stays.
        let thread = thread::spawn(move || hold(&binary, &folder, &hosts, &started, &ends));
        let daemons = Self {
            end: Some(end),
            thread: Some(thread),
            ended: Mutex::new(whether),
        };
        let why = "the thread of the daemons ended by a panic";
        let begun = daemons.told().recv();
        begun.unwrap_or_else(|_| Err(why.to_owned()))?;
        let until = Instant::now() + PATIENCE;
        while !sockets.iter().all(|socket| socket.exists()) {
            // Nothing will be measured then.
            if stop.load(Ordering::Relaxed) {
                break;
            }
            daemons.stood()?;
            if Instant::now() > until {
                let there = sockets.iter().filter(|socket| socket.exists()).count();
                return Err(format!(
                    "{there} of {} daemons of iPRP started within {} s",
                    sockets.len(),
                    PATIENCE.as_secs()
                ));
            }
            thread::sleep(LOOK);
        }
        Ok(daemons)
    }

    /// Whether none of them has ended that was not told of yet.
    ///
    /// # Errors
    /// The last words of one that has.
    pub fn stood(&self) -> Result<(), String> {
        self.told().try_recv().unwrap_or(Ok(()))
    }

    fn told(&self) -> MutexGuard<'_, Receiver<Result<(), String>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts all daemons, tells whether they could be, and who has ended since, and holds them until the end.
fn hold(
    binary: &Path,
    folder: &Path,
    hosts: &[Host],
    started: &Sender<Result<(), String>>,
    ends: &Receiver<()>,
) {
    let start = |host: &Host| {
        host.enter()?;
        let mut command = Command::new(binary);
        command.args(["iprp", "run"]);
        command.arg(folder.join(format!("{}.toml", host.name)));
        Process::spawn(command, folder, &host.name)
    };
    let processes: Result<Vec<Process>, _> = hosts.iter().map(start).collect();
    let mut processes = match processes {
        Ok(processes) => processes,
        Err(error) => {
            let _ = started.send(Err(format!("cannot start a daemon of iPRP: {error}")));
            return;
        }
    };
    let _ = started.send(Ok(()));
    while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let mut all = processes.iter_mut().enumerate();
        if let Some((place, status)) = all.find_map(|(place, it)| Some((place, it.ended()?))) {
            let process = processes.swap_remove(place);
            let (name, how) = (&process.name, describe(status));
            let words = process.last_lines();
            let why = format!("the daemon of iPRP at {name} has ended ({how}): {words}");
            let _ = started.send(Err(why));
        }
    }
    // All are asked before any is waited for.
    for process in &mut processes {
        process.signal(rustix::process::Signal::TERM);
    }
    processes.into_iter().for_each(Process::stop);
}

fn socket(folder: &Path, host: &str) -> PathBuf {
    folder.join(format!("{host}.sock"))
}

/// What the daemon of a host is told.
fn configuration(host: &str, monitors: &str) -> String {
    let (first, prefix) = Backup::network();
    format!(
        "[host]\nsocket = \"{host}.sock\"\n\n[security]\nkeys = [\"group.key\"]\n\n[limits]\nsessions = 1024\n\n\
         [[network]]\nind = 10\ninterface = \"eth1\"\n\n[[network]]\nind = 11\nprefix = \"{first}/{prefix}\"\n{monitors}"
    )
}

/// What is said of one port.
pub fn monitor(protocol: &str, port: u16, mode: &str) -> String {
    format!("\n[[monitor]]\nprotocol = \"{protocol}\"\nport = {port}\nmode = \"{mode}\"\n")
}
