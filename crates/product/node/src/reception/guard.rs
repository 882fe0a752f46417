//! The guard of a node's networks: its own flows are received with the plan's budgets, everything else with a bounded one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_base::NodeId;
use bumpless_capture::interfaces;
use bumpless_config::{Config, ReceptionGuard};
use bumpless_guard::Setup;
use bumpless_plan::reception as plan;
use bumpless_plan::reception::cost::{Budgets, Costs, Load};
use bumpless_reception::{Filter, NamedFlow, Reception, Rest, StartError, rates, setup};
use serde_json::{Value, json};

use super::{interfaces as interfaces_json, weaknesses};
use crate::directory::Directory;
use crate::note::Note;

/// Between two looks at whether the configuration changes.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks at the interfaces.
const ROUND: Duration = Duration::from_secs(1);

/// What guards a node's networks for as long as it is held.
#[derive(Clone, Default)]
pub struct NetworkGuard(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// `None`: nothing is guarded, for the reason among the notes or since there is nothing to guard.
    held: Option<Held>,
}

struct Held {
    node: NodeId,
    setup: Setup,
    names: Vec<String>,
    /// What was done for which configuration.
    renewal: Renewal,
    interfaces: Vec<String>,
    reception: Reception,
    /// Passes everything, while the configuration changes.
    open: Filter,
}

/// Whether budgets are those of the configuration in force.
struct Renewal {
    /// Of the configuration for which they are, or were to be.
    fingerprint: u64,
    is_lifted: bool,
    /// Why it has no budgets of the configuration in force.
    failure: Option<String>,
}

impl Renewal {
    /// Whether to make budgets now for the configuration with this fingerprint: it is another one, everything passes, or it is the time for
    /// another attempt after a failed one.
    const fn is_to_begin(&self, fingerprint: u64, is_round: bool) -> bool {
        self.fingerprint != fingerprint || self.is_lifted || (is_round && self.failure.is_some())
    }
}

impl NetworkGuard {
    /// Guards the interfaces of this node's networks as far as it is permitted; what keeps it from that is added to `notes`.
    pub fn start(config: &Config, node: NodeId, notes: &mut Vec<Note>) -> Self {
        let interfaces = interfaces_of(config, node);
        if interfaces.is_empty() {
            return Self::default();
        }
        if config.reception.guard == ReceptionGuard::Off {
            let text =
                "the networks are not guarded against floods of packets, as [reception] says";
            notes.push(Note::lasting(text.to_owned()));
            return Self::default();
        }
        let (setup, names) = asked(config, node);
        let started = Reception::start_where_possible(&setup, &interfaces).and_then(|reception| {
            let open = Filter::open().map_err(|error| vec![StartError::Load(error)])?;
            Ok((reception, open))
        });
        match started {
            Ok((reception, open)) => Self(Arc::new(Mutex::new(State {
                held: Some(Held {
                    node,
                    setup,
                    names,
                    renewal: Renewal {
                        fingerprint: config.fingerprint(),
                        is_lifted: false,
                        failure: None,
                    },
                    interfaces,
                    reception,
                    open,
                }),
            }))),
            Err(errors) => {
                notes.push(Note::lasting(refused(&errors)));
                Self::default()
            }
        }
    }

