//! The configuration as the program uses it: checked, with units, references resolved to indices.
//!
//! What each field means to the person who writes it (default, cost, hazard) is documented once,
//! in `crate::schema`; here stand only the meaning and unit of the resolved value.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bumpless_base::{ChannelId, Duration, LinkId, LinkSet, NodeId, Processors, frame};
pub use bumpless_base::{Distribution, Unsent};

pub use bumpless_wire::WireVersion;

pub use crate::programs::{
    Area, Bus, DeviceSecurity, DriverProtocol, FieldDevice, FieldDriver, Input, InputFrom,
    ModbusDevice, ModuleEngine, OnProgramFault, OpcUaLogin, OpcUaPolicy, Order, Output, OutputTo,
    PROGRAM_MAX, Point, Program, ProgramHost, StateOnChange, Tag, ValueType,
};

use crate::security::{Security, StateSecurity};
use crate::weakness::Weakness;

/// Most nodes in one configuration.
pub const MAX_NODES: usize = 16;
/// Most groups; the entries of all of them fit in one heartbeat on the smallest network.
pub const MAX_GROUPS: usize = 16;
/// Most reference points.
pub const MAX_REFERENCES: usize = 16;
/// Most applications.
pub const MAX_APPLICATIONS: usize = 128;
/// Longest configuration file, bytes.
pub const MAX_FILE_LEN: usize = 1 << 20;
/// Most bytes that the executor, and the host of a program, add to an application's own state, outputs of a program apart.
pub const ENVELOPE_MAX: u32 = 64;
/// Most unacknowledged packets to one partner that a configuration may permit.
pub const IN_FLIGHT_MAX: u32 = 32_768;
/// What the channel of a quadruple-tank application reserves, bytes, envelope included.
pub const QUADRUPLE_TANK_STATE_MAX: u32 = 1024;

/// A whole, checked configuration. Build it with [`Config::parse`] or [`Config::load`].
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Name of the pair or pool.
    pub pair: String,
    /// Failure detection and lease.
    pub timing: Timing,
    /// The transfer protocol's parameters.
    pub transfer: Transfer,
    /// What protects messages on the networks.
    pub security: Security,
    /// Real-time options of the data plane; local to each node.
    pub realtime: Realtime,
    /// What is received under load; local to each node.
    pub reception: Reception,
    /// What programs may register with the guard; `None`: nothing. Local to each node.
    pub registration: Option<Registration>,
    /// What the plan is told, and what comes of its answer.
    pub plan: PlanSettings,
    /// How a running pair changes to this configuration.
    pub change: ChangeSettings,
    /// The networks; the position is the [`LinkId`].
    pub networks: Vec<Network>,
    /// The controllers; the position is the [`NodeId`].
    pub nodes: Vec<Node>,
    /// The reference points; groups refer to the position.
    pub references: Vec<Reference>,
    /// The redundancy groups; applications refer to the position.
    pub groups: Vec<Group>,
    /// The applications.
    pub applications: Vec<Application>,
    /// What is permitted but weaker than it could be; status shows it as long as it holds.
    pub weaknesses: Vec<Weakness>,
}

/// Failure detection and lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Between two heartbeats on a link.
    pub heartbeat: Duration,
    /// How long a node may write outputs after its last renewal.
    pub lease: Duration,
    /// Most that two nodes' clocks differ in rate, parts per million.
    pub clock_drift_ppm: u32,
    /// How long a starting node listens before it may become primary.
    pub start_wait: Duration,
}

impl Timing {
    /// What expiries allow for a failover with a reference point reachable: a lease until the backup's
    /// own promise has run out, another to be leased the role although a request may be lost, both
    /// lengthened by the clock drift, and three heartbeats to notice.
    pub fn failover_time(&self) -> Duration {
        self.lease.stretched(self.clock_drift_ppm) * 2 + self.heartbeat * 3
    }

    /// Between two heartbeats of full length on a link, which show whether packets as long as those of states pass.
    pub fn full_length_interval(&self) -> Duration {
        Duration::from_millis(100).max(self.heartbeat)
    }

    /// The shortest expiry of states that come each `period` and are given up after `deadline`, whole milliseconds:
    /// the last one must not expire before the backup takes over.
    pub fn least_expiry(&self, period: Duration, deadline: Duration) -> Duration {
        let least = period * 2 + deadline + self.failover_time();
        Duration::from_millis(least.as_nanos().div_ceil(1_000_000))
    }
}

