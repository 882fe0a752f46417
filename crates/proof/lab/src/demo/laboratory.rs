//! A whole pair on this machine: plant, a witness on each network, two nodes with the fault driver,
//! and a meter for stalls of the machine itself. What is done to it; what it shows stands in `watch`.

mod watch;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bumpless_config::Config;
use bumpless_controller::QuadrupleTankParameters;
use bumpless_net_linux::Clock;
use bumpless_node::control::{self, Request};
use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::{Authority, Problem, Role, Wanted};
use serde_json::Value;

pub use self::watch::Waiter;
use super::DemoError;
use super::addresses::Addresses;
use super::configuration::{
    self, DEVICE, FIELD_SECURITY, GROUP, NETWORKS, NODES, PAIR, PRIORITY, ROLE,
};
use super::follow::Follower;
use super::meter::Meter;
use super::processes::Process;
use super::program::{self, Shown};
use crate::fault::{self, FaultPlan, LinkFaults};
use crate::runlog::{Event, EventKind, Stall};

/// Longest lease that the witnesses grant; they stay silent for so long after their start.
const LONGEST_LEASE_MS: u32 = 200;

/// What the demonstration's authority calls its site, and how long its certificates last: no repetition takes longer.
const SITE: &str = "demo";
const CERTIFICATES_LAST: Duration = Duration::from_secs(24 * 3600);

/// How long an order is refused, and how often it is given meanwhile: a pair whose machine has just stood still is not
/// in step for a moment.
const ORDER_TIMEOUT_NS: u64 = 2_000_000_000;
const ORDER_AGAIN_NS: u64 = 50_000_000;

/// What the pair runs.
#[derive(Clone, Copy)]
pub enum Load<'a> {
    /// The controller of the simulated tanks, with these set points.
    Tank(&'a QuadrupleTankParameters),
    /// A program of the user.
    Program(&'a Shown),
}

impl Load<'_> {
    /// What stands of it in the configuration.
    fn text(self, addresses: &Addresses) -> String {
        match self {
            Self::Tank(tank) => configuration::tank_text(addresses.plant, tank, FIELD_SECURITY),
            Self::Program(shown) => program::text(shown, GROUP, addresses.plant),
        }
    }

    /// Arguments of the process of its field device, which listens on `listen`, has `certificates` and writes `log`.
    fn field(self, listen: String, certificates: String, log: String) -> Vec<String> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut arguments = match self {
            Self::Tank(_) => words("plant --check-epoch"),
            Self::Program(_) => words("demo-device"),
        };
        arguments.extend(["--listen".into(), listen, "--log".into(), log]);
        arguments.extend(words(&format!("--priority {PRIORITY} --may-write {ROLE}")));
        arguments.extend(["--certificates".into(), certificates]);
        match self {
            Self::Tank(_) => {
                arguments.extend(words(&format!(
                    "--time-scale {}",
                    configuration::TIME_SCALE
                )));
            }
            Self::Program(shown) => {
                let shape = shown.subject.borrow().shape();
                let (inputs, outputs) = (shape.inputs, shape.outputs);
                arguments.extend(words(&format!("--inputs {inputs} --outputs {outputs}")));
                if let Some(file) = &shown.demo.data {
                    arguments.extend(["--data".into(), file.display().to_string()]);
                }
            }
        }
        arguments
    }
}

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

/// CLOCK_BOOTTIME in nanoseconds.
pub fn now_ns() -> u64 {
    Clock.now().as_nanos()
}

/// Makes an authority that ends soon after the demonstration, and with it everybody's certificates, beside the
/// configuration. The authority itself is not needed any more.
fn issue(directory: &Path) -> Result<(), Problem> {
    let (folder, now) = (directory.join("authority"), UnixTime::now());
    let authority = Authority::create(&folder, SITE, CERTIFICATES_LAST, now)?;
    let role = Role::new(ROLE).ok();
    for text in configuration::everybody() {
        let name = authority.name(&text).map_err(|name| Problem {
            path: folder.clone(),
            cause: name.into(),
        })?;
        let wanted = Wanted {
            name: &name,
            role: role.as_ref().filter(|_| name.pair() == PAIR),
            addresses: &[],
        };
        authority.issue(
            wanted,
            CERTIFICATES_LAST,
            now,
            &directory.join(name.short()),
        )?;
    }
    Ok(())
}

