//! One direction and one route: what is sent, and the configuration with which both ends run.

use bumpless_base::{ChannelId, Duration, LinkSet};
use bumpless_config::{
    AfterHotRestart, Application, ApplicationKind, Commit, Config, Distribution, Group, Security,
    StateSecurity, Synthetic, Unsent,
};
use bumpless_plan::cost::file::names_of;
use serde::{Deserialize, Serialize};

use crate::peer::TIMEOUT;

/// Largest state.
pub const LARGEST: u32 = 9_000_000;
/// Sizes from which costs are told.
const SIZES: [u32; 20] = [
    0, 700, 1_400, 4_000, 7_000, 15_000, 25_000, 35_000, 45_000, 65_000, 75_000, 120_000, 150_000,
    250_000, 400_000, 700_000, 1_400_000, 3_000_000, 5_000_000, LARGEST,
];
/// Sizes with which they are verified: others, and between those.
const ASKED: [u32; 9] = [
    1_000, 2_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 2_000_000, 8_000_000,
];
/// States that take longer on the wire are left out.
const LONGEST: Duration = Duration::from_secs(2);
/// Largest state in packets of half the size.
const LARGEST_HALVED: u32 = 1_400_000;
/// The nodes' lease: long, because what is measured is the transfer and not a take-over.
const LEASE: Duration = Duration::from_millis(200);
const START_WAIT: Duration = Duration::from_millis(420);
/// How often all sessions are gone through at most: where the system puts a process's threads differs from one to the
/// next, and what else a shared machine does from one second to the next, and with them what a transfer takes.
const REPETITIONS: usize = 15;
/// Rounds of a session, where there are so many.
const ROUNDS: usize = 4;
/// Small states are sent so many times as often: nearly all of their time is what wakes of threads take, which
/// differs most, and they cost nothing.
const OFTEN: usize = 4;
const SMALL: u32 = 100_000;

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To find costs, and to compare them with what sizes take from which they are not told.
    Calibrate,
    /// To compare kept costs with what those sizes take.
    Verify,
}

/// A direction, a route and the states that take it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Position among the sessions of a measurement; both ends must be in the same one.
    pub number: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// The networks, by name.
    pub networks: Vec<String>,
    /// Whether packets are shared out over them.
    pub spread: bool,
    /// State bytes in each full packet.
    pub payload: u16,
    /// The sizes of the states, bytes.
    pub sizes: Vec<u32>,
    /// How often the sizes are gone through.
    pub rounds: usize,
}

/// Whether costs are told from states of `size` bytes.
pub fn tells(size: u32) -> bool {
    SIZES.contains(&size)
}

/// Whether costs are verified with states of `size` bytes.
pub fn is_asked(size: u32) -> bool {
    ASKED.contains(&size)
}

/// All sessions between `nodes`, in the order in which both computers go through them. A calibration sends the sizes with
/// which costs are verified among those from which they are told, because what a transfer takes moves with what else the
/// computers do.
pub fn sessions(
    config: &Config,
    nodes: &[String; 2],
    purpose: Purpose,
    rounds: usize,
) -> Vec<Session> {
    let mut sessions = Vec::new();
    let payload = config.transfer.payload_size;
    let repetitions = rounds.div_ceil(ROUNDS).clamp(1, REPETITIONS);
    let rounds = rounds.div_ceil(repetitions);
    let [first, second] = nodes;
    let mut all = [SIZES.as_slice(), ASKED.as_slice()].concat();
    all.sort_unstable();
    all.dedup();
    let directions = [(first, second), (second, first)];
    for (from, to) in directions.repeat(repetitions) {
        for (networks, spread) in routes(config, nodes) {
            let one = |payload, sizes: &[u32], largest, rounds| Session {
                number: 0,
                purpose,
                from: from.clone(),
                to: to.clone(),
                networks: names_of(config, networks),
                spread,
                payload,
                sizes: short_enough(config, networks, sizes, largest),
                rounds,
            };
            if purpose == Purpose::Calibrate {
                let half = (payload / 2).max(1);
                sessions.push(one(payload, &all, LARGEST, rounds));
                sessions.push(one(half, &SIZES, LARGEST_HALVED, rounds.div_ceil(2)));
            } else {
                sessions.push(one(payload, &ASKED, LARGEST, rounds));
            }
        }
    }
    for (session, number) in sessions.iter_mut().zip(0..) {
        session.number = number;
    }
    sessions
}

/// Each network that both nodes have, alone; then what the states of their applications take besides.
fn routes(config: &Config, nodes: &[String; 2]) -> Vec<(LinkSet, bool)> {
    let ids: Vec<_> = nodes.iter().filter_map(|name| config.node(name)).collect();
    let both = LinkSet::first(config.networks.len());
    let present = both.iter().filter(|link| {
        let has = |id: &bumpless_base::NodeId| {
            config.nodes[usize::from(id.0)].addresses[usize::from(link.0)].is_some()
        };
        ids.iter().all(has)
    });
    let common: LinkSet = present.collect();
    let mut routes: Vec<(LinkSet, bool)> = common
        .iter()
        .map(|link| (LinkSet::only(link), false))
        .collect();
    let theirs = |app: &&Application| {
        ids.iter()
            .all(|id| config.groups[app.group].candidates.contains(id))
    };
    for app in config.applications.iter().filter(theirs) {
        let networks = app.networks.intersection(common);
        let spread = app.distribution == Distribution::Spread && networks.len() > 1;
        if !networks.is_empty() && !routes.contains(&(networks, spread)) {
            routes.push((networks, spread));
        }
    }
    routes
}

