//! The real programs of a run: two nodes, two witnesses and the plant, each a process of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use bumpless_controller::plant::log::Line;
use bumpless_node::control::{self, Request};
use bumpless_node::key_file;
use serde_json::Value;

use super::TortureError;
use super::configuration::KEY;
use super::hosts::{Hosts, Place};
use super::ledger::{Count, Ledger};
use super::tail::Tail;
use crate::demo::configuration::{NETWORKS, NODES, PRIORITY, TIME_SCALE};
use crate::demo::processes::Process;
use crate::runlog::Write;

/// Longest lease that the witnesses grant; they stay silent for so long after their start.
const LONGEST_LEASE_MS: u32 = 200;
/// How long the plant may take to listen.
const PLANT_TIMEOUT: Duration = Duration::from_secs(10);

/// The processes; they end with this value.
pub struct Pair<'a> {
    binary: &'a Path,
    /// The computers that they run on.
    pub hosts: &'a Hosts,
    directory: PathBuf,
    /// Whether messages are open.
    is_open: bool,
    nodes: [Node; 2],
    witnesses: Vec<Process>,
    plant: Option<Process>,
    plant_log: Tail,
    plants: usize,
    ledger: Ledger,
    /// What was not understood of logs that have been read to their end, or was not there.
    holes: u64,
    /// Whether logs of processes that have ended stay.
    pub keep_logs: bool,
}

struct Node {
    process: Option<Process>,
    /// The log of the process that runs, and those of earlier ones that have not been read to their end.
    logs: Vec<Tail>,
    starts: usize,
}

/// A line of a node's event log.
#[derive(Clone, Debug)]
pub struct NodeEvent {
    /// Position of the node.
    pub node: usize,
    /// When (nanoseconds of CLOCK_BOOTTIME).
    pub time_ns: u64,
    /// The whole line.
    pub line: Value,
}

impl NodeEvent {
    /// A field that is text; empty if it is not there.
    pub fn text(&self, field: &str) -> &str {
        self.line[field].as_str().unwrap_or_default()
    }
}

/// What a node answers about the one group.
#[derive(Clone, Debug)]
pub struct View(pub Value);

impl View {
    /// A field of the group.
    pub fn group(&self, field: &str) -> &Value {
        &self.0["groups"][0][field]
    }

    /// The role.
    pub fn role(&self) -> &str {
        self.group("role").as_str().unwrap_or_default()
    }

    /// The moment of which it speaks.
    pub fn of_ns(&self) -> u64 {
        let age_ms = self.0["snapshot_age_ms"].as_f64().unwrap_or_default();
        let told_ns = self.0["time_ns"].as_u64().unwrap_or_default();
        told_ns.saturating_sub((age_ms * 1e6) as u64)
    }
}

impl<'a> Pair<'a> {
    /// Starts everything with the configuration `text`, in which messages are open or not; files go to `directory`,
    /// which is made.
    ///
    /// # Errors
    /// A file cannot be written or a process not be started.
    pub fn start(
        binary: &'a Path,
        hosts: &'a Hosts,
        directory: PathBuf,
        (text, is_open): (&str, bool),
    ) -> Result<Self, TortureError> {
        let fail = |error| TortureError::system(directory.display().to_string(), error);
        fs::create_dir_all(&directory).map_err(fail)?;
        fs::write(directory.join("pair.toml"), text).map_err(fail)?;
        key_file::create(&directory.join(KEY)).map_err(|error| fail(io::Error::other(error)))?;
        let node = || Node {
            process: None,
            logs: Vec::new(),
            starts: 0,
        };
        let mut pair = Self {
            binary,
            hosts,
            plant_log: Tail::new(PathBuf::new()),
            directory,
            is_open,
            nodes: [node(), node()],
            witnesses: Vec::new(),
            plant: None,
            plants: 0,
            ledger: Ledger::default(),
            holes: 0,
            keep_logs: true,
        };
        pair.start_everything()?;
        Ok(pair)
    }