impl Laboratory {
    /// Starts everything.
    ///
    /// # Errors
    /// If a process cannot be started or the configuration is refused.
    pub fn start(
        binary: &Path,
        directory: &Path,
        load: Load<'_>,
        waiter: Waiter,
    ) -> Result<Self, DemoError> {
        let addresses =
            Addresses::find().map_err(|e| DemoError::system("loopback addresses", e))?;
        let text = configuration::text(directory, &addresses, &load.text(&addresses));
        let config_path = directory.join("pair.toml");
        fs::write(&config_path, &text).map_err(|e| DemoError::system("the configuration", e))?;
        issue(directory).map_err(|e| DemoError::system("certificates", io::Error::other(e)))?;
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
        laboratory.start_surroundings(&addresses, load)?;
        (0..NODES.len()).try_for_each(|node| laboratory.start_node(node))?;
        Ok(laboratory)
    }

    fn start_surroundings(
        &mut self,
        addresses: &Addresses,
        load: Load<'_>,
    ) -> Result<(), DemoError> {
        for (network, address) in NETWORKS.iter().zip(addresses.witnesses) {
            let name = configuration::witness(network);
            let [left, right] = NODES.map(|node| format!("{node}.{PAIR}"));
            let arguments = format!(
                "witness --listen {address} --longest-lease-ms {LONGEST_LEASE_MS} --priority {PRIORITY} \
                 --name {name} --serve {left} --serve {right} --certificates"
            );
            let folder = self.directory.display().to_string();
            let arguments = arguments.split(' ').chain([&*folder]);
            let process = self.process(&name, &arguments.collect::<Vec<_>>())?;
            self.witnesses.push(process);
        }
        let log = self.plant_log().display().to_string();
        let certificates = self.directory.join(DEVICE).display().to_string();
        let arguments = load.field(addresses.plant.to_string(), certificates, log);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
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
    /// If the node goes on refusing.
    pub fn switch_over(&mut self, node: usize) -> Result<u64, DemoError> {
        let group = Some(GROUP.into());
        let order = Request::Switchover { group, to: None };
        Ok(self.order(node, &order, "the switchover")?.0)
    }

    /// Gives a node an order, says when and what it replied; again while it refuses, as an operator would.
    fn order(
        &mut self,
        node: usize,
        request: &Request,
        what: &str,
    ) -> Result<(u64, Value), DemoError> {
        let until = now_ns() + ORDER_TIMEOUT_NS;
        loop {
            let Node { name, control, .. } = &self.nodes[node];
            let at = now_ns();
            let reply =
                control::request(control, request).map_err(|e| DemoError::system(*name, e))?;
            let Some(error) = reply["error"].as_str() else {
                return Ok((at, reply));
            };
            if at >= until {
                let refused = format!("{name} refused {what}: {error}");
                return Err(DemoError::Refused(refused));
            }
            self.wait_time(at + ORDER_AGAIN_NS)?;
        }
    }

    /// Orders the change with this number, and says when: of one node, which brings it to the other, or of both where they
    /// have no session at that moment.
    ///
    /// # Errors
    /// If a node goes on refusing, or the file cannot be written.
    pub fn change(&mut self, number: usize) -> Result<u64, DemoError> {
        let file = self.directory.join(format!("change{number}.toml"));
        let text = configuration::changed(&self.text, number);
        fs::write(&file, text).map_err(|e| DemoError::system("the next configuration", e))?;
        self.note_configurations();
        let at = now_ns();
        for node in 0..self.nodes.len() {
            let file = file.clone();
            let (_, reply) = self.order(node, &Request::Apply { file }, "the change")?;
            if reply["partner"].is_string() {
                break;
            }
        }
        Ok(at)
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
