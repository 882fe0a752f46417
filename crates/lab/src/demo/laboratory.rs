//! A whole pair on this machine: plant, a witness on each network, two nodes with the fault driver,
//! and a meter for stalls of the machine itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_config::Config;
use bumpless_controller::QuadrupleTankParameters;
use bumpless_net_linux::Clock;
use bumpless_node::control::{self, Request};

use super::DemoError;
use super::addresses::Addresses;
use super::configuration::{self, GROUP, NETWORKS, NODES, PRIORITY};
use super::follow::Follower;
use super::meter::Meter;
use super::processes::{Process, describe};
use super::progress::Progress;
use crate::fault::{self, FaultPlan, LinkFaults};
use crate::runlog::{Event, EventKind, RedundancyState, Stall};

/// Interval at which conditions are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Interval at which the nodes are asked for their configuration, in nanoseconds.
const ALIKE_LOOK_NS: u64 = 50_000_000;
/// Longest lease that the witnesses grant; they stay silent for so long after their start.
const LONGEST_LEASE_MS: u32 = 200;

/// The running pair and everything around it. When it goes, all its processes have ended.
pub struct Laboratory {
    binary: PathBuf,
    directory: PathBuf,
    config_path: PathBuf,
    /// The text of the configuration with which the nodes were started first.
    text: String,
    /// The configuration with which the nodes were started first.
    pub config: Config,
    /// Waits and shows progress.
    pub waiter: Waiter,
    nodes: [Node; 2],
    plant: Option<Process>,
    witnesses: Vec<Process>,
    meter: Option<Meter>,
    /// What only the laboratory knows: when a node was killed.
    pub events: Vec<Event>,
    /// When the plant was started (nanoseconds of CLOCK_BOOTTIME).
    pub started_ns: u64,
}

/// One controller: its process, if it runs, and the logs of all its processes so far.
struct Node {
    name: &'static str,
    process: Option<Process>,
    follower: Follower,
    logs: Vec<PathBuf>,
    faults: PathBuf,
    control: PathBuf,
    /// Packets that its fault drivers took away: the present process's when last asked, and those
    /// of the processes before.
    injected: (u64, u64),
}

/// Waiting that a Ctrl-C ends.
pub struct Waiter {
    stop: Arc<AtomicBool>,
    /// What people see.
    pub progress: Progress,
}

impl Waiter {
    /// Waits that `stop` ends.
    pub fn new(stop: Arc<AtomicBool>, progress: Progress) -> Self {
        Self { stop, progress }
    }

    fn look(&mut self) -> Result<(), DemoError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(DemoError::Interrupted);
        }
        self.progress.tick();
        thread::sleep(LOOK);
        Ok(())
    }
}

/// CLOCK_BOOTTIME in nanoseconds.
pub fn now_ns() -> u64 {
    Clock.now().as_nanos()
}

impl Laboratory {
    /// Starts everything; `tank` gives the set points.
    ///
    /// # Errors
    /// If a process cannot be started or the configuration is refused.
    pub fn start(
        binary: &Path,
        directory: &Path,
        tank: &QuadrupleTankParameters,
        waiter: Waiter,
    ) -> Result<Self, DemoError> {
        let addresses =
            Addresses::find().map_err(|e| DemoError::system("loopback addresses", e))?;
        let text = configuration::text(directory, &addresses, tank);
        let config_path = directory.join("pair.toml");
        fs::write(&config_path, &text).map_err(|e| DemoError::system("the configuration", e))?;
        let config = Config::parse(&text, &config_path.display().to_string())
            .map_err(DemoError::Configuration)?;
        let meter = Meter::start().map_err(|e| DemoError::system("the stall meter", e))?;
        let mut laboratory = Self {
            binary: binary.to_owned(),
            directory: directory.to_owned(),
            config_path,
            text,
            config,
            waiter,
            nodes: NODES.map(|name| Node::new(name, directory)),
            plant: None,
            witnesses: Vec::new(),
            meter: Some(meter),
            events: Vec::new(),
            started_ns: now_ns(),
        };
        laboratory.start_surroundings(&addresses)?;
        (0..NODES.len()).try_for_each(|node| laboratory.start_node(node))?;
        Ok(laboratory)
    }

    fn start_surroundings(&mut self, addresses: &Addresses) -> Result<(), DemoError> {
        for (network, address) in NETWORKS.iter().zip(addresses.witnesses) {
            let arguments = format!(
                "witness --listen {address} --longest-lease-ms {LONGEST_LEASE_MS} --priority {PRIORITY}"
            );
            let process = self.process(
                &format!("witness-{network}"),
                &arguments.split(' ').collect::<Vec<_>>(),
            )?;
            self.witnesses.push(process);
        }
        let log = self.plant_log().display().to_string();
        let scale = configuration::TIME_SCALE.to_string();
        let listen = addresses.plant.to_string();
        let arguments = [
            "plant",
            "--listen",
            &listen,
            "--log",
            &log,
            "--check-epoch",
            "--time-scale",
            &scale,
            "--priority",
            &PRIORITY.to_string(),
        ];
        self.started_ns = now_ns();
        self.plant = Some(self.process("plant", &arguments)?);
        Ok(())
    }

