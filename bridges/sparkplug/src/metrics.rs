//! The metrics of an edge node or of a device: how they were born, and what has changed since.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bumpless_bridge::model::Shown;
use srad_eon::{
    AliasConfig, BirthInitializer, BirthMetricDetails, DeviceMetricManager, MetricManager,
    MetricToken, NodeMetricManager, PublishMetric,
};
use srad_types::traits::MetricValue;

/// Values by the names of metrics. What a node does not say has none, so it is no metric then.
pub type Values = BTreeMap<String, Shown>;

/// Metrics, shared between who looks at the node and who makes births.
#[derive(Clone)]
pub struct Metrics {
    state: Arc<Mutex<State>>,
    /// How often the edge node was born.
    births: Arc<AtomicU64>,
    whose: Whose,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Node,
    Device,
}

#[derive(Default)]
struct State {
    /// The birth of the edge node in which these were born.
    born_in: u64,
    /// What is to be known.
    values: Values,
    /// What hosts know since the last birth.
    told: BTreeMap<String, (Token, Shown)>,
}

/// What must be published.
pub enum Change {
    /// Nothing.
    Nothing,
    /// Other metrics than before: all of them.
    Birth,
    /// Those that have changed.
    Data(Vec<PublishMetric>),
}

/// By what the library knows a metric that was born.
enum Token {
    Text(MetricToken<String>),
    Texts(MetricToken<Vec<String>>),
    Flag(MetricToken<bool>),
    Count(MetricToken<u64>),
    Real(MetricToken<f64>),
}

impl Metrics {
    /// Those of an edge node.
    pub fn of_node() -> Self {
        Self {
            state: Arc::default(),
            births: Arc::default(),
            whose: Whose::Node,
        }
    }

    /// Those of a device of this edge node.
    pub fn of_device(&self) -> Self {
        Self {
            state: Arc::default(),
            births: Arc::clone(&self.births),
            whose: Whose::Device,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `values` over, those that `waits` says later; returns what follows.
    pub fn update(&self, values: Values, waits: impl Fn(&str, &Shown) -> bool) -> Change {
        let mut state = self.lock();
        let differs = are_others(&state.values, &values);
        state.values = values;
        if differs {
            return Change::Birth;
        }
        if state.born_in != self.births.load(Ordering::Relaxed) {
            // The edge node has been born again. With that a device is unknown until its own birth, which brings all.
            return Change::Nothing;
        }
        let State { values, told, .. } = &mut *state;
        let mut changed = Vec::new();
        for (name, value) in values {
            // What was not born yet comes with the birth.
            let Some((token, known)) = told.get_mut(name) else {
                continue;
            };
            if known == value || waits(name, value) {
                continue;
            }
            known.clone_from(value);
            changed.extend(token.publish(value));
        }
        match changed.is_empty() {
            true => Change::Nothing,
            false => Change::Data(changed),
        }
    }

    /// Whether `values` are those of other metrics.
    pub fn differs(&self, values: &Values) -> bool {
        are_others(&self.lock().values, values)
    }
}

/// Whether names or types are others.
fn are_others(before: &Values, now: &Values) -> bool {
    let same = |(before, now): ((&String, &Shown), (&String, &Shown))| {
        before.0 == now.0 && discriminant(before.1) == discriminant(now.1)
    };
    before.len() != now.len() || !before.iter().zip(now).all(same)
}

impl Token {
    fn publish(&self, value: &Shown) -> Option<PublishMetric> {
        Some(match (self, value) {
            (Self::Text(token), Shown::Text(it)) => token.create_publish_metric(Some(it.clone())),
            (Self::Texts(token), Shown::Texts(it)) => token.create_publish_metric(Some(it.clone())),
            (Self::Flag(token), Shown::Flag(it)) => token.create_publish_metric(Some(*it)),
            (Self::Count(token), Shown::Count(it)) => token.create_publish_metric(Some(*it)),
            (Self::Real(token), Shown::Real(it)) => token.create_publish_metric(Some(*it)),
            _ => return None,
        })
    }

    /// Has a metric born; `None`: the library does not take it.
    fn born(birth: &mut BirthInitializer, name: &str, value: &Shown) -> Option<Self> {
        Some(match value {
            Shown::Nothing => return None,
            Shown::Text(it) => Self::Text(register(birth, name, it.clone())?),
            Shown::Texts(it) => Self::Texts(register(birth, name, it.clone())?),
            Shown::Flag(it) => Self::Flag(register(birth, name, *it)?),
            Shown::Count(it) => Self::Count(register(birth, name, *it)?),
            Shown::Real(it) => Self::Real(register(birth, name, *it)?),
        })
    }
}

fn register<T: MetricValue>(
    birth: &mut BirthInitializer,
    name: &str,
    value: T,
) -> Option<MetricToken<T>> {
    // Names and not aliases: a host that has missed the birth knows what it hears.
    let details = BirthMetricDetails::new_with_initial_value(name, value);
    birth
        .register_metric(details.with_alias_config(AliasConfig::None))
        .ok()
}

impl MetricManager for Metrics {
    fn initialise_birth(&self, birth: &mut BirthInitializer) {
        let mut state = self.lock();
        if self.whose == Whose::Node {
            self.births.fetch_add(1, Ordering::Relaxed);
        }
        state.born_in = self.births.load(Ordering::Relaxed);
        let State { values, told, .. } = &mut *state;
        told.clear();
        for (name, value) in values {
            if let Some(token) = Token::born(birth, name, value) {
                told.insert(name.clone(), (token, value.clone()));
            }
        }
    }
}

impl NodeMetricManager for Metrics {}
impl DeviceMetricManager for Metrics {}
