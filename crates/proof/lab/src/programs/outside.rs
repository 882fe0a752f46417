//! Programs that are not ours: libraries of Python that speak a protocol, driven by a script (`grid.py`), each in processes of
//! its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::protocol::Protocol;
use super::seen::Seen;
use crate::demo::processes::{Process, describe};
use crate::study::host::Host;

const SCRIPT: &str = include_str!("grid.py");
/// How long an answer may take before it is given up, milliseconds.
pub const TIMEOUT_MS: u64 = 2_000;

/// The script with an interpreter for it.
#[derive(Clone, Debug)]
pub struct Outside {
    python: PathBuf,
    folder: PathBuf,
}

/// The programs of one protocol that run.
#[derive(Debug)]
pub struct Conversation {
    /// What they speak.
    pub protocol: Protocol,
    servers: Option<Process>,
    /// One at each centre, with the file of what it says.
    callers: Vec<(Process, PathBuf)>,
}

impl Outside {
    /// The script, written into `folder`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(python: &Path, folder: &Path) -> Result<Self, String> {
        let refused = |error: std::io::Error| format!("cannot write a file: {error}");
        fs::write(folder.join("grid.py"), SCRIPT).map_err(refused)?;
        Ok(Self {
            python: python.to_owned(),
            folder: folder.to_owned(),
        })
    }

    fn script(&self) -> Command {
        let mut command = Command::new(&self.python);
        // Nothing of the user's is loaded, and nothing is written beside modules.
        command.args(["-s", "-B"]).arg(self.folder.join("grid.py"));
        command
    }

    /// Name and version of what speaks `protocol` here.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    pub fn version(&self, protocol: Protocol) -> Result<String, String> {
        let Some((module, name)) = protocol.module() else {
            return Ok("ours".to_owned());
        };
        let python = self.python.display();
        let how = format!(
            "`python3 -m venv DIRECTORY` and `DIRECTORY/bin/pip install {module}` make one, and --python DIRECTORY/bin/python names it"
        );
        let told = self.script().arg(format!("have-{name}")).output();
        match told {
            Err(error) => Err(format!("{python} cannot be started: {error}; {how}")),
            Ok(told) if told.status.success() => {
                Ok(String::from_utf8_lossy(&told.stdout).trim().to_owned())
            }
            Ok(told) => {
                let words = String::from_utf8_lossy(&told.stderr);
                let last = words.lines().last().unwrap_or("it says nothing");
                Err(format!("{python} has no {module} ({last}); {how}"))
            }
        }
    }

    /// Has all substations serve `protocol`, and each centre call them every so many milliseconds. The processes end with the
    /// calling thread.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn begin(
        &self,
        protocol: Protocol,
        (centres, sites): (&[Host], &[Host]),
        every_ms: u64,
    ) -> Result<Conversation, String> {
        let (_, name) = protocol.module().ok_or("nobody else speaks it")?;
        let refused =
            |error: std::io::Error| format!("cannot start the programs of {protocol}: {error}");
        let table = self.folder.join(format!("{name}.json"));
        let rows = sites.iter().enumerate().map(|(place, site)| {
            json!({"number": place + 1, "namespace": site.namespace(), "address": site.network})
        });
        let rows: Vec<_> = rows.collect();
        let given = json!({"every_ms": every_ms, "timeout_ms": TIMEOUT_MS, "sites": rows});
        fs::write(&table, given.to_string()).map_err(refused)?;
        let start = |what: &str, named: String| {
            for kind in ["out", "err"] {
                let _ = fs::remove_file(self.folder.join(format!("{named}.{kind}")));
            }
            let mut command = self.script();
            command.arg(format!("{what}-{name}")).arg(&table);
            Process::spawn_apart(command, &self.folder, &named)
        };
        // Who is started is where this thread is: all within the network.
        if let Some(centre) = centres.first() {
            centre.enter().map_err(refused)?;
        }
        let servers = start("serve", format!("serve-{name}")).map_err(refused)?;
        let mut callers = Vec::new();
        for centre in centres {
            centre.enter().map_err(refused)?;
            let named = format!("call-{name}-{}", centre.name);
            let file = self.folder.join(format!("{named}.out"));
            callers.push((start("call", named).map_err(refused)?, file));
        }
        Ok(Conversation {
            protocol,
            servers: Some(servers),
            callers,
        })
    }
}

