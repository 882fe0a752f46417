//! One process of a peer: started, asked, watched, and ended with its handle.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};
use serde::de::DeserializeOwned;

use super::{Trouble, go_on};
use crate::conversation::Answer;

/// How often a wait looks whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How long a process may take to end by itself.
const FAREWELL: Duration = Duration::from_millis(1500);

/// A running process that speaks the conversation.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    words: Receiver<String>,
}

/// What a process has taken so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of its threads, nanoseconds.
    pub cpu_ns: u64,
    /// Most resident memory, bytes.
    pub peak_bytes: u64,
}

impl Process {
    /// Starts `command`. It is killed if the calling thread ends without ending it.
    ///
    /// # Errors
    /// The program cannot be run.
    pub fn start(mut command: Command) -> Result<Self, String> {
        // SAFETY: this is a plain system call, allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                Ok(())
            })
        };
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            // Ctrl-C is for the bench, which ends its peers when it has noted what it has.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run '{program}': {error}"))?;
        let lines = reader(child.stdout.take());
        let words = reader(child.stderr.take());
        Ok(Self {
            input: child.stdin.take(),
            child,
            lines,
            words,
        })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes an order.
    ///
    /// # Errors
    /// The process has ended.
    pub fn order(&mut self, order: &str) -> Result<(), Trouble> {
        let written = self.input.as_mut().map(|input| writeln!(input, "{order}"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Waits for the next answer.
    ///
    /// # Errors
    /// None came within `limit`, the process has ended or talks nonsense, or the user wants to stop.
    pub fn answer(&mut self, limit: Duration, stop: &AtomicBool) -> Result<Answer, Trouble> {
        self.says(limit, stop)
    }

    /// Waits for the next line and reads it as JSON.
    ///
    /// # Errors
    /// As [`Process::answer`].
    pub fn says<T: DeserializeOwned>(
        &mut self,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<T, Trouble> {
        let until = Instant::now() + limit;
        loop {
            go_on(stop)?;
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(LOOK)) {
                Ok(line) => {
                    return serde_json::from_str(&line).map_err(|error| {
                        Trouble::Failed(format!("'{line}' is no answer: {error}"))
                    });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(Trouble::Failed(format!(
                        "no answer within {} s",
                        limit.as_secs()
                    )));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Why it ended, in its own words as far as it had any.
    fn ended(&mut self) -> Trouble {
        let status = self
            .child
            .wait()
            .map_or_else(|error| error.to_string(), |status| status.to_string());
        let words: Vec<String> = self.words.iter().collect();
        let last = words
            .last()
            .map_or("", String::as_str)
            .trim_start_matches("bumpless: ");
        Trouble::Failed(
            format!("the program ended ({status}) {last}")
                .trim_end()
                .to_owned(),
        )
    }

    /// What it has taken so far.
    pub fn usage(&self) -> Usage {
        let id = self.child.id();
        Usage {
            cpu_ns: cpu_ns(id).unwrap_or(0),
            peak_bytes: peak_bytes(id).unwrap_or(0),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.input.take();
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reader(stream: Option<impl std::io::Read + Send + 'static>) -> Receiver<String> {
    let (lines, received) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
    }
    received
}

/// Processor time of all its threads by the scheduler's own account.
fn cpu_ns(id: u32) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).ok()?;
    let spent = threads.flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(spent.sum())
}

fn peak_bytes(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Process::start(command).unwrap()
    }

    #[test]
    fn an_end_or_silence_or_nonsense_is_told_with_its_cause() {
        let never = AtomicBool::new(false);
        let ask = |script: &str, limit| match shell(script).answer(limit, &never) {
            Err(Trouble::Failed(reason)) => reason,
            other => panic!("{other:?}"),
        };
        let long = Duration::from_secs(20);
        let ended = ask("echo out of wire >&2; exit 3", long);
        assert!(
            ended.contains("exit status: 3") && ended.contains("out of wire"),
            "{ended}"
        );
        assert!(ask("echo hello", long).contains("hello"));
        assert!(ask("read x", Duration::ZERO).contains("no answer"));
    }

    #[test]
    fn the_user_need_not_wait_for_an_answer() {
        let stop = AtomicBool::new(true);
        let mut process = shell("read x");
        assert_eq!(
            process.answer(Duration::from_secs(60), &stop),
            Err(Trouble::Stopped)
        );
    }

    #[test]
    fn a_process_ends_with_its_handle_even_if_it_will_not() {
        let process = shell("trap '' TERM; while :; do sleep 0.02; done");
        let id = process.child.id();
        assert!(process.usage().peak_bytes > 0);
        drop(process);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }
}