/// Those of `sizes` up to `largest` that do not take too long on the slowest of `networks`.
fn short_enough(config: &Config, networks: LinkSet, sizes: &[u32], largest: u32) -> Vec<u32> {
    let rates = networks
        .iter()
        .map(|link| config.networks[usize::from(link.0)].bandwidth);
    let slowest = rates.filter(|rate| *rate > 0).min();
    let short = |size: &u32| {
        slowest.is_none_or(|rate| {
            u128::from(*size) * 8_000_000_000 / u128::from(rate) <= u128::from(LONGEST.as_nanos())
        })
    };
    let sizes = sizes.iter().copied();
    sizes
        .filter(|size| *size <= largest)
        .filter(short)
        .collect()
}

impl Session {
    /// Whether `other` sends the same over the same route in the same direction.
    pub fn repeats(&self, other: &Self) -> bool {
        let unnumbered = Self {
            number: other.number,
            ..self.clone()
        };
        unnumbered == *other
    }

    /// One round: the position of each size, small ones several times.
    pub fn round(&self) -> Vec<usize> {
        let times = |size: &u32| if *size < SMALL { OFTEN } else { 1 };
        let each = self.sizes.iter().enumerate();
        each.flat_map(|(at, size)| std::iter::repeat_n(at, times(size)))
            .collect()
    }

    /// Seconds that it will take, roughly.
    pub fn estimate(&self, config: &Config) -> f64 {
        let rate = |name: &String| {
            let network = config.networks.iter().find(|network| network.name == *name);
            network.map_or(0, |network| network.bandwidth)
        };
        let rate = self
            .networks
            .iter()
            .map(rate)
            .filter(|rate| *rate > 0)
            .min();
        let round = self.round();
        let bytes: f64 = round.iter().map(|&at| f64::from(self.sizes[at])).sum();
        let wire = bytes * 8.6 / rate.unwrap_or(10_000_000_000) as f64;
        1.5 + self.rounds as f64 * (wire + round.len() as f64 * 0.003)
    }

    /// The configuration with which its ends run: the networks and nodes of `config`, and one channel.
    ///
    /// # Errors
    /// A name that `config` does not have.
    pub fn configuration(&self, config: &Config) -> Result<Config, String> {
        let node = |name: &str| {
            config
                .node(name)
                .ok_or_else(|| format!("no node is called '{name}'"))
        };
        let candidates = vec![node(&self.from)?, node(&self.to)?];
        let mut all = LinkSet::first(config.networks.len()).iter();
        let named = |link: &bumpless_base::LinkId| {
            self.networks
                .contains(&config.networks[usize::from(link.0)].name)
        };
        let networks: LinkSet = all.by_ref().filter(named).collect();
        let mut own = config.clone();
        // Nodes of pairs with other names, and of other fingerprints, do not listen to each other.
        own.pair = format!("{} {:?} {}", config.pair, self.purpose, self.number);
        // Its ends hold no key.
        own.security = Security::Open;
        own.networks
            .iter_mut()
            .for_each(|network| network.protection = 0);
        own.timing.lease = LEASE;
        own.timing.start_wait = START_WAIT;
        own.transfer.payload_size = self.payload;
        own.references.clear();
        own.groups = vec![Group {
            name: "calibration".into(),
            candidates,
            references: Vec::new(),
            hot_restart: None,
            after_hot_restart: AfterHotRestart::Cold,
        }];
        own.applications = vec![self.application(networks)?];
        Ok(own)
    }

    fn application(&self, networks: LinkSet) -> Result<Application, String> {
        Ok(Application {
            name: "state".into(),
            group: 0,
            channel: ChannelId::new(1).ok_or("there is no channel 1")?,
            period: TIMEOUT,
            deadline: TIMEOUT,
            // The newest state stays readable: only the session ends it.
            expiry: TIMEOUT * 2,
            hot_restart: TIMEOUT * 2,
            begins_anew: true,
            persist: None,
            commit: Commit::BeforeOutput,
            distribution: if self.spread {
                Distribution::Spread
            } else {
                Distribution::Replicate
            },
            unsent: Unsent::Replace,
            networks,
            retransmissions: Some(0),
            accepted_loss_per_year: None,
            state_max: LARGEST,
            kind: ApplicationKind::Synthetic(Synthetic {
                size: LARGEST,
                changed_share: 0.0,
            }),
            field: None,
            security: StateSecurity::NONE,
        })
    }

    /// What it does, for people.
    pub fn what(&self) -> String {
        let how = if self.spread { "spread over " } else { "" };
        format!(
            "{} to {} on {how}{}",
            self.from,
            self.to,
            self.networks.join(" and ")
        )
    }
}