    fn process(&self, name: &str, arguments: &[&str]) -> Result<Process, DemoError> {
        let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        Process::start(&self.binary, &self.directory, name, &arguments)
            .map_err(|error| DemoError::system(name, error))
    }

    /// When a witness that has just started may grant a takeover: it waits out what it may have
    /// promised before.
    pub fn witnesses_ready_ns(&self) -> u64 {
        self.started_ns + u64::from(LONGEST_LEASE_MS + 100) * 1_000_000
    }

    /// Starts the node's process, with a log of its own.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_node(&mut self, node: usize) -> Result<(), DemoError> {
        let Node {
            name, logs, faults, ..
        } = &self.nodes[node];
        let log = self
            .directory
            .join(format!("{name}.{}.jsonl", logs.len() + 1));
        let [config, log_text, faults] =
            [&self.config_path, &log, faults].map(|path| path.display().to_string());
        let arguments = [
            "demo-node",
            &config,
            "--node",
            name,
            "--log",
            &log_text,
            "--faults",
            &faults,
        ];
        let process = self.process(name, &arguments)?;
        let node = &mut self.nodes[node];
        node.process = Some(process);
        node.logs.push(log.clone());
        node.follower = Follower::new(log);
        Ok(())
    }

    /// Kills the node's process without warning, and says when.
    pub fn kill_node(&mut self, node: usize) -> u64 {
        let Some(process) = self.nodes[node].process.take() else {
            return now_ns();
        };
        let time_ns = process.kill();
        let node = &mut self.nodes[node];
        node.follower = Follower::new(PathBuf::new());
        node.injected = (0, node.injected.0 + node.injected.1);
        let name = node.name.to_owned();
        self.events.push(Event {
            time_ns,
            node: name,
            kind: EventKind::Gone {},
        });
        time_ns
    }

    /// Makes `faults` on each of `networks`, and nothing on the others, at every node that runs.
    /// Says when all of them had them.
    ///
    /// # Errors
    /// If a node does not take the order.
    pub fn set_faults(&mut self, networks: &[&str], faults: &LinkFaults) -> Result<u64, DemoError> {
        let plan = FaultPlan::on(networks.iter().copied(), faults);
        for node in self.nodes.iter_mut().filter(|node| node.process.is_some()) {
            let done = fault::apply(&node.faults, &plan)
                .map_err(|error| DemoError::system(node.name, error))?;
            node.injected.0 = done.lost;
        }
        Ok(now_ns())
    }

    /// Packets that the fault drivers had taken away when faults were last set.
    pub fn injected(&self) -> u64 {
        self.nodes
            .iter()
            .map(|node| node.injected.0 + node.injected.1)
            .sum()
    }

    /// Orders the primary role from `node` to the other one, and says when.
    ///
    /// # Errors
    /// If the node refuses.
    pub fn switch_over(&mut self, node: usize) -> Result<u64, DemoError> {
        let Node { name, control, .. } = &self.nodes[node];
        let request = Request::Switchover {
            group: Some(GROUP.into()),
        };
        let at = now_ns();
        let reply = control::request(control, &request).map_err(|e| DemoError::system(*name, e))?;
        match reply["error"].as_str() {
            Some(error) => Err(DemoError::Refused(format!(
                "{name} refused the switchover: {error}"
            ))),
            None => Ok(at),
        }
    }

    /// Orders the change with this number of both nodes, and says when.
    ///
    /// # Errors
    /// If a node refuses, or the file cannot be written.
    pub fn change(&mut self, number: usize) -> Result<u64, DemoError> {
        let file = self.directory.join(format!("change{number}.toml"));
        let text = configuration::changed(&self.text, number);
        fs::write(&file, text).map_err(|e| DemoError::system("the next configuration", e))?;
        self.note_configurations();
        let at = now_ns();
        for Node { name, control, .. } in &self.nodes {
            let request = Request::Apply { file: file.clone() };
            let reply =
                control::request(control, &request).map_err(|e| DemoError::system(*name, e))?;
            if let Some(error) = reply["error"].as_str() {
                let refused = format!("{name} refused the change: {error}");
                return Err(DemoError::Refused(refused));
            }
        }
        Ok(at)
    }

    /// Notes which configuration each node that answers has in force; says whether both have the same,
    /// with no change under way.
    pub fn note_configurations(&mut self) -> bool {
        let mut found = Vec::new();
        for node in self.nodes.iter().filter(|node| node.process.is_some()) {
            let Ok(mut status) = control::request(&node.control, &Request::Status) else {
                continue;
            };
            let words = |value: serde_json::Value| value.as_str().map(str::to_owned);
            let configuration = &mut status["configuration"];
            let fingerprint = words(configuration["fingerprint"].take()).unwrap_or_default();
            let change = words(configuration["change"].take());
            found.push((fingerprint.clone(), change.is_none()));
            self.events.push(Event {
                time_ns: now_ns(),
                node: node.name.to_owned(),
                kind: EventKind::InForce {
                    fingerprint,
                    change,
                },
            });
        }
        found.len() == NODES.len() && found[0] == found[1] && found[0].1
    }

    /// Waits until both nodes have the same configuration in force, at most for `patience`.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub fn wait_alike(&mut self, patience: Duration) -> Result<(), DemoError> {
        let until = now_ns() + u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        while !self.note_configurations() && now_ns() < until {
            self.wait_time(now_ns() + ALIKE_LOOK_NS)?;
        }
        Ok(())
    }

    /// The primary, if exactly one node says that it is.
    pub fn primary(&self) -> Option<usize> {
        let is_primary = |node: &&Node| node.follower.role == "primary";
        let mut primaries = self.nodes.iter().filter(is_primary);
        match (primaries.next(), primaries.next()) {
            (Some(one), None) => self.nodes.iter().position(|node| node.name == one.name),
            _ => None,
        }
    }

    /// Whether one node is primary, the other backup, and the primary says that it is redundant.
    pub fn is_redundant(&self) -> bool {
        self.primary().is_some_and(|primary| {
            self.nodes[primary].follower.redundancy == Some(RedundancyState::Ok)
                && self.nodes[1 - primary].follower.role == "backup"
        })
    }

    /// Waits until `condition` holds, at most for `patience`; says whether it does.
    ///
    /// # Errors
    /// If the user ends the demonstration, or a process ends by itself.
    pub fn wait_until(
        &mut self,
        patience: Duration,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Result<bool, DemoError> {
        let since = Instant::now();
        loop {
            self.nodes.iter_mut().for_each(|node| node.follower.poll());
            if condition(self) {
                return Ok(true);
            }
            if since.elapsed() >= patience {
                return Ok(false);
            }
            self.waiter.look()?;
            self.look_after_processes()?;
        }
    }

    /// Waits until the pair is redundant.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until), or if it is not in time.
    pub fn wait_redundant(&mut self, patience: Duration) -> Result<(), DemoError> {
        match self.wait_until(patience, Self::is_redundant)? {
            true => Ok(()),
            false => Err(DemoError::NotRedundant(self.describe_nodes())),
        }
    }

    /// Waits until the clock shows `until_ns`.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub fn wait_time(&mut self, until_ns: u64) -> Result<(), DemoError> {
        let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
        self.wait_until(left, |_| now_ns() >= until_ns).map(|_| ())
    }

    fn look_after_processes(&mut self) -> Result<(), DemoError> {
        let nodes = self
            .nodes
            .iter_mut()
            .filter_map(|node| node.process.as_mut());
        for process in nodes.chain(&mut self.witnesses).chain(&mut self.plant) {
            if let Some(status) = process.ended() {
                return Err(DemoError::Ended {
                    process: process.name.clone(),
                    how: describe(status),
                    words: process.last_words(),
                });
            }
        }
        Ok(())
    }

    fn describe_nodes(&self) -> String {
        let describe = |node: &Node| {
            let role = Some(node.follower.role.as_str()).filter(|role| !role.is_empty());
            let words = node
                .process
                .as_ref()
                .map(Process::last_words)
                .unwrap_or_default();
            let role = role.unwrap_or("silent");
            format!(
                "{} is {role}, redundancy {:?}\n{words}",
                node.name, node.follower.redundancy
            )
        };
        self.nodes
            .iter()
            .map(describe)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The plant's log.
    pub fn plant_log(&self) -> PathBuf {
        self.directory.join("plant.jsonl")
    }

    /// Where the laboratory writes down what it did.
    pub fn own_log(&self) -> PathBuf {
        self.directory.join("laboratory.json")
    }

    /// The logs of all processes that nodes had.
    pub fn node_logs(&self) -> Vec<PathBuf> {
        self.nodes
            .iter()
            .flat_map(|node| node.logs.clone())
            // A node that was ended before it had come so far has written nothing.
            .filter(|log| log.exists())
            .collect()
    }

    /// Ends everything in order, so that the logs are whole, and gives what the meter saw.
    pub fn end(&mut self) -> Vec<Stall> {
        let nodes = self.nodes.iter_mut().filter_map(|node| node.process.take());
        nodes.for_each(Process::stop);
        self.plant.take().into_iter().for_each(Process::stop);
        self.witnesses.drain(..).for_each(Process::stop);
        self.waiter.progress.clear();
        self.meter.take().map(Meter::end).unwrap_or_default()
    }
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        self.end();
    }
}

impl Node {
    fn new(name: &'static str, directory: &Path) -> Self {
        Self {
            name,
            process: None,
            follower: Follower::new(PathBuf::new()),
            logs: Vec::new(),
            faults: directory.join(format!("{name}.faults")),
            control: directory.join(format!("{name}.sock")),
            injected: (0, 0),
        }
    }
}