/// The transfer protocol's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Packet format.
    pub version: WireVersion,
    /// Unacknowledged packets that a receiver accepts (paper, 7.3.3: `packetsInFlightMax`).
    pub in_flight_max: u32,
    /// Payload bytes of every data packet but a cycle's last (paper, 7.3.2): the smallest over the
    /// networks that applications use.
    pub payload_size: u16,
    /// Bound on the memory that all state buffers of a node may take, bytes.
    pub memory_max: u64,
}

/// Real-time options of the data plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Realtime {
    /// SCHED_FIFO priority, `None` for the ordinary scheduler.
    pub priority: Option<u8>,
    /// Whether to lock all memory.
    pub lock_memory: bool,
    /// The processor to which the data plane is pinned.
    pub cpu: Option<u16>,
    /// How long a processor may take to wake, microseconds; `None`: as long as power management likes.
    pub wake_latency: Option<u16>,
}

/// What is received under load.
#[derive(Clone, Debug, PartialEq)]
pub struct Reception {
    /// Whether interfaces are guarded.
    pub guard: ReceptionGuard,
    /// Packets a second, on each interface, to ports that are not the node's.
    pub other_per_s: u32,
    /// What share of a processor reception is planned to take at most, percent.
    pub reserve_percent: u64,
    /// What a packet that is let in costs, nanoseconds.
    pub packet_ns: u64,
    /// What a packet that is dropped at the driver costs, nanoseconds.
    pub dropped_ns: u64,
    /// Packets that wait in an interface's ring at most.
    pub ring: u64,
    /// Where packets are worked off.
    pub placement: Placement,
    /// For how long the data plane looks for packets without sleeping.
    pub busy_poll: Duration,
}

/// Where packets of the networks' interfaces are worked off while a node runs; what is `None` stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The processors that are interrupted.
    pub interrupt_cpus: Option<Processors>,
    /// The processors to which packets are handed on.
    pub rps_cpus: Option<Processors>,
    /// SCHED_FIFO priority of threads of the interfaces' own; 0: ordinary ones.
    pub napi_priority: Option<u8>,
}

/// What programs may register with a guard for sockets of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Name or number of the group whose members may.
    pub group: String,
    /// Path of the socket at which they do; `None`: the usual one.
    pub socket: Option<PathBuf>,
    /// So many sockets at most.
    pub flows: usize,
    /// What share of a processor their packets may take together, percent.
    pub processor_percent: u64,
    /// The highest priority that they may have.
    pub priority_max: u8,
    /// So many packets their budgets may let in at once, all together; `None`: as many as their share permits.
    pub burst_max: Option<u32>,
}

/// Whether the interfaces of a node's networks are guarded against floods of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceptionGuard {
    /// Where the system permits it.
    Auto,
    /// Nowhere.
    Off,
}

/// What the plan is told of the machines, and what comes of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSettings {
    /// Whether a node starts although the plan refuses the configuration.
    pub run_although_refused: bool,
    /// How much later than intended a thread may go on.
    pub jitter: Duration,
}

/// How a running pair changes to the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeSettings {
    /// All applications that go on with other settings do so at one moment, or none does.
    pub together: bool,
}

/// How often a network loses frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Share of bits that arrive wrong; a frame with one is lost.
    BitErrors(f64),
    /// Share of frames that are lost, whatever their length.
    Frames(f64),
}

/// Version of the Internet protocol on a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IPv4: 20-byte header.
    V4,
    /// IPv6: 40-byte header.
    V6,
}

impl IpVersion {
    /// The version of `address`.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
    /// Bytes of the IP header, no options or extensions.
    pub const fn header_len(self) -> u16 {
        match self {
            Self::V4 => frame::IPV4,
            Self::V6 => frame::IPV6,
        }
    }
    /// Bytes on the wire for each packet beyond its UDP payload: UDP, IP, and Ethernet with
    /// preamble, check sequence and gap.
    pub const fn frame_overhead(self) -> u16 {
        frame::UDP + self.header_len() + frame::ETHERNET
    }
}

