//! The processes of a run. Each is held by its handle and ended by it, whatever happens.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal,
};

/// Most bytes of a process's last words that an error repeats.
const WORDS_MAX: u64 = 2_000;
/// Of them, most lines where a sentence ends with them.
const LINES_MAX: usize = 5;
/// How long a process has to end in order.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A process that ends with this value.
#[derive(Debug)]
pub struct Process {
    /// Its name in messages.
    pub name: String,
    child: Child,
    words: PathBuf,
}

impl Process {
    /// Starts `binary` with `arguments`; what it says goes to `NAME.out` in `directory`.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(
        binary: &Path,
        directory: &Path,
        name: &str,
        arguments: &[String],
    ) -> io::Result<Self> {
        let mut command = Command::new(binary);
        command.args(arguments);
        Self::spawn(command, directory, name)
    }

    /// Starts `command`; what it says goes to `NAME.out` in `directory`.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn(command: Command, directory: &Path, name: &str) -> io::Result<Self> {
        let words = directory.join(format!("{name}.out"));
        let out = appended(&words)?;
        Self::launch(command, (out.try_clone()?, out), (name, words))
    }

    /// The same, but what it says for people goes to `NAME.err`, of which its last words are; `NAME.out` is for programs.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn_apart(command: Command, directory: &Path, name: &str) -> io::Result<Self> {
        let out = appended(&directory.join(format!("{name}.out")))?;
        let words = directory.join(format!("{name}.err"));
        Self::launch(command, (out, appended(&words)?), (name, words))
    }

    fn launch(
        mut command: Command,
        (out, err): (File, File),
        (name, words): (&str, PathBuf),
    ) -> io::Result<Self> {
        let parent = Some(getpid());
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        // A Ctrl-C at the terminal is for the demonstration, which then ends its processes in order.
        command.process_group(0);
        // SAFETY: between fork and exec only async-signal-safe calls are made (prctl, getppid), and
        // nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                // Even a demonstration that is killed leaves no process behind.
                set_parent_process_death_signal(Some(Signal::KILL))?;
                match getppid() == parent {
                    true => Ok(()),
                    false => Err(Errno::SRCH.into()),
                }
            });
        }
        Ok(Self {
            name: name.into(),
            child: command.spawn()?,
            words,
        })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, if it has not ended.
    pub fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            // The child has not been waited for, so its number is still its own.
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it as a crash would, and says when that was ordered (nanoseconds of CLOCK_BOOTTIME).
    pub fn kill(mut self) -> u64 {
        let at = bumpless_net_linux::Clock.now().as_nanos();
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        at
    }

    /// Asks it to end, and ends it if it does not.
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        let since = Instant::now();
        while self.ended().is_none() && since.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The last of what it said.
    pub fn last_words(&self) -> String {
        tail(&self.words).unwrap_or_default()
    }

    /// The last lines of what it said.
    pub fn last_lines(&self) -> String {
        let words = self.last_words();
        let lines: Vec<&str> = words.lines().collect();
        lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn appended(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(WORDS_MAX);
    file.seek(SeekFrom::Start(from))?;
    let mut text = Vec::new();
    file.take(WORDS_MAX).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

/// How a process ended, for people.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(directory: &Path, script: &str) -> Process {
        let arguments = ["-c".to_owned(), script.to_owned()];
        Process::start(Path::new("/bin/sh"), directory, "test", &arguments).unwrap()
    }

    fn runs(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn no_process_outlives_its_handle_not_even_one_that_will_not_end() {
        let directory = tempfile::tempdir().unwrap();
        let process = start(
            directory.path(),
            "trap '' TERM; while :; do sleep 0.01; done",
        );
        let pid = process.child.id();
        assert!(runs(pid));
        drop(process);
        assert!(!runs(pid));
        let process = start(directory.path(), "exec sleep 60");
        let pid = process.child.id();
        process.stop();
        assert!(!runs(pid));
    }

    #[test]
    fn what_a_process_said_before_it_failed_can_be_told() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = start(directory.path(), "echo cannot bind >&2; exit 3");
        while process.ended().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(describe(process.ended().unwrap()), "exit status 3");
        assert_eq!(process.last_words(), "cannot bind");
    }
}
