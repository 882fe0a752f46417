//! What the way between the nodes, to their reference points and to their field devices permits, and how long a
//! failover then takes (`spec/plan.md`, P-80 to P-89).
//!
//! | module | owns |
//! |---|---|
//! | `limits` | the shortest times that a distance permits |
//! | `gaps` | how long outputs may be missing |
//! | `ending` | how a site ends, and which of the gaps is promised then |
//! | `refusal` | what a configuration sets shorter |
//! | `sizes` | times that fit |

mod ending;
mod gaps;
mod limits;
mod refusal;
mod sizes;

use bumpless_base::{Duration, LinkId, NodeId};
use bumpless_config::{
    Application, Commit, Config, Distribution, Group, Reference, ReferenceKind, Timing,
};
use serde::Serialize;

pub use ending::Ending;
pub use gaps::Gaps;
pub use limits::Least;
pub use refusal::Refusal;
pub use sizes::Sizes;

/// How far apart the two nodes of a group are from each other and from what they work with, and what follows.
#[derive(Clone, Debug)]
pub struct Distance {
    /// The group.
    pub group: String,
    /// Its candidates.
    pub nodes: Vec<String>,
    /// Each network on which both are, and the longest way there and back.
    pub networks: Vec<(String, Duration)>,
    /// Each reference point, and the longest way there and back from either node.
    pub references: Vec<(String, Duration)>,
    /// Heartbeat, lease and drift of the configuration.
    pub timing: Timing,
    /// The shortest lease that these ways permit with this heartbeat.
    pub least_lease: Duration,
    /// At most from the end of a primary until its backup holds it for silent.
    pub detection: Duration,
    /// At most from the end of a primary until its backup has the role.
    pub takeover: Duration,
    /// Its applications.
    pub applications: Vec<Far>,
    /// What of the configuration this distance does not permit.
    pub refusals: Vec<Refusal>,
}

/// One application over this distance.
#[derive(Clone, Debug)]
pub struct Far {
    /// Its name.
    pub name: String,
    /// Longest time of a request to its field devices; zero if it has none.
    pub field: Duration,
    /// The shortest times that the distance permits.
    pub least: Least,
    /// How long outputs may be missing.
    pub gaps: Gaps,
}

/// The ways of a group, as far as the formulas need them.
#[derive(Clone, Copy, Debug)]
struct Ways {
    /// There and back between the nodes, on the longest of their networks.
    pair: Duration,
    /// There and back to the farthest witness.
    witness: Duration,
    /// There and back to the farthest address that is pinged.
    ping: Duration,
    /// How much later than intended a thread may go on.
    jitter: Duration,
}

/// Fraction of a span.
fn part(span: Duration, numerator: u64, denominator: u64) -> Duration {
    Duration::from_nanos((span * numerator).as_nanos().div_ceil(denominator))
}

/// What is far apart in each group of `config`.
pub fn distances(config: &Config) -> Vec<Distance> {
    let groups = 0..config.groups.len();
    groups.map(|group| distance(config, group)).collect()
}

/// Whether a group is farther apart than its configuration permits; sooner than all of [`distances`] is told.
pub fn is_refused(config: &Config) -> bool {
    let groups = 0..config.groups.len();
    groups
        .into_iter()
        .any(|group| !distance(config, group).refusals.is_empty())
}

fn distance(config: &Config, at: usize) -> Distance {
    let group = &config.groups[at];
    let networks: Vec<_> = common(config, group).collect();
    let references: Vec<_> = group
        .references
        .iter()
        .map(|&reference| &config.references[reference])
        .collect();
    let farthest = |is_meant: fn(&ReferenceKind) -> bool| {
        let meant = references.iter().filter(|it| is_meant(&it.kind));
        meant.map(|it| round_trip(config, it)).max()
    };
    let network = |id: &LinkId| &config.networks[usize::from(id.0)];
    let pair = networks.iter().map(|id| network(id).round_trip_max).max();
    let ways = Ways {
        pair: pair.unwrap_or_default(),
        witness: farthest(|kind| matches!(kind, ReferenceKind::Witness(_))).unwrap_or_default(),
        ping: farthest(|kind| matches!(kind, ReferenceKind::Ping(_))).unwrap_or_default(),
        jitter: config.plan.jitter,
    };
    let timing = &config.timing;
    let takeover = gaps::takeover(timing, &ways);
    let members = config.applications.iter().filter(|app| app.group == at);
    let far = |app: &Application| {
        let acknowledged = limits::acknowledged(config, group, app);
        Far {
            name: app.name.clone(),
            field: limits::field(app),
            least: Least::of(app, (timing.heartbeat, &ways), (acknowledged, takeover)),
            gaps: Gaps::of(app, timing, &ways, takeover),
        }
    };
    let applications: Vec<Far> = members.clone().map(far).collect();
    let each = applications.iter().map(|far| far.least.lease);
    let least_lease = each.fold(limits::lease(timing.heartbeat, &ways), Duration::max);
    let mut distance = Distance {
        group: group.name.clone(),
        nodes: group
            .candidates
            .iter()
            .map(|node| config.nodes[usize::from(node.0)].name.clone())
            .collect(),
        networks: networks
            .iter()
            .map(|id| (network(id).name.clone(), network(id).round_trip_max))
            .collect(),
        references: references
            .iter()
            .map(|it| (it.name.clone(), round_trip(config, it)))
            .collect(),
        timing: timing.clone(),
        least_lease,
        detection: gaps::detection(timing, &ways),
        takeover,
        applications,
        refusals: Vec::new(),
    };
    distance.refusals = refusal::of_group(&distance, &ways);
    for (app, far) in members.zip(&distance.applications) {
        distance
            .refusals
            .extend(refusal::of_application(app, far, timing.lease));
    }
    distance
}

/// The longest way to a reference point and back.
fn round_trip(config: &Config, reference: &Reference) -> Duration {
    let network = &config.networks[usize::from(reference.network.0)];
    reference.round_trip_max.unwrap_or(network.round_trip_max)
}

/// Networks on which both candidates are.
fn common<'a>(config: &'a Config, group: &'a Group) -> impl Iterator<Item = LinkId> + 'a {
    let is_on = |node: &NodeId, network: usize| {
        config.nodes[usize::from(node.0)].addresses[network].is_some()
    };
    let ids = 0..config.networks.len();
    let common = ids.filter(move |&id| group.candidates.iter().all(|node| is_on(node, id)));
    common.map(|id| LinkId(id as u8))
}
