//! What can be measured, and its two processes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use super::Trouble;
use super::process::{Process, Usage};
use crate::conversation::{Answer, Order};
use crate::network::filter::Datagrams;
use crate::network::{Lab, Place};
use crate::peer::{Kind, Side};

/// How long a process may take until it is ready, and an order beyond its own time.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A protocol under measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name in results.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// What it is, if it is one of this workspace.
    pub own: Option<(Kind, bool)>,
    /// Networks that it uses.
    pub networks: usize,
}

impl Peer {
    /// The peers of this workspace; `program` is the `bumpless` command.
    pub fn own(program: &Path) -> Vec<Self> {
        [
            ("transfer", Kind::Transfer, false, 1),
            ("transfer-replicate", Kind::Transfer, false, 2),
            ("transfer-spread", Kind::Transfer, true, 2),
            ("transfer-busy", Kind::TransferBusy, false, 1),
            ("tcp", Kind::Tcp, false, 1),
            ("tcp-tuned", Kind::TcpTuned, false, 1),
            ("mptcp", Kind::Mptcp, false, 2),
            ("transfer-protected", Kind::TransferProtected, false, 1),
            ("transfer-checksum", Kind::TransferChecksum, false, 1),
            ("transfer-tagged", Kind::TransferTagged, false, 1),
            ("transfer-sealed", Kind::TransferSealed, false, 1),
            ("transfer-chacha", Kind::TransferChacha, false, 1),
            ("tcp-tls", Kind::TcpTls, false, 1),
        ]
        .map(|(name, kind, spread, networks)| Self {
            name: name.into(),
            program: program.to_owned(),
            own: Some((kind, spread)),
            networks,
        })
        .into()
    }

    /// The programs in `directory`, by name; those in `multipath` use both networks.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn others(directory: &Path, multipath: &[String]) -> Result<Vec<Self>, String> {
        let refused = |error| {
            format!(
                "cannot read the programs in {}: {error}",
                directory.display()
            )
        };
        let mut peers: Vec<Self> = std::fs::read_dir(directory)
            .map_err(refused)?
            .flatten()
            .filter(|entry| is_program(&entry.path()))
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                Self {
                    networks: if multipath.contains(&name) { 2 } else { 1 },
                    program: entry.path(),
                    own: None,
                    name,
                }
            })
            .collect();
        peers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(peers)
    }

    /// Whether it is ours.
    pub fn is_ours(&self) -> bool {
        self.own.is_some_and(|(kind, _)| kind.is_ours())
    }

    /// Whether it is measured only where it is asked for by name: what protection costs, and what a processor of one's own
    /// gives, are questions of their own.
    pub fn is_on_demand(&self) -> bool {
        let is_one = |kind: Kind| {
            kind.is_protected_transfer() || matches!(kind, Kind::TransferBusy | Kind::TcpTls)
        };
        self.own.is_some_and(|(kind, _)| is_one(kind))
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// How a pair of processes is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Number of channels.
    pub channels: u32,
    /// Whether each has a connection of its own.
    pub many: bool,
    /// Largest state, bytes.
    pub max_size: usize,
    /// What a network carries, Mbit/s; 0 = not limited. Only ours is told.
    pub bandwidth_mbit: u32,
    /// The channels' deadlines, microseconds. Only ours is told.
    pub deadlines_us: Vec<u64>,
}

/// Sender and receiver of a peer, connected.
pub struct Pair {
    receiver: Process,
    sender: Process,
    /// Version that it told.
    pub version: String,
    /// Settings that it told.
    pub settings: String,
}

impl Pair {
    /// Starts both processes and waits until they are connected.
    ///
    /// # Errors
    /// One of them cannot be run or does not become ready; or the user wants to stop.
    pub fn start(
        place: &Place,
        peer: &Peer,
        setup: &Setup,
        stop: &AtomicBool,
    ) -> Result<Self, Trouble> {
        let datagrams = if peer.is_ours() {
            Datagrams::Ours
        } else {
            Datagrams::Others
        };
        for filter in place.lab().into_iter().flat_map(Lab::filters) {
            filter.expect(datagrams);
        }
        // A port of its own: the last pair's may linger.
        static PORT: AtomicU16 = AtomicU16::new(0);
        let port = 20_000 + PORT.fetch_add(1, Ordering::Relaxed) % 10_000;
        let mut receiver = Process::start(command(place, peer, setup, Side::Receive, port))?;
        ready(&mut receiver, stop)?;
        let mut sender = Process::start(command(place, peer, setup, Side::Send, port))?;
        let (version, settings) = ready(&mut sender, stop)?;
        Ok(Self {
            receiver,
            sender,
            version,
            settings,
        })
    }

