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
            let _ = fs::remove_file(self.folder.join(format!("{named}.out")));
            let mut command = self.script();
            command.arg(format!("{what}-{name}")).arg(&table);
            Process::spawn(command, &self.folder, &named)
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

    /// Why it does not go on, if it does not.
    ///
    /// # Errors
    /// A process has ended, with what it said last.
    pub fn check(&mut self) -> Result<(), String> {
        let callers = self.callers.iter_mut().map(|(process, _)| process);
        for process in self.servers.iter_mut().chain(callers) {
            if let Some(status) = process.ended() {
                let words = process.last_words();
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
