//! Programs that are built apart, since their libraries are nothing that Bumpless needs (`spec/wan.md`, U-58). They end with
//! their input, so with this process.

use std::io::{self, BufRead, BufReader, Read};
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
const LINE_MAX: u64 = 16 << 20;
/// How late an answer may be before the program goes to its backup, milliseconds.
const TIMEOUT_MS: &str = "50";

/// A program with both ends.
#[derive(Clone, Debug)]
pub struct Foreign(PathBuf);

/// The server's end, which ends with this value.
#[derive(Debug)]
pub struct Server(#[expect(dead_code, reason = "it is held")] Process);

#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
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
        let (process, mut lines) = self.start(&arguments)?;
        line(&mut lines, (BEGINS, &AtomicBool::new(false)))?;
        Ok(Server(process))
    }

    /// Has it send so many messages from the namespace of the calling thread; `began` is told when the first one is due.
    ///
    /// # Errors
    /// It fails, or somebody wants to stop.
    pub fn call(
        &self,
        [network, backup]: [(SocketAddrV4, SocketAddrV4); 2],
        (messages, after): (usize, Duration),
        began: &Sender<Instant>,
        stop: &AtomicBool,
    ) -> io::Result<Heard> {
        let ends = [network.0.ip(), network.1.ip()].map(ToString::to_string);
        let backup = [backup.0.ip(), backup.1.ip()].map(ToString::to_string);
        let lasts = after + PERIOD * messages as u64 + ENDS;
        let numbers = [
            u64::from(network.1.port()),
            messages as u64,
            after.as_nanos() / 1000,
        ];
        let [port, messages, after] = numbers.map(|it| it.to_string());
        let arguments = [
            "call", &ends[0], &ends[1], &port, &backup[0], &backup[1], &messages, &after,
            TIMEOUT_MS,
        ];
        let (_process, mut lines) = self.start(&arguments)?;
        let first: Began = read(&line(&mut lines, (BEGINS, stop))?)?;
        let _ = began.send(Instant::from_nanos(first.began_ns));
        let told: Told = read(&line(&mut lines, (lasts, stop))?)?;
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
        let mut child = Command::new(&self.0)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((Process(child), BufReader::new(output)))
    }
}

fn read<'a, T: Deserialize<'a>>(line: &'a str) -> io::Result<T> {
    serde_json::from_str(line)
        .map_err(|error| io::Error::other(format!("it says: {line:.100}: {error}")))
}

/// The next line of a program, which writes lines whole and has so long for it.
fn line(
    lines: &mut BufReader<ChildStdout>,
    (patience, stop): (Duration, &AtomicBool),
) -> io::Result<String> {
    let until = Clock.now() + patience;
    while lines.buffer().is_empty() {
        if Clock.now() > until {
            let seconds = patience.as_nanos() / 1_000_000_000;
            let why = format!("the program said nothing for {seconds} s, and was ended");
            return Err(io::Error::other(why));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let output = lines.get_ref().as_fd();
        let mut ends = [PollFd::new(&output, PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK_NS,
        };
        if poll(&mut ends, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            break;
        }
    }
    let mut line = String::new();
    match lines.by_ref().take(LINE_MAX).read_line(&mut line)? {
        0 => Err(io::Error::other("the program ended without a word")),
        _ => Ok(line),
    }
}
