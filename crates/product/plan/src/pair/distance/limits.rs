//! The shortest times that a distance permits.

use super::super::scenario::scenario;
use super::{
    Application, Commit, Config, Distribution, Duration, Group, Serialize, Ways, common, part,
};

/// Two heartbeats that are lost in a row, the third, and what the backup's answer to that comes late: the rounds that
/// it sends meanwhile, nine eighths apart, end 9/4 heartbeats after the last one that it heard, and its next comes at
/// 27/8.
const PROMISE: (u64, u64) = (27, 8);
/// The oldest answer of a witness that a primary in steady state relies on: four heartbeats, half of one since rounds do
/// not come on the dot.
const RENEWAL: (u64, u64) = (9, 2);
/// What is left of a shorter lease when it is renewed: two rounds, less that half.
const LEFT: (u64, u64) = (3, 2);

/// Between two answers of the backup, when one of its own rounds comes between.
const AGE: (u64, u64) = (9, 8);

/// The shortest times that the distance permits an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Least {
    /// From a state's publication to its acknowledgement.
    #[serde(rename = "deadline_ns", serialize_with = "super::limits::nanos")]
    pub deadline: Duration,
    /// The lease, so that the right with which a cycle begins outlasts reading and the way of its state.
    #[serde(rename = "lease_ns", serialize_with = "super::limits::nanos")]
    pub lease: Duration,
    /// Of one request to the field.
    #[serde(rename = "timeout_ns", serialize_with = "super::limits::nanos")]
    pub timeout: Duration,
    /// Between two cycles, without what the application computes.
    #[serde(rename = "period_ns", serialize_with = "super::limits::nanos")]
    pub period: Duration,
    /// From a state's publication until nobody takes over with it.
    #[serde(rename = "expiry_ns", serialize_with = "super::limits::nanos")]
    pub expiry: Duration,
}

pub(super) fn nanos<S: serde::Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(span.as_nanos())
}

impl Least {
    pub(super) fn of(
        app: &Application,
        (heartbeat, ways): (Duration, &Ways),
        (acknowledged, takeover): (Duration, Duration),
    ) -> Self {
        let deadline = acknowledged + ways.jitter;
        let requests = field(app) * 2;
        let right = right(heartbeat, ways);
        Self {
            lease: match app.commit {
                Commit::BeforeOutput => right + field(app) + deadline,
                Commit::Async => Duration::ZERO,
            },
            deadline,
            timeout: timeout(field(app)),
            period: match app.commit {
                Commit::BeforeOutput => requests + deadline,
                Commit::Async => requests.max(deadline),
            },
            expiry: app.period * 2 + app.deadline + takeover,
        }
    }
}

/// How old the promise is at most that a primary holds while nothing is lost.
pub(super) fn right(heartbeat: Duration, ways: &Ways) -> Duration {
    part(heartbeat, AGE.0, AGE.1) + ways.pair + ways.jitter
}

/// The shortest lease (P-81, P-82).
pub(super) fn lease(heartbeat: Duration, ways: &Ways) -> Duration {
    promise(heartbeat, ways).max(renewal(heartbeat, ways))
}

/// The shortest lease for the partner's promise (P-81).
pub(super) fn promise(heartbeat: Duration, ways: &Ways) -> Duration {
    part(heartbeat, PROMISE.0, PROMISE.1) + ways.pair + ways.jitter
}

/// The shortest lease for the reference points (P-82).
pub(super) fn renewal(heartbeat: Duration, ways: &Ways) -> Duration {
    let answer = ways.witness + ways.jitter;
    let near = answer <= part(heartbeat, LEFT.0, LEFT.1);
    let witness = (!near).then(|| part(heartbeat, RENEWAL.0, RENEWAL.1) + answer);
    witness.unwrap_or_default().max(ways.ping)
}

/// The longest time until the largest state of `app` is acknowledged while nothing else is sent and nothing lost, at the
/// bandwidths that are stated: on the wire, and there and back.
pub(super) fn acknowledged(config: &Config, group: &Group, app: &Application) -> Duration {
    let Some(node) = group.candidates.first() else {
        return Duration::ZERO;
    };
    let scenario = scenario(config, *node, crate::Machine::default());
    let carries = |link: &&crate::Link| {
        let mut ids = common(config, group).filter(|id| app.networks.contains(*id));
        ids.any(|id| config.networks[usize::from(id.0)].name == link.name)
    };
    let links: Vec<&crate::Link> = scenario.links.iter().filter(carries).collect();
    let all = links.iter().map(|link| u128::from(link.bandwidth)).sum();
    let on = |link: &&crate::Link| {
        let bandwidth = match app.distribution {
            Distribution::Spread => all,
            Distribution::Replicate => u128::from(link.bandwidth),
        };
        let bits = u128::from(scenario.packets.state_on(link, app.state_max)) * 8;
        let wire = (bits * 1_000_000_000).checked_div(bandwidth).unwrap_or(0);
        link.round_trip.1 + Duration::from_nanos(u64::try_from(wire).unwrap_or(u64::MAX))
    };
    links.iter().map(on).max().unwrap_or_default()
}

/// The shortest timeout of a request that takes so long: one on a connection that comes up in the same call has what that leaves,
/// and the runtime's timer cuts waits of more than two milliseconds by one (F-9).
fn timeout(request: Duration) -> Duration {
    let tick = Duration::from_millis(1);
    let connected = request * 2;
    match connected > tick {
        true => connected + tick,
        false => connected,
    }
}

/// The longest time of a request to the devices of `app`; zero if it has none.
pub(super) fn field(app: &Application) -> Duration {
    app.field
        .as_ref()
        .map_or(Duration::ZERO, |field| field.round_trip_max)
}