impl std::fmt::Display for IpVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// One independent network.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Bit/s that the nodes send at most; zero: not paced.
    pub bandwidth: u64,
    /// Largest IP packet, bytes.
    pub mtu: u16,
    /// Differentiated-services code point of every packet sent.
    pub dscp: u8,
    /// Socket priority (SO_PRIORITY).
    pub priority: u8,
    /// IP version of all addresses on it.
    pub ip: IpVersion,
    /// How often it loses frames, for the plan.
    pub loss: Loss,
    /// Longest time from a packet to its acknowledgement while it is idle, for the plan.
    pub round_trip_max: Duration,
    /// Longest frame of other traffic, bytes on the wire, for the plan.
    pub other_traffic: u32,
    /// Bytes in each datagram that protect its message.
    pub protection: u16,
}

impl Network {
    /// Bytes on the wire for each message: [`IpVersion::frame_overhead`], and what protects it.
    pub const fn message_overhead(&self) -> u16 {
        self.ip.frame_overhead() + self.protection
    }

    /// Longest message, bytes: what UDP carries, less what protects it.
    pub const fn message_max(&self) -> u16 {
        self.mtu - self.ip.header_len() - frame::UDP - self.protection
    }
}

/// One controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its address on each network, by [`LinkId`]; `None` where it has none.
    pub addresses: Vec<Option<SocketAddr>>,
    /// The control socket's path as configured; [`Config::control_socket`] gives the default.
    pub control: Option<PathBuf>,
    /// The group whose members may ask for status there, by name or number.
    pub control_group: Option<String>,
    /// Where it keeps states on disk; `None`: no application of it persists.
    pub state_dir: Option<PathBuf>,
}

/// A point outside the nodes that decides who may be primary when they do not hear each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Its name.
    pub name: String,
    /// What answers there.
    pub kind: ReferenceKind,
    /// The network through which it is reached.
    pub network: LinkId,
    /// Longest time from a request to its answer while the network is idle, for the plan; `None`: that of the network.
    pub round_trip_max: Option<Duration>,
}

/// What answers at a reference point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// A witness process at this address, which grants leases.
    Witness(SocketAddr),
    /// Anything that answers ICMP echo; weaker.
    Ping(IpAddr),
}

/// Nodes that stand in for each other, with one primary role among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The two candidates for the primary role, preferred first.
    pub candidates: Vec<NodeId>,
    /// Indices into [`Config::references`]; empty only where the file says so explicitly.
    pub references: Vec<usize>,
    /// For how long after the last output its applications may go on from a state, where the file says so;
    /// [`Application::hot_restart`] has it for each.
    pub hot_restart: Option<Duration>,
    /// What a node does whose state would be the newest, but is older.
    pub after_hot_restart: AfterHotRestart,
}

/// What a node does whose state would be the newest, but is too old to go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterHotRestart {
    /// Its applications begin from their initial states.
    Cold,
    /// It takes no role until it is started again.
    Stop,
}

/// When the outputs of a cycle may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Commit {
    /// After the backup has acknowledged the state, or the deadline.
    BeforeOutput,
    /// At once; the backup is at most one cycle behind.
    Async,
}

/// One cyclic application.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// Index into [`Config::groups`].
    pub group: usize,
    /// Its channel.
    pub channel: ChannelId,
    /// Between two cycles.
    pub period: Duration,
    /// From the publication of a state to its acknowledgement.
    pub deadline: Duration,
    /// From the publication of a state until it counts as fresh no more.
    pub expiry: Duration,
    /// From the publication of a state until nobody may go on from it: as its group says, else 5 s, or three times
    /// the expiry if that is longer.
    pub hot_restart: Duration,
    /// Whether it begins anew by itself where its newest state is older than that: as its group says.
    pub begins_anew: bool,
    /// Its state is kept on disk as well, written at most once in this time; `None`: in memory alone.
    pub persist: Option<Duration>,
    /// When outputs may be written.
    pub commit: Commit,
    /// How its packets use the networks.
    pub distribution: Distribution,
    /// What becomes of a state that waits when the next one is published.
    pub unsent: Unsent,
    /// The networks that carry its state.
    pub networks: LinkSet,
    /// Packets of one state that may be lost in all (paper, 7.2.4: the retransmission budget);
    /// `None`: as few as `accepted_loss_per_year` needs.
    pub retransmissions: Option<u8>,
    /// States that may be lost in a year; `None`: not stated, then `retransmissions` is.
    pub accepted_loss_per_year: Option<f64>,
    /// Most bytes of one state in its channel: the application's own, the executor's envelope and what seals it.
    pub state_max: u32,
    /// What it computes.
    pub kind: ApplicationKind,
    /// Its inputs and outputs; `None`: it has none.
    pub field: Option<FieldIo>,
    /// What protects its states by themselves.
    pub security: StateSecurity,
}

