//! Programs that are built apart, since their libraries are nothing that Bumpless needs (`spec/wan.md`, U-58). They end with
//! their input, so with this process.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;

use super::client::{Heard, Message};

/// How often whoever waits for a program looks whether somebody wants to stop, nanoseconds.
const LOOK_NS: i64 = 50_000_000;
/// How long a program may take to listen, or to have a connection.
const BEGINS: Duration = Duration::from_secs(15);
/// How long it may take after its last message until it tells what came of it.
const ENDS: Duration = Duration::from_secs(15);
/// Between two messages (fifth paper, V-A).
const PERIOD: Duration = Duration::from_millis(50);
/// Most bytes of a line.
const LINE_MAX: usize = 16 << 20;
/// Of what a program says for people, this much of the end is looked at, bytes.
const SAID_MAX: u64 = 1024;
/// How late an answer may be before the program goes to its backup, milliseconds.
const TIMEOUT_MS: &str = "50";

/// A program with both ends.
#[derive(Clone, Debug)]
pub struct Foreign(PathBuf);

/// The server's end, which ends with this value.
#[derive(Debug)]
pub struct Server(#[expect(dead_code, reason = "it is held")] Process);

#[derive(Debug)]
struct Process {
    child: Child,
    /// What it says for people.
    said: File,
}

impl Process {
    /// What went wrong, with the last line of what the program says for people.
    fn with_last_words(&mut self, error: io::Error) -> io::Error {
        let mut said = Vec::new();
        let length = self.said.seek(SeekFrom::End(0)).unwrap_or(0);
        let _ = self
            .said
            .seek(SeekFrom::Start(length.saturating_sub(SAID_MAX)));
        let _ = (&mut self.said).take(SAID_MAX).read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        match said.lines().map(str::trim).rfind(|line| !line.is_empty()) {
            Some(last) => io::Error::new(error.kind(), format!("{error}: {last}")),
            None => error,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Deserialize)]
struct Began {
    began_ns: u64,
}

#[derive(Deserialize)]
struct Told {
    switched_ns: Option<u64>,
    messages: Vec<(u64, u64, Option<u64>)>,
}

impl Told {
    /// Whether it can be: as many messages as were `asked` for, and none that comes back before it leaves.
    fn check(&self, asked: usize) -> io::Result<()> {
        if self.messages.len() != asked {
            let told = self.messages.len();
            let why = format!("it tells of {told} messages, and was asked for {asked}");
            return Err(io::Error::other(why));
        }
        let is_odd = |&(due, sent, answered): &(u64, u64, Option<u64>)| {
            sent < due || answered.is_some_and(|answered| answered < sent)
        };
        match self.messages.iter().position(is_odd) {
            Some(number) => Err(io::Error::other(format!(
                "it says that message {number} left before it was due, or was answered before it left"
            ))),
            None => Ok(()),
        }
    }
}

impl Foreign {
    /// The program of this name in `folder`.
    ///
    /// # Errors
    /// There is none.
    pub fn find(folder: Option<&Path>, name: &str) -> Result<Self, String> {
        let how = format!(
            "`bench/peers/build.sh {name}` makes it, and --peers-dir bench/peers/study names its folder"
        );
        let folder = folder.ok_or_else(|| format!("it takes the program {name}; {how}"))?;
        let program = folder.join(name);
        let program = program.canonicalize();
        program
            .map(Self)
            .map_err(|error| format!("no program {name} in {}: {error}; {how}", folder.display()))
    }

    /// Has it listen at these addresses, on the network and on the backup, in the namespace of the calling thread.
    ///
    /// # Errors
    /// It does not start.
    pub fn serve(&self, port: u16, addresses: [Ipv4Addr; 2]) -> io::Result<Server> {
        let [network, backup] = addresses.map(|it| it.to_string());
        let arguments = ["serve", &network, &port.to_string(), &backup];
        let (mut process, mut lines) = self.start(&arguments)?;
        line(&mut lines, (BEGINS, &AtomicBool::new(false)))
            .map_err(|error| process.with_last_words(error))?;
        Ok(Server(process))
    }

    /// Has it send so many messages from the namespace of the calling thread; `began` is told when the first one is due.
    ///
    /// # Errors
    /// It fails, or somebody wants to stop.
    pub fn call(
        &self,
        [network, backup]: [(SocketAddrV4, SocketAddrV4); 2],
        (asked, after): (usize, Duration),
        began: &Sender<Instant>,
        stop: &AtomicBool,
    ) -> io::Result<Heard> {
        let ends = [network.0.ip(), network.1.ip()].map(ToString::to_string);
        let backup = [backup.0.ip(), backup.1.ip()].map(ToString::to_string);
        let lasts = after + PERIOD * asked as u64 + ENDS;
        let numbers = [
            u64::from(network.1.port()),
            asked as u64,
            after.as_nanos() / 1000,
        ];
        let [port, messages, after] = numbers.map(|it| it.to_string());
        let arguments = [
            "call", &ends[0], &ends[1], &port, &backup[0], &backup[1], &messages, &after,
            TIMEOUT_MS,
        ];
        let (mut process, mut lines) = self.start(&arguments)?;
        let mut line = |patience| {
            line(&mut lines, (patience, stop)).map_err(|error| process.with_last_words(error))
        };
        let first: Began = read(&line(BEGINS)?)?;
        let _ = began.send(Instant::from_nanos(first.began_ns));
        let told: Told = read(&line(lasts)?)?;
        told.check(asked)?;
        let message = |(due, sent, answered): (u64, u64, Option<u64>)| Message {
            due: Instant::from_nanos(due),
            sent: Instant::from_nanos(sent),
            answered: answered.map(Instant::from_nanos),
        };
        Ok(Heard {
            messages: told.messages.into_iter().map(message).collect(),
            switched: told.switched_ns.map(Instant::from_nanos),
        })
    }

    fn start(&self, arguments: &[&str]) -> io::Result<(Process, BufReader<ChildStdout>)> {
        let said = tempfile::tempfile()?;
        let mut child = Command::new(&self.0)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said.try_clone()?)
            .spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((Process { child, said }, BufReader::new(output)))
    }
}

fn read<'a, T: Deserialize<'a>>(line: &'a str) -> io::Result<T> {
    serde_json::from_str(line)
        .map_err(|error| io::Error::other(format!("it says: {line:.100}: {error}")))
}

/// The next line of a program, which has so long for it.
fn line(
    lines: &mut BufReader<ChildStdout>,
    (patience, stop): (Duration, &AtomicBool),
) -> io::Result<String> {
    let until = Clock.now() + patience;
    let mut line = Vec::new();
    loop {
        if lines.buffer().is_empty() {
            wait(lines, until, stop)?;
        }
        let some = lines.fill_buf()?;
        let end = some.iter().position(|&byte| byte == b'\n');
        let taken = end.map_or(some.len(), |end| end + 1);
        line.extend_from_slice(&some[..taken]);
        lines.consume(taken);
        if end.is_some() {
            return String::from_utf8(line).map_err(io::Error::other);
        }
        if taken == 0 || line.len() > LINE_MAX {
            return Err(io::Error::other("the program ended without a whole line"));
        }
    }
}

/// Until there is something to read.
fn wait(lines: &BufReader<ChildStdout>, until: Instant, stop: &AtomicBool) -> io::Result<()> {
    let output = lines.get_ref().as_fd();
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK_NS,
    };
    loop {
        let mut ends = [PollFd::new(&output, PollFlags::IN)];
        if poll(&mut ends, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if Clock.now() > until {
            return Err(io::Error::other(
                "the program said nothing for as long as it had, and was ended",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc::channel;

    /// What comes of a call of a program that does this, for two messages.
    fn call(script: &str, stop: bool) -> io::Result<Heard> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("echo-test");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let foreign = Foreign::find(Some(folder.path()), "echo-test").unwrap();
        let end = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
        let ways = [(end, end); 2];
        let (began, _first) = channel();
        loop {
            let heard = foreign.call(ways, (2, Duration::ZERO), &began, &AtomicBool::new(stop));
            match heard {
                // Another test's process has what was open for writing, until it is a program of its own.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                heard => return heard,
            }
        }
    }

    fn why(script: &str) -> String {
        call(script, false).unwrap_err().to_string()
    }

    const BEGAN: &str = r#"echo '{"began_ns": 5}'"#;

    #[test]
    fn what_a_program_tells_is_taken_as_it_is() {
        let heard = call(
            &format!(
                r#"{BEGAN}; echo '{{"switched_ns": 7, "messages": [[5, 6, 9], [8, 8, null]]}}'"#
            ),
            false,
        )
        .unwrap();
        assert_eq!(heard.messages.len(), 2);
        assert_eq!(heard.switched, Some(Instant::from_nanos(7)));
        assert_eq!(heard.messages[1].answered, None);
    }

    #[test]
    fn a_program_that_tells_what_cannot_be_is_an_error() {
        let few = format!(r#"{BEGAN}; echo '{{"switched_ns": null, "messages": [[5, 6, 9]]}}'"#);
        assert!(why(&few).contains("1 messages"), "{}", why(&few));
        for odd in ["[[5, 4, 9], [8, 8, 9]]", "[[5, 6, 5], [8, 8, 9]]"] {
            let script = format!(r#"{BEGAN}; echo '{{"switched_ns": null, "messages": {odd}}}'"#);
            assert!(why(&script).contains("message 0"), "{}", why(&script));
        }
        assert!(why("echo nonsense").contains("nonsense"));
    }

    #[test]
    fn a_program_that_ends_early_is_told_with_its_last_words() {
        let said = why("echo first >&2; echo 'no way to the server' >&2; exit 1");
        assert!(said.ends_with(": no way to the server"), "{said}");
        let silent = why("exit 1");
        assert!(silent.ends_with("without a whole line"), "{silent}");
    }

    #[test]
    fn half_a_line_does_not_hold_up_whoever_wants_to_stop() {
        let stopped = call("printf '{\"began'; exec sleep 100", true).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
    }
}