    /// Gives an order and waits for its answer, for `time` beyond what is usual.
    ///
    /// # Errors
    /// A process has ended or is silent; or the user wants to stop.
    pub fn ask(
        &mut self,
        order: &Order,
        time: Duration,
        stop: &AtomicBool,
    ) -> Result<Answer, Trouble> {
        self.order(order)?;
        self.sender.answer(time + TIMEOUT, stop)
    }

    /// Gives an order.
    ///
    /// # Errors
    /// The sender has ended.
    pub fn order(&mut self, order: &Order) -> Result<(), Trouble> {
        self.sender.order(&order.to_string())
    }

    /// Waits for the answer to an order.
    ///
    /// # Errors
    /// As [`Pair::ask`].
    pub fn answer(&mut self, stop: &AtomicBool) -> Result<Answer, Trouble> {
        self.sender.answer(TIMEOUT, stop)
    }

    /// Transfers one state; nanoseconds, or why it failed.
    ///
    /// # Errors
    /// As [`Pair::ask`].
    pub fn transfer(
        &mut self,
        size: usize,
        stop: &AtomicBool,
    ) -> Result<Result<u64, String>, Trouble> {
        match self.ask(&Order::Transfer(size), Duration::ZERO, stop)? {
            Answer::Done { nanoseconds } => Ok(Ok(nanoseconds)),
            Answer::Failed { reason } => Ok(Err(reason)),
            other => Err(Trouble::Failed(format!(
                "{other:?} is no answer to 'transfer'"
            ))),
        }
    }

    /// The process ids of sender and receiver.
    pub fn ids(&self) -> [u32; 2] {
        [self.sender.id(), self.receiver.id()]
    }

    /// What sender and receiver have taken so far.
    pub fn usage(&self) -> [Usage; 2] {
        [self.sender.usage(), self.receiver.usage()]
    }
}

fn ready(process: &mut Process, stop: &AtomicBool) -> Result<(String, String), Trouble> {
    match process.answer(TIMEOUT, stop)? {
        Answer::Ready {
            version, settings, ..
        } => Ok((version, settings)),
        Answer::Failed { reason } => Err(Trouble::Failed(reason)),
        other => Err(Trouble::Failed(format!("{other:?} before it was ready"))),
    }
}

fn command(place: &Place, peer: &Peer, setup: &Setup, side: Side, port: u16) -> Command {
    let list = |side| {
        let addresses = place.addresses(side, peer.networks);
        let words: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        words.join(",")
    };
    let mut command = place.command(side, &peer.program);
    if let Some((kind, _)) = peer.own {
        command.args(["bench", "peer", kind.name()]);
    }
    match side {
        Side::Receive => command.args(["receive", "--listen", &list(Side::Receive)]),
        Side::Send => {
            let (to, from) = (list(Side::Receive), list(Side::Send));
            command.args(["send", "--to", &to, "--from", &from])
        }
    };
    command
        .args(["--port", &port.to_string()])
        .args(["--channels", &setup.channels.to_string()])
        .args(["--connections", if setup.many { "many" } else { "single" }])
        .args(["--max-size", &setup.max_size.to_string()]);
    if let Some((_, spread)) = peer.own.filter(|(kind, _)| kind.is_ours()) {
        if side == Side::Receive {
            command.args(["--partner", &list(Side::Send)]);
        }
        if spread {
            command.arg("--spread");
        }
        command.args(["--bandwidth-mbit", &setup.bandwidth_mbit.to_string()]);
        if !setup.deadlines_us.is_empty() {
            let words: Vec<String> = setup.deadlines_us.iter().map(u64::to_string).collect();
            command.args(["--deadlines-us", &words.join(",")]);
        }
    }
    command
}
