//! Those that are a program on each end, built apart (bench/peers/iprp): SRT's broadcast group and kronosnet. Both programs speak alike.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;

use crate::demo::processes::Process;
use crate::iprp::hosts::{Hosts, address};
use crate::iprp::torture::TortureOptions;
use crate::iprp::torture::known::{
    Attempt, Contestant, LEN, RATE, Stream, Trouble, befall, programs, second_route,
};
use crate::iprp::{LabError, impossible};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of its file.
    pub file: &'static str,
    /// What it is, for who does not have it.
    pub what: &'static str,
    /// What its figures mean.
    pub note: &'static str,
}

/// SRT's.
pub const SRT: Program = Program {
    file: "srt-group",
    what: "SRT with bonding",
    note: "its latency is 120 ms, its default: everything comes that late",
};
/// That of kronosnet.
pub const KNET: Program = Program {
    file: "knet-stream",
    what: "a stream over kronosnet",
    note: "both links active, timers as corosync sets them by default",
};

/// The port of the receiving one.
const PORT: u16 = 20_200;
/// For links to come up on both networks, and for what is on its way at the end.
const CONNECT: Duration = Duration::from_millis(1_500);
const SETTLE: Duration = Duration::from_secs(1);
/// A link carries the stream if so many frames leave in that time, of 250; it is looked so often.
const WINDOW: Duration = Duration::from_millis(500);
const CARRIES: u64 = 150;
const WINDOWS: u32 = 6;
/// Numbers of a sending program that begins anew go on from here.
const AGAIN_FROM: u32 = 1 << 20;

struct Pair {
    // They end before what they run in.
    sender: Option<Process>,
    receiver: Option<Process>,
    hosts: Hosts,
    program: PathBuf,
    folder: TempDir,
    stop: Arc<AtomicBool>,
    lives: u32,
}

impl Pair {
    fn start(&self, host: usize, name: &str, more: &[String]) -> Result<Process, LabError> {
        let mut command = Command::new(&self.program);
        command.args(more);
        self.hosts.host(host).put_into(&mut command);
        Process::spawn(command, self.folder.path(), name).map_err(impossible)
    }

    /// Waits until both links carry the stream, and it arrives; the inner error says that it does not.
    fn connected(&mut self) -> Result<Result<(), String>, LabError> {
        self.sleep(CONNECT - WINDOW)?;
        let mut left = Vec::new();
        for _ in 0..WINDOWS {
            self.hosts.relay.tally();
            self.sleep(WINDOW)?;
            left = self.hosts.relay.tally().iter().map(|it| it.left).collect();
            let carries = left.iter().all(|left| *left > CARRIES);
            let speak = ["sender", "receiver"].iter();
            let mut speak = speak.map(|name| read(&self.said(name)).next().is_some());
            if carries && speak.all(|speaks| speaks) {
                return Ok(Ok(()));
            }
        }
        let words = ["sender", "receiver"].map(|name| {
            let said = self.said(name);
            said.lines().last().unwrap_or("nothing").to_owned()
        });
        Ok(Err(format!(
            "it did not come up on both networks (frames in {} ms: {left:?}); do it again; sender: {}; receiver: {}",
            WINDOW.as_millis(),
            words[0],
            words[1]
        )))
    }

    fn said(&self, name: &str) -> String {
        let path = self.folder.path().join(format!("{name}.out"));
        std::fs::read_to_string(path).unwrap_or_default()
    }
}

impl Attempt for Pair {
    fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    fn sleep(&mut self, time: Duration) -> Result<(), LabError> {
        super::sleep(time, &self.stop)
    }

    fn end_sender(&mut self) -> Result<(), LabError> {
        if let Some(sender) = self.sender.take() {
            sender.kill();
        }
        Ok(())
    }

    fn begin_sender(&mut self) -> Result<(), LabError> {
        let [from, to] = addresses();
        let words = [
            "send".to_owned(),
            from,
            to,
            PORT.to_string(),
            LEN.to_string(),
            (1_000_000 / RATE).to_string(),
            (self.lives * AGAIN_FROM).to_string(),
        ];
        self.lives += 1;
        self.sender = Some(self.start(0, "sender", &words)?);
        Ok(())
    }
}