/// What an application computes.
#[derive(Clone, Debug, PartialEq)]
pub enum ApplicationKind {
    /// Two PID loops on the quadruple-tank process (Johansson 2000).
    QuadrupleTank(QuadrupleTank),
    /// A state of given size, of which a share changes in each cycle.
    Synthetic(Synthetic),
    /// What a program of the user says.
    Program(Box<Program>),
}

/// Parameters of the quadruple-tank controller.
#[derive(Clone, Debug, PartialEq)]
pub struct QuadrupleTank {
    /// Set points by time; never empty, the first at zero, times strictly ascending.
    pub set_points: Vec<SetPoint>,
    /// Loop 1: level of tank 1 by pump 1; loop 2: level of tank 2 by pump 2.
    pub loops: [Pid; 2],
    /// Process seconds per second.
    pub time_scale: f64,
}

/// Levels to hold from a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetPoint {
    /// Process time since the application's first cycle.
    pub at: Duration,
    /// Level of tank 1, cm.
    pub tank1_cm: f64,
    /// Level of tank 2, cm.
    pub tank2_cm: f64,
}

/// Parameters of one PID loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pid {
    /// Proportional gain, volt at the pump per cm of level.
    pub gain: f64,
    /// Integral time, seconds; infinite: no integral part.
    pub integral_s: f64,
    /// Derivative time, seconds; zero: no derivative part.
    pub derivative_s: f64,
}

/// Parameters of a synthetic application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// Bytes of its own state.
    pub size: u32,
    /// Share of the bytes that change in each cycle, 0 to 1.
    pub changed_share: f64,
}

/// Inputs and outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldIo {
    /// The devices.
    pub devices: FieldDevices,
    /// Whether devices compare the epoch that a write carries.
    pub check_epoch: bool,
    /// What becomes of a cycle's outputs when the server does not answer.
    pub on_failure: OnFailure,
    /// How long a request may take.
    pub timeout: Duration,
    /// How long one takes at most while the network to the devices is idle, for the plan.
    pub round_trip_max: Duration,
    /// A folder with the certificates of nodes, each in a folder NODE.PAIR, where connections to devices are protected. A path that
    /// is not absolute begins at the configuration's folder.
    pub certificates: Option<PathBuf>,
}

/// Where inputs and outputs are.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldDevices {
    /// All at one server, where the quadruple-tank process has them.
    Tank {
        /// The server.
        address: SocketAddr,
        /// What protects the connection to it; `None`: nothing.
        security: Option<DeviceSecurity>,
    },
    /// Where inputs and outputs of the program say.
    Program(Vec<FieldDevice>),
}

impl FieldIo {
    /// The devices to which the connection is open, in words: over Modbus TCP, and over OPC UA.
    pub fn open_places(&self) -> (Vec<String>, Vec<String>) {
        match &self.devices {
            FieldDevices::Tank { address, security } => {
                let open = security.is_none();
                let open = open.then(|| address.to_string());
                (open.into_iter().collect(), Vec::new())
            }
            FieldDevices::Program(devices) => {
                let open = devices.iter().filter(|it| it.is_open());
                let (driven, modbus): (Vec<_>, Vec<_>) = open.partition(|it| it.driver().is_some());
                let places =
                    |of: Vec<&FieldDevice>| of.into_iter().map(FieldDevice::place).collect();
                (places(modbus), places(driven))
            }
        }
    }

    /// The devices where nodes log in as a user, and as whom.
    pub fn logins(&self) -> impl Iterator<Item = (&FieldDevice, &OpcUaLogin)> {
        let devices = match &self.devices {
            FieldDevices::Tank { .. } => &[],
            FieldDevices::Program(devices) => &devices[..],
        };
        devices.iter().filter_map(|it| Some((it, it.login()?)))
    }

    /// The devices in words, for people.
    pub fn places(&self) -> String {
        match &self.devices {
            FieldDevices::Tank { address, .. } => address.to_string(),
            FieldDevices::Program(devices) => {
                let words = devices.iter().map(FieldDevice::place);
                words.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match &self.devices {
            FieldDevices::Tank { .. } => 1,
            FieldDevices::Program(devices) => devices.len(),
        }
    }
}

/// What becomes of a cycle's outputs when field I/O fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The last outputs stay.
    Hold,
    /// The application stops on this node, which is then unfit to be primary.
    Fail,
}