    /// Looks after it for as long as it is held: interfaces that come back, a configuration that changes.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn look_after(&self, directory: Arc<Mutex<Directory>>) -> std::io::Result<()> {
        if self.lock().held.is_none() {
            return Ok(());
        }
        let held = Arc::downgrade(&self.0);
        let thread = thread::Builder::new().name("reception".into());
        thread.spawn(move || watch(&held, &directory)).map(drop)
    }

    /// What status says of it, null where nothing is guarded, and what weakens it.
    pub fn told(&self) -> (Value, Vec<String>) {
        let state = self.lock();
        let Some(held) = &state.held else {
            return (Value::Null, Vec::new());
        };
        let lifted = held.renewal.is_lifted.then(|| {
            "the networks are not guarded against floods of packets until the change of the configuration is made".to_owned()
        });
        let besides = lifted.into_iter().chain(held.renewal.failure.clone());
        match held.reception.report() {
            Ok(reports) => {
                let told = interfaces_json(&reports, &held.setup, &held.names);
                let weaknesses = weaknesses(&reports).into_iter().chain(besides);
                (json!({"interfaces": told}), weaknesses.collect())
            }
            Err(error) => {
                let weakness = format!("what the networks' guard counts cannot be read: {error}");
                (json!({"interfaces": []}), vec![weakness])
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(errors: &[StartError]) -> String {
    let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
    format!(
        "the networks are not guarded against floods of packets: {}",
        all.join("; ")
    )
}

/// The interfaces with this node's addresses, the loopback one left out: it has no driver, and others share it.
fn interfaces_of(config: &Config, node: NodeId) -> Vec<String> {
    let own = &config.nodes[usize::from(node.0)].addresses;
    let has = |address: std::net::IpAddr| own.iter().flatten().any(|it| it.ip() == address);
    let all = interfaces().unwrap_or_default().into_iter();
    let mine = all.filter(|it| it.addresses.iter().any(|&address| has(address)));
    mine.map(|it| it.name).collect()
}

/// What is asked of the guard of `node` with this configuration.
pub fn setup_of(config: &Config, node: NodeId) -> Setup {
    asked(config, node).0
}

/// What is asked of the guard, and the names of its flows.
fn asked(config: &Config, node: NodeId) -> (Setup, Vec<String>) {
    let (flows, rest) = planned(config, node);
    let setup = setup(&flows, &rest);
    (setup, flows.into_iter().map(|flow| flow.name).collect())
}

/// The node's flows, and budgets for the rest.
fn planned(config: &Config, node: NodeId) -> (Vec<NamedFlow>, Rest) {
    let flow = |it: plan::Expected| NamedFlow {
        name: it.name,
        matches: it.matches,
        rate: it.rate,
    };
    let flows: Vec<_> = plan::expected(config, node).into_iter().map(flow).collect();
    let rest = Rest {
        unregistered: config.reception.other_per_s,
        ..Rest::USUAL
    };
    (flows, rest)
}

/// With what reception is reckoned.
pub const fn costs(config: &Config) -> Costs {
    Costs {
        packet_ns: config.reception.packet_ns,
        dropped_ns: config.reception.dropped_ns,
        reserve_percent: config.reception.reserve_percent,
        ring: config.reception.ring,
    }
}

/// What reception costs a node, with each of its networks on an interface of its own: budgets for packets from anywhere are used on each of
/// them, those of senders on the one on which these are (V-92).
pub fn load(config: &Config, node: NodeId) -> Load {
    let (flows, rest) = planned(config, node);
    let addresses = config.nodes[usize::from(node.0)].addresses.iter();
    let networks = addresses.flatten().count();
    let (from_anywhere, from_known) = rates(&flows);
    let budgets = Budgets {
        interfaces: 1,
        from_known: &from_known,
        from_anywhere: &from_anywhere.repeat(networks),
        rest: &rest.rates().repeat(networks),
    };
    Load::new(&costs(config), &budgets)
}

fn watch(held: &Weak<Mutex<State>>, directory: &Mutex<Directory>) {
    let mut due = Instant::now() + ROUND;
    loop {
        thread::sleep(LOOK);
        let Some(state) = held.upgrade() else { return };
        let seen = directory.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_changing, fingerprint) = (seen.change.is_some(), seen.fingerprint);
        let is_due = Instant::now() >= due;
        let mut locked = state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(guard) = &mut locked.held else {
            return;
        };
        let is_to_begin = !is_changing && guard.renewal.is_to_begin(fingerprint, is_due);
        let config = (is_to_begin || is_due).then(|| seen.config.clone());
        drop(seen);
        match config {
            _ if is_changing => guard.lift(),
            Some(config) if is_to_begin => begin(&state, locked, &config),
            Some(config) => guard.look_after(&config),
            None => continue,
        }
        due = Instant::now() + ROUND;
    }
}

/// Guards with the budgets of `config`: what the kernel has to verify is ready before anybody waits for it.
fn begin(state: &Mutex<State>, locked: MutexGuard<'_, State>, config: &Config) {
    let Some(guard) = &locked.held else { return };
    let (node, count) = (guard.node, guard.reception.len());
    drop(locked);
    let (setup, names) = asked(config, node);
    let filters: Result<Vec<_>, _> = (0..count).map(|_| Filter::new(&setup)).collect();
    let mut locked = state.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(guard) = &mut locked.held else {
        return;
    };
    guard.renewal.fingerprint = config.fingerprint();
    guard.renewal.is_lifted = false;
    match filters {
        Ok(filters) => {
            guard.reception.renew(filters);
            (guard.setup, guard.names) = (setup, names);
            guard.renewal.failure = None;
        }
        Err(error) => guard.renewal.failure = Some(refused(&[StartError::Load(error)])),
    }
}

impl Held {
    /// Lets everything pass while applications come that have no budget yet.
    fn lift(&mut self) {
        if !self.renewal.is_lifted {
            self.renewal.is_lifted = self.reception.lift(&self.open).is_ok();
        }
    }

    /// Interfaces that came back, and those that have the node's addresses only since a moment ago.
    fn look_after(&mut self, config: &Config) {
        self.reception.look_after();
        for name in interfaces_of(config, self.node) {
            if !self.interfaces.contains(&name) && self.reception.add(&self.setup, &name).is_ok() {
                self.interfaces.push(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_made_for_another_configuration_at_once_and_after_a_failure_again_each_round() {
        let mut renewal = Renewal {
            fingerprint: 1,
            is_lifted: false,
            failure: None,
        };
        assert!(!renewal.is_to_begin(1, false) && !renewal.is_to_begin(1, true));
        assert!(renewal.is_to_begin(2, false));
        renewal.failure = Some("no memory".to_owned());
        assert!(!renewal.is_to_begin(1, false), "no busy loop");
        assert!(renewal.is_to_begin(1, true));
        renewal.is_lifted = true;
        assert!(renewal.is_to_begin(1, false));
    }
}