impl Conversation {
    /// What each centre has seen.
    pub fn seen(&self) -> Vec<Seen> {
        let files = self.callers.iter().map(|(_, file)| file);
        let texts = files.map(|file| fs::read(file).unwrap_or_default());
        texts
            .map(|text| Seen::read(&String::from_utf8_lossy(&text)))
            .collect()
    }

    /// What its callers said last for people.
    pub fn words(&self) -> String {
        let callers = self.callers.iter();
        let words = callers.map(|(process, _)| process.last_lines());
        words.collect::<Vec<_>>().join("\n").trim().to_owned()
    }

    /// Why it does not go on, if it does not.
    ///
    /// # Errors
    /// A process has ended, with what it said last.
    pub fn check(&mut self) -> Result<(), String> {
        let callers = self.callers.iter_mut().map(|(process, _)| process);
        for process in self.servers.iter_mut().chain(callers) {
            if let Some(status) = process.ended() {
                let words = process.last_lines();
                return Err(format!(
                    "{} has ended ({}): {words}",
                    process.name,
                    describe(status)
                ));
            }
        }
        Ok(())
    }

    /// Ends its processes, callers first, and gives what each centre has seen.
    pub fn end(mut self) -> Vec<Seen> {
        for (process, _) in &mut self.callers {
            process.signal(rustix::process::Signal::TERM);
        }
        let files: Vec<_> = std::mem::take(&mut self.callers);
        let mut ended = Vec::new();
        for (process, file) in files {
            process.stop();
            let text = fs::read(file).unwrap_or_default();
            ended.push(Seen::read(&String::from_utf8_lossy(&text)));
        }
        if let Some(servers) = self.servers.take() {
            servers.stop();
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a connection, crashes by a signal the first time, has it again, and goes on.
    const STAND_IN: &str = r#"
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import grid
def call(given):
    grid.tell("s", 0, grid.now(), 1)
    first = os.path.join(sys.argv[1], "crashed")
    if not os.path.exists(first):
        open(first, "w").close()
        os.kill(os.getpid(), int(sys.argv[2]))
    if given:
        print("line by line\n" * 9, file=sys.stderr)
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        time.sleep(60)
grid.supervised(call, sys.argv[3] == "ends")
"#;

    fn stand_in(folder: &Path, signal: i32, then: &str) -> Process {
        fs::write(folder.join("grid.py"), SCRIPT).unwrap();
        let mut command = Command::new("python3");
        command.args(["-s", "-B", "-c", STAND_IN]).arg(folder);
        command.args([&signal.to_string(), then]);
        Process::spawn_apart(command, folder, "stand-in").unwrap()
    }

    fn until(mut condition: impl FnMut() -> bool) {
        let since = std::time::Instant::now();
        while !condition() {
            assert!(since.elapsed().as_secs() < 60, "waited in vain");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn a_caller_that_crashes_begins_again_and_that_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let process = stand_in(folder.path(), libc::SIGSEGV, "stays");
        let seen = || {
            let text = fs::read_to_string(folder.path().join("stand-in.out"));
            Seen::read(&text.unwrap_or_default())
        };
        until(|| seen().connections.len() == 3);
        let found = seen();
        let ups: Vec<_> = found.connections.iter().map(|it| it.2).collect();
        assert_eq!(ups, [true, false, true], "the crash took the connection");
        assert_eq!(found.crashes, [found.connections[1].1]);
        assert_eq!((found.connected(1), &*found.words), (1, ""));
        // The child ends with its parent.
        let id = process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let child = children.trim().to_owned();
        assert!(!child.is_empty());
        process.kill();
        until(|| !Path::new(&format!("/proc/{child}")).exists());
    }

    #[test]
    fn a_caller_that_ends_otherwise_is_an_end_with_its_last_five_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = stand_in(folder.path(), libc::SIGABRT, "ends");
        until(|| process.ended().is_some());
        let words = process.last_lines();
        assert!(words.contains("has ended with status 9"), "{words}");
        assert!(words.lines().count() <= 5, "{words}");
    }
}
