//! The daemons of both hosts, with their files and certificates, in a folder that goes with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_iprp_daemon::Request;
use bumpless_node::{control, key_file};
use bumpless_pki::Authority;
use bumpless_pki::rustls::pki_types::UnixTime;
use serde_json::Value;
use tempfile::TempDir;

use super::hosts::{Hosts, NAMES, interface};
use super::relay::{Copied, Fault};
use super::{LabError, impossible};
use crate::demo::processes::{Process, describe};

const HOSTS: [&str; 2] = ["sender", "receiver"];
const SITE: &str = "lab";
/// Certificates are of no use to anybody afterwards.
const LAST: Duration = Duration::from_secs(86_400);
/// How long daemons and sessions have for coming up.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// First of the ports of flows.
pub const PORT: u16 = 20_000;

/// Two hosts with their daemons.
pub struct Site {
    pub hosts: Hosts,
    daemons: [Option<Process>; 2],
    binary: PathBuf,
    sockets: [PathBuf; 2],
    folder: TempDir,
    stop: Arc<AtomicBool>,
}

impl Site {
    /// Starts everything: `networks` networks, and `flows` ports from [`PORT`] on that are monitored. Ends early when `stop` is set.
    ///
    /// # Errors
    /// What the machine does not permit, or a daemon says.
    pub fn start(
        binary: &Path,
        (networks, flows): (usize, usize),
        seed: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, LabError> {
        Self::start_with(binary, (networks, flows, ""), seed, stop)
    }

    /// The same with `more` in the files of both hosts, which may name the key file `group.key`.
    ///
    /// # Errors
    /// As [`Site::start`].
    pub fn start_with(
        binary: &Path,
        (networks, flows, more): (usize, usize, &str),
        seed: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, LabError> {
        let hosts = Hosts::new(networks, seed)?;
        let folder = tempfile::tempdir().map_err(impossible)?;
        issue(folder.path())?;
        key_file::create(&folder.path().join("group.key")).map_err(impossible)?;
        let mut site = Self {
            hosts,
            daemons: [None, None],
            binary: binary.to_owned(),
            sockets: HOSTS.map(|host| folder.path().join(format!("{host}.sock"))),
            folder,
            stop: Arc::clone(stop),
        };
        for number in 0..HOSTS.len() {
            site.write(number, (networks, flows, more))?;
            site.begin(number)?;
        }
        for number in 0..HOSTS.len() {
            site.wait("the daemons answer", |site| site.status(number).is_some())?;
        }
        Ok(site)
    }

    /// The file of a daemon.
    fn file(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("{}.toml", HOSTS[number]))
    }

    fn write(
        &self,
        number: usize,
        (networks, flows, more): (usize, usize, &str),
    ) -> Result<(), LabError> {
        let host = HOSTS[number];
        let mut text = format!(
            "[host]\nsocket = \"{host}.sock\"\n[security]\ncertificates = \"{host}.iprp\"\n\
             [limits]\nsessions = 64\n"
        );
        for network in 0..networks.min(NAMES.len()) {
            let name = interface(network);
            text += &format!(
                "[[network]]\nind = {}\ninterface = \"{name}\"\n",
                10 + network
            );
        }
        let last = usize::from(PORT) + flows.max(1) - 1;
        text += &format!(
            "[[monitor]]\nprotocol = \"udp\"\nport = \"{PORT}-{last}\"\npackets = \"to\"\n{more}"
        );
        fs::write(self.file(number), text).map_err(impossible)
    }

    /// Starts a daemon that does not run.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn begin(&mut self, number: usize) -> Result<(), LabError> {
        let mut command = Command::new(&self.binary);
        command.args(["iprp", "run"]).arg(self.file(number));
        self.hosts.host(number).put_into(&mut command);
        let process = Process::spawn(command, self.folder.path(), HOSTS[number]);
        self.daemons[number] = Some(process.map_err(impossible)?);
        Ok(())
    }

    /// Ends a daemon, in order or as a crash would.
    pub fn end_one(&mut self, number: usize, is_killed: bool) {
        let Some(process) = self.daemons[number].take() else {
            return;
        };
        match is_killed {
            true => {
                process.kill();
            }
            false => process.stop(),
        }
    }

    /// What a daemon says of itself, the sender's 0, the receiver's 1.
    pub fn status(&self, number: usize) -> Option<Value> {
        let reply = control::request(&self.sockets[number], &Request::Status).ok()?;
        reply["error"].is_null().then_some(reply)
    }

    /// Process number of a daemon.
    pub fn pid(&self, number: usize) -> u32 {
        self.daemons[number].as_ref().map_or(0, Process::id)
    }

    /// Sessions of the sender that copies leave for on `networks` networks.
    pub fn replicated(&self, networks: usize) -> usize {
        let status = self.status(0).unwrap_or_default();
        let sending = status["sending"].as_array().cloned().unwrap_or_default();
        let is_live = |it: &&Value| {
            let all = it["networks"].as_array().map_or(0, Vec::len);
            it["suspended"] == false && all == networks
        };
        sending.iter().filter(is_live).count()
    }

    /// What is wrong with the networks from here on.
    pub fn set(&self, faults: Vec<Fault>) {
        self.hosts.relay.set(faults);
    }

    /// What has become of copies since this was asked last.
    pub fn take(&self) -> Vec<Copied> {
        self.hosts.relay.take()
    }

    /// Waits until `done`, within some seconds.
    ///
    /// # Errors
    /// A daemon has ended, it takes too long, or it was told to stop.
    pub fn wait(
        &mut self,
        what: &str,
        mut done: impl FnMut(&Self) -> bool,
    ) -> Result<(), LabError> {
        let until = Instant::now() + PATIENCE;
        while !done(self) {
            self.check()?;
            if Instant::now() > until {
                return Err(impossible(format_args!(
                    "within {} s it did not happen that {what}",
                    PATIENCE.as_secs()
                )));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// As [`Site::wait`].
    pub fn sleep(&mut self, time: Duration) -> Result<(), LabError> {
        let until = Instant::now() + time;
        loop {
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK));
        }
    }

    fn check(&mut self) -> Result<(), LabError> {
        if self.stop.load(Ordering::Acquire) {
            return Err(LabError::Stopped);
        }
        for daemon in self.daemons.iter_mut().flatten() {
            if let Some(status) = daemon.ended() {
                return Err(impossible(format_args!(
                    "the daemon of the {} has ended ({}): {}",
                    daemon.name,
                    describe(status),
                    daemon.last_words()
                )));
            }
        }
        Ok(())
    }

    /// Ends the daemons in order.
    pub fn end(mut self) {
        for process in self.daemons.iter_mut().filter_map(Option::take) {
            process.stop();
        }
    }
}

/// Certificates of an authority that nobody needs any more.
fn issue(folder: &Path) -> Result<(), LabError> {
    let (place, now) = (folder.join("authority"), UnixTime::now());
    let authority = Authority::create(&place, SITE, LAST, now).map_err(impossible)?;
    for host in HOSTS {
        let name = authority
            .name(&format!("{host}.iprp"))
            .map_err(impossible)?;
        let out = folder.join(name.short());
        authority
            .issue(&name, LAST, now, &out)
            .map_err(impossible)?;
    }
    Ok(())
}
