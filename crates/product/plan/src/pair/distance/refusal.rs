//! What a configuration sets shorter than the distance permits, each with the reason and what would do.

use super::{Application, Commit, Distance, Duration, Far, Serialize, Ways, limits};

/// One thing that the distance does not permit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The clause that it breaks, such as `P-81`.
    pub clause: &'static str,
    /// The field of the configuration, without the place in a list.
    pub field: &'static str,
    /// The group or application that it is about.
    pub of: String,
    /// What it is, nanoseconds.
    pub is_ns: u64,
    /// What it would have to be at least, nanoseconds.
    pub least_ns: u64,
    /// All of it in a sentence.
    pub text: String,
}

/// Milliseconds that are no fewer, with as many digits as a configuration needs.
fn ms(span: Duration) -> String {
    format!("{}", span.as_nanos().div_ceil(1_000) as f64 / 1e3)
}

struct Draft<'a> {
    clause: &'static str,
    field: &'static str,
    of: &'a str,
    is: Duration,
    least: Duration,
}

impl Draft<'_> {
    /// The refusal, if it is one; `why` says what the least consists of, and `also` what else would do.
    fn judged(self, kind: &str, why: impl FnOnce() -> String, also: &str) -> Option<Refusal> {
        let Self {
            clause,
            field,
            of,
            is,
            least,
        } = self;
        (is < least).then(|| Refusal {
            clause,
            field,
            of: of.to_owned(),
            is_ns: is.as_nanos(),
            least_ns: least.as_nanos(),
            text: format!(
                "{kind} {of}: {field} = {} is less than {} ({clause}); give at least {}{also}",
                ms(is),
                why(),
                ms(least)
            ),
        })
    }
}

/// What the group's distance does not permit.
pub(super) fn of_group(distance: &Distance, ways: &Ways) -> Vec<Refusal> {
    let timing = &distance.timing;
    let promise = limits::promise(timing.heartbeat, ways);
    let renewal = limits::renewal(timing.heartbeat, ways);
    let start = match timing.start_wait < distance.least_lease.stretched(timing.clock_drift_ppm) * 2
    {
        true => format!(
            " and start_wait_ms = {}",
            ms(distance.least_lease.stretched(timing.clock_drift_ppm) * 2)
        ),
        false => String::new(),
    };
    let draft = |clause, least| Draft {
        clause,
        field: "lease_ms",
        of: &distance.group,
        is: timing.lease,
        least,
    };
    let nodes = distance.nodes.join(" and ");
    let heartbeat = ms(timing.heartbeat);
    let farthest = |ways: &[(String, Duration)]| {
        let way = ways.iter().max_by_key(|(_, way)| *way);
        way.map_or_else(String::new, |(name, way)| {
            format!("{} ms there and back ({name})", ms(*way))
        })
    };
    let between = || {
        format!(
            "27/8 heartbeats of {heartbeat} ms and the way between {nodes}, {}: with two heartbeats lost the backup's promise \
             would end before the next one comes",
            farthest(&distance.networks)
        )
    };
    let reference = || {
        format!(
            "9/2 heartbeats of {heartbeat} ms and the way to the reference point, {}: a primary whose partner has died would \
             stop until the answer comes",
            farthest(&distance.references)
        )
    };
    [
        draft("P-81", promise).judged("group", between, &start),
        draft("P-82", renewal).judged("group", reference, &start),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the distance does not permit this application.
pub(super) fn of_application(app: &Application, far: &Far, lease: Duration) -> Vec<Refusal> {
    let least = &far.least;
    let draft = |clause, field, is, least| Draft {
        clause,
        field,
        of: &app.name,
        is,
        least,
    };
    let state = || "its state takes on the wire and there and back between the nodes".to_owned();
    let right = || {
        "the age of the right that a cycle begins with, reading, and the way of its state and its answer together: outputs \
         would leave without redundancy"
            .to_owned()
    };
    let request = || "a request to its field devices takes there and back".to_owned();
    let cycle = || match app.commit {
        Commit::BeforeOutput => {
            "reading, the way of its state and its answer, and writing take one after the other"
                .to_owned()
        }
        Commit::Async => {
            "reading and writing, or the way of its state and its answer, take".to_owned()
        }
    };
    let other = match app.commit {
        Commit::BeforeOutput => ", or commit = \"async\"",
        Commit::Async => "",
    };
    let timeout = app.field.as_ref().map_or(far.field, |field| field.timeout);
    let takeover = || {
        "two periods, a deadline and the time to take over: the backup would find its state too old"
            .to_owned()
    };
    [
        draft("P-89", "lease_ms", lease, least.lease).judged(
            "application",
            right,
            ", or commit = \"async\"",
        ),
        draft("P-83", "deadline_ms", app.deadline, least.deadline).judged("application", state, ""),
        draft("P-84", "timeout_ms", timeout, least.timeout).judged("application", request, ""),
        draft("P-84", "period_ms", app.period, least.period).judged("application", cycle, other),
        draft("P-87", "expiry_ms", app.expiry, least.expiry).judged("application", takeover, ""),
        draft("P-87", "hot_restart_ms", app.hot_restart, least.expiry).judged(
            "application",
            takeover,
            "",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
