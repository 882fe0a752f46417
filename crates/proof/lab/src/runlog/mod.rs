//! What one run left behind: writes and levels from the plant, events from the nodes, stalls of
//! the machine, and what was done to the pair when.
//!
//! All times are nanoseconds of `CLOCK_BOOTTIME`, which every process of one machine shares.

mod event;
mod read;
#[cfg(test)]
pub mod synthetic;
#[cfg(test)]
mod tests;

pub use event::{Event, EventKind, OutputOutcome, RedundancyState, TransferOutcome};
pub use read::{LogError, PlantLog, read_events, read_plant};

/// One write that reached the plant.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// When the plant decided about it.
    pub time_ns: u64,
    /// Node that sent it, as an index into [`Run::nodes`]; anything else is a stranger.
    pub writer: u64,
    /// Epoch that it was stamped with.
    pub epoch: u64,
    /// Execution cycle whose outputs these are.
    pub cycle: u64,
    /// The outputs: pump voltages in volts, or those of the user's program.
    pub outputs: Vec<f64>,
    /// Whether the plant took it.
    pub accepted: bool,
}

/// Inputs that a program's device has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// When.
    pub time_ns: u64,
    /// Which row of inputs: the cycle of the last output that the device had taken.
    pub row: u64,
}

/// An accepted write beside what the program gives when it runs alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// When it was accepted.
    pub time_ns: u64,
    /// Its cycle.
    pub cycle: u64,
    /// How it differs, if it does.
    pub differs: Option<String>,
}

/// A program of the user that ran in place of the tank's controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnProgram {
    /// Its file.
    pub file: String,
    /// The kind of its host.
    pub kind: &'static str,
    /// The SHA-256 of its file, in hexadecimal digits.
    pub sha256: String,
    /// How many inputs it has.
    pub inputs: usize,
    /// How many outputs it has.
    pub outputs: usize,
    /// Bytes of its state.
    pub state_bytes: usize,
    /// Every accepted write beside what it gives alone, in order of time.
    pub compared: Vec<Compared>,
}

/// The process at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub time_ns: u64,
    /// Levels of the four tanks in centimetres.
    pub levels: [f64; 4],
    /// Set points of the two lower tanks in centimetres.
    pub set_points: [f64; 2],
}

/// A time in which the machine did not run what was due.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// When it ended, which is when it was noticed.
    pub time_ns: u64,
    /// How much too late.
    pub length_ns: u64,
    /// Who noticed: `meter` or a node's name.
    pub seen_by: String,
}

impl Stall {
    /// When it began.
    pub fn from_ns(&self) -> u64 {
        self.time_ns.saturating_sub(self.length_ns)
    }
}

/// What is done to the pair in one phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PhaseKind {
    /// Nothing.
    Normal,
    /// Packets are lost at random on both networks.
    Loss,
    /// Packets are lost ten in a row on both networks.
    Bursts,
    /// The first network is dead.
    CutOne,
    /// The primary is killed.
    Kill,
    /// The killed node is started again.
    Return,
    /// The roles change on order.
    Switchover,
    /// Nothing passes between the nodes; plant and witnesses remain in reach of both.
    CutBoth,
    /// Everything passes again.
    Healing,
    /// An application comes and the tank's is tuned while packets are lost.
    Change,
    /// One application goes, one comes, and the primary is killed in the middle of it.
    ChangeKill,
}

impl PhaseKind {
    /// Stable short name for JSON, anchors and file names.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Loss => "loss",
            Self::Bursts => "bursts",
            Self::CutOne => "cut-a",
            Self::Kill => "kill",
            Self::Return => "return",
            Self::Switchover => "switchover",
            Self::CutBoth => "cut-both",
            Self::Healing => "healing",
            Self::Change => "change",
            Self::ChangeKill => "change-kill",
        }
    }

    /// What people read.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Normal => "normal running",
            Self::Loss => "5 % random loss on both networks",
            Self::Bursts => "bursts of 10 lost on both networks",
            Self::CutOne => "network A cut for 2 s",
            Self::Kill => "primary killed",
            Self::Return => "killed node returns",
            Self::Switchover => "ordered switchover",
            Self::CutBoth => "both networks between the pair cut",
            Self::Healing => "networks healed",
            Self::Change => "applications changed under 5 % loss",
            Self::ChangeKill => "primary killed in a change",
        }
    }
}

/// A stretch of the run with one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What it is about.
    pub kind: PhaseKind,
    /// Where it begins.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// Where the fault began and ended (equal for an event without length).
    pub fault: Option<(u64, u64)>,
    /// Primary when the phase began, as an index into [`Run::nodes`].
    pub primary_before: usize,
}

impl Phase {
    /// Whether `time_ns` lies in the phase.
    pub fn contains(&self, time_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&time_ns)
    }

    /// The time in which the fault is there, or the whole phase if it has none.
    pub fn faulty(&self) -> (u64, u64) {
        self.fault.unwrap_or((self.from_ns, self.to_ns))
    }
}

/// Everything that the evaluation needs to know about a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Names of the nodes, in the order of the configuration.
    pub nodes: Vec<String>,
    /// Period of the application.
    pub period_ns: u64,
    /// Time a state has from its publication to its acknowledgement.
    pub deadline_ns: u64,
    /// How long a primary may write after its last renewal.
    pub lease_ns: u64,
    /// Writes in order of time.
    pub writes: Vec<Write>,
    /// The process as the plant recorded it, in order of time.
    pub samples: Vec<Sample>,
    /// The same run computed without faults, in order of time.
    pub baseline: Vec<Sample>,
    /// What a program's device has given, in order of time.
    pub reads: Vec<Read>,
    /// The user's program, if one ran in place of the tank's controller: then there is no process.
    pub program: Option<OwnProgram>,
    /// Lines that the plant could not write; `None` if it did not say.
    pub plant_lines_lost: Option<u64>,
    /// Events of all nodes in order of time.
    pub events: Vec<Event>,
    /// Stalls of the machine in order of time.
    pub stalls: Vec<Stall>,
    /// What was done, in order of time.
    pub phases: Vec<Phase>,
    /// Packets that the fault driver took away, doubled or spoiled.
    pub injected: u64,
}

impl Run {
    /// The first phase of `kind`.
    pub fn phase(&self, kind: PhaseKind) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.kind == kind)
    }

    /// Name of the node with index `node`, or what stands for an unknown one.
    pub fn node_name(&self, node: usize) -> &str {
        self.nodes.get(node).map_or("unknown", String::as_str)
    }

    /// Time in `from_ns..to_ns` that stalls account for; overlapping reports count once.
    pub fn stalled_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let mut spans: Vec<(u64, u64)> = self
            .stalls
            .iter()
            .map(|stall| (stall.from_ns().max(from_ns), stall.time_ns.min(to_ns)))
            .filter(|(from, to)| from < to)
            .collect();
        spans.sort_unstable();
        let (mut total, mut covered) = (0, from_ns);
        for (from, to) in spans {
            total += to.saturating_sub(from.max(covered));
            covered = covered.max(to);
        }
        total
    }

    /// Brings everything into order of time; call it after the logs have been merged.
    pub fn sort(&mut self) {
        self.writes.sort_by_key(|write| write.time_ns);
        self.samples.sort_by_key(|sample| sample.time_ns);
        self.reads.sort_by_key(|read| read.time_ns);
        self.events.sort_by_key(|event| event.time_ns);
        self.stalls.sort_by_key(|stall| stall.time_ns);
    }
}
