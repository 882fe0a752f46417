//! What a study has found, as it is kept: `bumpless.wan-study/1` (spec/wan.md).

use bumpless_bench::run::meter::Jitter;
use serde::{Deserialize, Serialize};

use crate::kept::{Head, Kept as _};

/// A whole study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// What every result begins with.
    #[serde(flatten)]
    pub head: Head,
    /// The network.
    pub network: Network,
    /// What was asked for.
    pub settings: Settings,
    /// What could not be measured here.
    pub not_measured: Vec<NotMeasured>,
    /// What the meters of the machine saw, from the beginning of the study on.
    pub jitter: Jitter,
    /// What meters saw that are ordinary threads: they are late, too, when others have the processors. Nothing is judged by it.
    pub lack: Jitter,
    /// What ours promises, judged.
    pub promises: Vec<Promise>,
    /// Why it ended before its time, if nobody wanted it to.
    #[serde(default)]
    pub broke_off: Option<String>,
    /// Messages of others while runs were made, for each time that there were any.
    #[serde(default)]
    pub background: Vec<Background>,
    /// How many packets found no room where they were to be held, if the kernel told.
    #[serde(default)]
    pub overflowed: Option<u64>,
    /// Every run.
    pub runs: Vec<Run>,
}

/// The network that it was made on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Nodes.
    pub nodes: usize,
    /// Links.
    pub links: usize,
    /// What a router adds, microseconds.
    pub router_us: u32,
    /// How links are delayed: `nothing`, `netem`, `held`.
    pub delays: String,
    /// Who decided where packets went: `fixed` or `ospf`; results without a word on it are of fixed routes.
    #[serde(default)]
    pub routing: String,
    /// Where messages came from.
    pub centre: String,
    /// The kernel's congestion control.
    pub congestion: String,
}

impl Network {
    /// Its size and how its links are delayed, for people.
    pub fn told(&self) -> String {
        let delays = match self.delays.as_str() {
            "held" => "held at the host that a packet is for",
            "netem" => "by netem on each link",
            "nothing" => "none",
            _ => "LACKING, every link was instant",
        };
        let routes = match self.routing.as_str() {
            "ospf" => ", routes by BIRD on each router, OSPF with BFD",
            _ => "",
        };
        format!(
            "{} nodes and {} links, delays: {delays}{routes}",
            self.nodes, self.links
        )
    }
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Runs of each case.
    pub runs: u32,
    /// Seconds of a run.
    pub seconds: u64,
    /// Runs that went side by side.
    pub side_by_side: usize,
    /// Messages of others in a second, beside which all runs were made once more; 0: they were not.
    #[serde(default)]
    pub background: u32,
    /// What all chance was drawn from.
    pub seed: u64,
}

/// What could not be measured, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// Name of the transport.
    pub transport: String,
    /// Why.
    pub why: String,
}

/// Messages of others that went across the network while runs were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// Messages that were to be sent in a second.
    pub each_second: u32,
    /// Bytes of one.
    pub message_bytes: usize,
    /// Where they went to.
    pub centre: String,
    /// How many substations sent, in turn.
    pub substations: usize,
    /// How many of these have a link on their way that outages of runs cut.
    pub behind_outages: usize,
    /// How long, seconds.
    pub seconds: f64,
    /// Whether daemons decided over which ways: what no outage cut is then reckoned from the fewest hops alone.
    #[serde(default)]
    pub reckoned: bool,
    /// Over ways that no outage cut.
    pub clear: Carried,
    /// Over ways that outages cut now and then.
    pub behind: Carried,
    /// Messages that the system did not take.
    #[serde(default)]
    pub refused: u64,
    /// Messages that came and that the receiver's socket had no room for: of the lost ones, those that the network did not lose.
    #[serde(default)]
    pub overrun: u64,
    /// What a message took over a way that no outage cut, until the receiver had a processor, microseconds: the median.
    pub p50_us: Option<u32>,
    /// 99 of 100 took no longer.
    pub p99_us: Option<u32>,
    /// The longest.
    pub max_us: Option<u32>,
    /// Of each second, how many messages were sent in it, over whichever ways, and how many of those came.
    pub course: Vec<(u32, u32)>,
}

/// Messages that were sent, and those of them that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Sent.
    pub sent: u64,
    /// Came.
    pub received: u64,
}

impl Carried {
    /// How many were lost.
    pub const fn lost(self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

impl Background {
    /// Messages that were really sent in a second.
    pub fn achieved(&self) -> f64 {
        (self.clear.sent + self.behind.sent) as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// A promise of ours, and what was seen of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// What is promised.
    pub says: String,
    /// What was seen.
    pub seen: String,
    /// How many figures it was judged by.
    pub count: usize,
    /// How many were above it.
    pub above: usize,
    /// How many of those the machine explains: it stood still for as long as the figure is above.
    pub explained: usize,
    /// Whether it held: nothing that the machine does not explain was above.
    pub held: bool,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the transport.
    pub transport: String,
    /// What the backup was like: `ethernet` or `lte`; `none` if there was none to go to.
    pub backup: String,
    /// Over what messages went: `network` or `backup`; they go elsewhere in an outage.
    pub over: String,
    /// Messages of others in a second beside it.
    #[serde(default)]
    pub background: u32,
    /// Its number among those of its case.
    pub number: u32,
    /// To which substation.
    pub substation: String,
    /// What the network's links take there and back, microseconds.
    pub path_us: u64,
    /// When the first message was due, nanoseconds since the study began.
    pub began_ns: u64,
    /// When the way began to lose everything, nanoseconds since the first message was due; null: never.
    pub cut_ns: Option<u64>,
    /// When it carried again.
    pub healed_ns: Option<u64>,
    /// When the program itself went to the backup.
    pub switched_ns: Option<u64>,
    /// How long after it was due each message was given to the socket, microseconds; one is due every 50 ms.
    pub late_us: Vec<u32>,
    /// The round trip of each message, microseconds; null: no answer came.
    pub rtt_us: Vec<Option<u32>>,
    /// What passed the substation's links until the way died, and from then on until it carried again.
    #[serde(default)]
    pub bytes: Option<[Passed; 2]>,
    /// The file with a capture of it, if one was made.
    #[serde(default)]
    pub capture: Option<String>,
    /// What that lacks, or why it could not be made.
    #[serde(default)]
    pub capture_lacks: Option<String>,
    /// Why it gave no figures.
    pub error: Option<String>,
}

/// Bytes that passed a substation's links in some time, in both directions, whoever's they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The time, microseconds.
    pub us: u64,
    /// Over the network.
    pub network: u64,
    /// Over the backup.
    pub backup: u64,
}

impl Study {
    /// One that begins.
    pub fn begin(settings: Settings) -> Self {
        Self {
            head: Head::begin(Self::SCHEMA),
            settings,
            ..Self::default()
        }
    }
}