    /// Ends everything at once and starts it again, as if for the first time.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_anew(&mut self) -> Result<(), TortureError> {
        for node in 0..2 {
            self.kill_node(node);
        }
        self.kill_plant();
        self.witnesses.clear();
        self.take_events();
        self.ledger = Ledger::default();
        self.start_everything()
    }

    fn start_everything(&mut self) -> Result<(), TortureError> {
        let addresses = Hosts::addresses();
        for (network, address) in addresses.witnesses.iter().enumerate() {
            let line = format!(
                "witness --listen {address} --longest-lease-ms {LONGEST_LEASE_MS} --priority {PRIORITY}"
            );
            let name = format!("witness-{}", NETWORKS[network]);
            let key = self.path(KEY).display().to_string();
            let security: &[&str] = match self.is_open {
                true => &["--open"],
                false => &["--key", &key],
            };
            let arguments = line.split(' ').chain(security.iter().copied());
            let witness = self.process(Place::Witness(network), &name, arguments)?;
            self.witnesses.push(witness);
        }
        self.start_plant()?;
        (0..2).try_for_each(|node| self.start_node(node, &self.config()))
    }

    fn process<'b>(
        &self,
        place: Place,
        name: &str,
        arguments: impl IntoIterator<Item = &'b str>,
    ) -> Result<Process, TortureError> {
        let mut command = Command::new(self.binary);
        command.args(arguments);
        self.hosts.put(place, &mut command);
        Process::spawn(command, &self.directory, name)
            .map_err(|error| TortureError::system(name, error))
    }

    /// A file of this pair.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The right configuration.
    pub fn config(&self) -> PathBuf {
        self.path("pair.toml")
    }

    /// Starts the plant, which has forgotten everything, and waits until it listens.
    ///
    /// # Errors
    /// It does not.
    pub fn start_plant(&mut self) -> Result<(), TortureError> {
        self.plants += 1;
        let name = format!("plant.{}", self.plants);
        let log = self.path(&format!("{name}.jsonl"));
        let line = format!(
            "plant --listen {} --check-epoch --time-scale {TIME_SCALE} --priority {PRIORITY} --log {}",
            Hosts::addresses().plant,
            log.display()
        );
        let mut plant = self.process(Place::Field, &name, line.split(' '))?;
        let until = std::time::Instant::now() + PLANT_TIMEOUT;
        while !plant.last_words().contains("listens") {
            if let Some(status) = plant.ended() {
                let how = crate::demo::processes::describe(status);
                return Err(TortureError::Ended(name, how, plant.last_words()));
            }
            if std::time::Instant::now() > until {
                return Err(TortureError::Ended(
                    name,
                    "it does not listen".into(),
                    plant.last_words(),
                ));
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.plant = Some(plant);
        self.plant_log = Tail::new(log);
        Ok(())
    }

    /// Ends the plant as a crash would. Take its writes first.
    pub fn kill_plant(&mut self) {
        self.plant.take().map(Process::kill);
    }

    /// Starts a node by the configuration at `config`, with a log of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_node(&mut self, node: usize, config: &Path) -> Result<(), TortureError> {
        self.nodes[node].starts += 1;
        let name = NODES[node];
        let log = self.path(&format!("{name}.{}.jsonl", self.nodes[node].starts));
        let (config, log_text) = (config.display().to_string(), log.display().to_string());
        let arguments = ["run", &config, "--node", name, "--log", &log_text];
        let process = self.process(Place::Node(node), name, arguments)?;
        self.nodes[node].process = Some(process);
        self.nodes[node].logs.push(Tail::new(log));
        Ok(())
    }

    /// Ends a node as a crash would, and says when.
    pub fn kill_node(&mut self, node: usize) -> u64 {
        match self.nodes[node].process.take() {
            Some(process) => process.kill(),
            None => super::now_ns(),
        }
    }

    /// Ends a node in order.
    pub fn stop_node(&mut self, node: usize) {
        self.nodes[node]
            .process
            .take()
            .into_iter()
            .for_each(Process::stop);
    }

    /// The number of a node's process; `None` if it has ended.
    pub fn node_pid(&mut self, node: usize) -> Option<u32> {
        let process = self.nodes[node].process.as_mut()?;
        process.ended().is_none().then(|| process.id())
    }

    /// The log of a node's latest process.
    pub fn node_log(&self, node: usize) -> Option<&Path> {
        self.nodes[node].logs.last().map(Tail::path)
    }

    /// The processes that nothing kills: names and numbers.
    pub fn surroundings(&self) -> Vec<(String, u32)> {
        self.witnesses
            .iter()
            .chain(&self.plant)
            .map(|process| (process.name.clone(), process.id()))
            .collect()
    }

    /// The control socket of a node.
    pub fn control(&self, node: usize) -> PathBuf {
        self.path(&format!("{}.sock", NODES[node]))
    }

    /// What a node says; `None` if it does not answer.
    pub fn view(&self, node: usize) -> Option<View> {
        control::request(&self.control(node), &Request::Status)
            .ok()
            .map(View)
    }

    /// The primary, if the pair is redundant at a moment after `since_ns`.
    pub fn redundant(&self, since_ns: u64) -> Option<usize> {
        let views = [self.view(0)?, self.view(1)?];
        let primary = views.iter().position(|view| view.role() == "primary")?;
        let (first, second) = (&views[primary], &views[1 - primary]);
        let whole = first.group("redundancy") == "ok"
            && first.group("writes_outputs") == true
            && second.role() == "backup"
            && views.iter().all(|view| view.of_ns() >= since_ns);
        whole.then_some(primary)
    }

    /// Takes in what the plant has logged since the last call, counted.
    pub fn take_writes(&mut self, count: &mut Count) -> Vec<Write> {
        let mut writes = Vec::new();
        for line in self.plant_log.take::<Line>() {
            if let Line::Write {
                at_ns,
                writer,
                epoch,
                cycle,
                accepted,
                ..
            } = line
            {
                let write = Write {
                    time_ns: at_ns,
                    writer: writer.into(),
                    epoch: epoch.into(),
                    cycle,
                    outputs: vec![f64::NAN; 2],
                    accepted,
                };
                self.ledger.take(&write, count);
                writes.push(write);
            }
        }
        writes
    }

    /// Lines of the logs of all processes that could not be understood, since the last call, and logs that have given
    /// none. To be asked after events and writes have been taken.
    pub fn take_strange(&mut self) -> u64 {
        let nodes = self.nodes.iter_mut().flat_map(|node| &mut node.logs);
        let tails = nodes.chain([&mut self.plant_log]);
        let holes: u64 = tails.map(Tail::take_holes).sum();
        holes + std::mem::take(&mut self.holes)
    }

    /// The highest epoch that the plant has accepted.
    pub fn epoch(&self) -> u64 {
        self.ledger.epoch()
    }

    /// Takes in what the nodes have logged since the last call.
    pub fn take_events(&mut self) -> Vec<NodeEvent> {
        let mut events = Vec::new();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let lines = node.logs.iter_mut().flat_map(Tail::take::<Value>);
            events.extend(lines.map(|line| NodeEvent {
                node: index,
                time_ns: line["time_ns"].as_u64().unwrap_or_default(),
                line,
            }));
            let live = usize::from(node.process.is_some());
            let done = node.logs.len().saturating_sub(live);
            for mut log in node.logs.drain(..done) {
                self.holes += log.take_holes();
                if self.keep_logs {
                    continue;
                }
                // A file that does not go takes room, no more.
                let _ = fs::remove_file(log.path());
            }
        }
        events
    }

    /// What the nodes said last, for an error.
    pub fn last_words(&self) -> String {
        let words = NODES.iter().enumerate().map(|(node, name)| {
            let view = self.view(node);
            let role = view
                .as_ref()
                .map_or("silent", |view| view.role())
                .to_owned();
            let cause = view
                .map(|view| view.group("cause").to_string())
                .unwrap_or_default();
            let process = self.nodes[node].process.as_ref();
            let words = process.map(Process::last_words).unwrap_or_default();
            format!("{name} is {role} {cause}\n{words}")
        });
        words.collect::<Vec<_>>().join("\n")
    }
}