/// Those of the sending host and of the receiving one.
fn addresses() -> [String; 2] {
    [0, 1].map(|host| {
        let all = [0, 1].map(|network| address(network, host).to_string());
        all.join(",")
    })
}

/// Numbers in the lines of `said`: a message's, when it was sent or came.
fn read(said: &str) -> impl Iterator<Item = (u32, u64)> {
    said.lines().filter_map(|line| {
        let (number, at) = line.split_once(' ')?;
        Some((number.parse().ok()?, at.parse().ok()?))
    })
}

/// Its version, or why it cannot be had.
fn version(file: &str, program: &Path) -> Result<String, String> {
    let output = Command::new(program).arg("version").output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("there is no {file} in that folder: bench/peers/iprp/build.sh builds it")
        }
        _ => format!("cannot run {file}: {error}"),
    })?;
    let words = |said: &[u8]| String::from_utf8_lossy(said).trim().to_owned();
    match output.status.success() {
        true => Ok(words(&output.stdout)),
        false => Err(format!(
            "{file} version fails ({}): {}; bench/peers/iprp/build.sh builds it anew",
            output.status,
            words(&output.stderr)
        )),
    }
}

/// What becomes of the stream with `it`, which the table calls `name`; the inner error says why it cannot be had here.
///
/// # Errors
/// The machine does not permit it, or it was told to stop.
pub fn attempt(
    (name, it): (&str, Program),
    options: &TortureOptions,
    trouble: Trouble,
) -> Result<Result<Contestant, String>, LabError> {
    let Program { file, what, note } = it;
    let Some(program) = programs(options).map(|folder| folder.join(file)) else {
        return Ok(Err(format!(
            "{what} is built apart: bench/peers/iprp/build.sh, then --peers bench/peers/iprp/bin"
        )));
    };
    let version = match version(file, &program) {
        Ok(version) => version,
        Err(why) => return Ok(Err(why)),
    };
    let mut pair = Pair {
        hosts: Hosts::new(2, options.seed)?,
        program,
        folder: tempfile::tempdir().map_err(impossible)?,
        stop: Arc::clone(&options.stop),
        sender: None,
        receiver: None,
        lives: 0,
    };
    second_route(&pair.hosts)?;
    let [from, to] = addresses();
    let listen = ["receive".to_owned(), PORT.to_string(), to, from];
    pair.receiver = Some(pair.start(1, "receiver", &listen)?);
    pair.sleep(CONNECT / 5)?;
    pair.begin_sender()?;
    if let Err(why) = pair.connected()? {
        return Ok(Err(why));
    }
    // What was sent while links came up is not counted.
    let first = read(&pair.said("sender")).map(|it| it.0).max();
    pair.hosts.relay.set(trouble.at_first().to_vec());
    let befell = befall(&mut pair, trouble)?;
    let ended = pair.sender.as_mut().and_then(Process::ended).is_some();
    let end = bumpless_net_linux::Clock.now().as_nanos();
    pair.sleep(SETTLE)?;
    pair.end_sender()?;
    drop(pair.receiver.take());
    let mut stream = Stream {
        sent: read(&pair.said("sender")).collect(),
        befell,
        ..Stream::default()
    };
    stream
        .sent
        .retain(|number, at| first.is_none_or(|first| *number > first) && *at < end);
    if stream.sent.is_empty() {
        let words = pair.said("sender");
        let last = words.lines().last().unwrap_or("it says nothing").to_owned();
        return Ok(Err(format!(
            "its program has sent nothing; do it again: {last}"
        )));
    }
    for (number, at) in read(&pair.said("receiver")) {
        stream.came.entry(number).or_insert((at, 0)).1 += 1;
    }
    let mut it = stream.judged(name, &version);
    it.note = note.into();
    if ended {
        it.held = false;
        it.note = "the connection was lost: the sending program has ended".into();
    }
    Ok(Ok(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_of_numbers_are_read() {
        let said = "1 500\nerror: 7 8\n2 x\n3 900\n4";
        assert_eq!(read(said).collect::<Vec<_>>(), [(1, 500), (3, 900)]);
    }
}
