//! The guard of a node's networks: its own flows are received with the plan's budgets, those of programs that register with theirs, everything else
//! with a bounded one.

mod admission;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_base::NodeId;
use bumpless_config::{Config, ReceptionGuard, Registration};
use bumpless_guard::Setup;
use bumpless_reception::{Filter, NamedFlow, Reception, Rest, StartError, Wanted, setup};
use serde_json::{Value, json};

use self::admission::serve;
use super::budgets::{interfaces_of, is_awaited, less_borne, load, load_with, planned};
use super::programs::{Limits, Programs, Registry, Roster, patterns, socket_path};
use super::{interfaces as interfaces_json, weaknesses};
use crate::directory::Directory;
use crate::note::Note;

/// Between two looks at whether the configuration changes.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks at the interfaces.
const ROUND: Duration = Duration::from_secs(1);

/// That no interface but the loopback one has an address of the node's.
const NOWHERE: &str = "no interface but the loopback one has an address of this node's, so that no network is guarded against floods of \
                       packets: an interface is guarded within a second once it has one (see `ip address`)";

/// What guards a node's networks until it is ended.
#[derive(Clone, Default)]
pub struct NetworkGuard {
    state: Arc<Mutex<State>>,
    /// Programs that register; `None`: none may.
    programs: Arc<Mutex<Option<Programs>>>,
}

#[derive(Default)]
struct State {
    /// `None`: nothing is guarded, for the reason among the notes or since there is nothing to guard.
    held: Option<Held>,
}

struct Held {
    node: NodeId,
    /// Its flows, and those of programs.
    roster: Roster,
    /// What was done for which configuration.
    renewal: Renewal,
    /// What programs have registered against the configuration in force, a sentence each.
    against: Vec<String>,
    /// That less of a flood is borne with what they have registered.
    less_borne: Option<String>,
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
    /// Guards the interfaces of this node's networks as far as it is permitted; what keeps it from that is added to `notes`. Paths of the
    /// configuration begin at `folder`.
    pub fn start((config, node): (&Config, NodeId), folder: &Path, notes: &mut Vec<Note>) -> Self {
        let interfaces = interfaces_of(config, node);
        if interfaces.is_empty() && !is_awaited(config, node) {
            return Self::default();
        }
        if config.reception.guard == ReceptionGuard::Off {
            let text =
                "the networks are not guarded against floods of packets, as [reception] says";
            notes.push(Note::lasting(text.to_owned()));
            return Self::default();
        }
        let held = match Held::start(config, node, interfaces) {
            Ok(held) => held,
            Err(errors) => {
                notes.push(Note::lasting(refused(&errors)));
                return Self::default();
            }
        };
        let programs = config
            .registration
            .as_ref()
            .and_then(|asked| listen(asked, folder, notes));
        Self {
            state: Arc::new(Mutex::new(State { held: Some(held) })),
            programs: Arc::new(Mutex::new(programs)),
        }
    }

    /// Looks after it until it is ended: interfaces that come back, a configuration that changes, programs that register.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn look_after(&self, directory: Arc<Mutex<Directory>>) -> std::io::Result<()> {
        if self.lock().held.is_none() {
            return Ok(());
        }
        let (held, programs) = (Arc::downgrade(&self.state), Arc::downgrade(&self.programs));
        let thread = thread::Builder::new().name("reception".into());
        thread
            .spawn(move || watch(&held, &programs, &directory))
            .map(drop)
    }

    /// Guards nothing any more, and no program is registered.
    pub fn end(&self) {
        // First who waits for programs, who then looks at the state.
        drop(
            self.programs
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        drop(self.lock().held.take());
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
        let besides = lifted
            .into_iter()
            .chain(held.interfaces.is_empty().then(|| NOWHERE.to_owned()))
            .chain(held.renewal.failure.clone())
            .chain(held.against.clone())
            .chain(held.less_borne.clone());
        match held.reception.report() {
            Ok(reports) => {
                let roster = &held.roster;
                let mut told = interfaces_json(&reports, roster.setup(), roster.names());
                roster.add_programs(&mut told);
                let registration = roster.registry.as_ref().map(Registry::json);
                let weaknesses = weaknesses(&reports).into_iter().chain(besides);
                let told = json!({"interfaces": told, "registration": registration});
                (told, weaknesses.collect())
            }
            Err(error) => {
                let weakness = format!("what the networks' guard counts cannot be read: {error}");
                (json!({"interfaces": []}), vec![weakness])
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens for programs; what keeps it from that is added to `notes`.
fn listen(asked: &Registration, folder: &Path, notes: &mut Vec<Note>) -> Option<Programs> {
    let path = socket_path(asked, folder);
    let listening = Programs::listen(&path, &asked.group);
    let listening = listening.map_err(|error| {
        notes.push(Note::lasting(format!(
            "no program can register with the networks' guard: the socket {} cannot be opened: {error}; name another one as `socket` in \
             [registration], or leave `group` out",
            path.display()
        )));
    });
    listening.ok()
}

/// How much programs may register, where this many interfaces are guarded.
fn limits(config: &Config, asked: &Registration, interfaces: usize) -> Limits {
    Limits {
        flows: asked.flows,
        percent: asked.processor_percent as f64,
        priority: asked.priority_max,
        burst: asked.burst_max,
        interfaces,
        packet_ns: config.reception.packet_ns,
    }
}

fn refused(errors: &[StartError]) -> String {
    let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
    format!(
        "the networks are not guarded against floods of packets: {}",
        all.join("; ")
    )
}

fn watch(
    held: &Weak<Mutex<State>>,
    programs: &Weak<Mutex<Option<Programs>>>,
    directory: &Mutex<Directory>,
) {
    let mut due = Instant::now() + ROUND;
    loop {
        let (Some(state), Some(programs)) = (held.upgrade(), programs.upgrade()) else {
            return;
        };
        let is_due = Instant::now() >= due;
        serve(&programs, &state, is_due);
        let seen = directory.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_changing, fingerprint) = (seen.change.is_some(), seen.fingerprint);
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
    let (node, count, room) = (guard.node, guard.reception.len(), guard.roster.room());
    drop(locked);
    let (flows, rest) = planned(config, node);
    let setup = setup(&flows, &rest);
    let filters: Result<Vec<_>, _> = (0..count)
        .map(|_| Filter::with_room(&setup, room))
        .collect();
    let mut locked = state.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(guard) = &mut locked.held else {
        return;
    };
    guard.renewal.fingerprint = config.fingerprint();
    guard.renewal.is_lifted = false;
    match filters {
        Ok(filters) => {
            guard.renew(config, filters, (setup, &flows));
            guard.renewal.failure = None;
        }
        Err(error) => guard.renewal.failure = Some(refused(&[StartError::Load(error)])),
    }
}

impl Held {
    fn start(
        config: &Config,
        node: NodeId,
        interfaces: Vec<String>,
    ) -> Result<Self, Vec<StartError>> {
        let (flows, rest) = planned(config, node);
        let setup = setup(&flows, &rest);
        let limits = |asked| limits(config, asked, interfaces.len().max(1));
        let registry = config.registration.as_ref().map(limits);
        let registry = registry.map(|limits| Registry::new(limits, patterns(&flows)));
        let roster = Roster::new(setup.clone(), &flows, registry);
        let reception = Reception::start_where_possible(&setup, roster.room(), &interfaces)?;
        let open = Filter::open().map_err(|error| vec![StartError::Load(error)])?;
        Ok(Self {
            node,
            roster,
            renewal: Renewal {
                fingerprint: config.fingerprint(),
                is_lifted: false,
                failure: None,
            },
            against: Vec::new(),
            less_borne: None,
            interfaces,
            reception,
            open,
        })
    }

    /// Lets everything pass while applications come that have no budget yet. First what has gone and come back is attached again: a driver
    /// that begins anew for it does so before the change is made.
    fn lift(&mut self) {
        if !self.renewal.is_lifted {
            self.reception.look_after();
            self.renewal.is_lifted = self.reception.lift(&self.open).is_ok();
        }
    }

    /// Has these filters decide, which were made for these flows of `config`; what programs have registered stays, unless a flow of the
    /// configuration has come to the port of a program.
    fn renew(
        &mut self,
        config: &Config,
        mut filters: Vec<Filter>,
        (setup, flows): (Setup, &[NamedFlow]),
    ) {
        self.follow(config, flows);
        let registry = self.roster.registry.take();
        self.roster = Roster::new(setup, flows, registry);
        for (at, flow) in self.roster.registered() {
            for filter in &mut filters {
                // What it does not take is of a program that is told of above.
                let _ = filter.set_flow(at, flow.clone());
            }
        }
        self.reception.renew(filters);
    }

    /// Has the configuration's flows and limits hold for what programs register; what is registered against them stays until it ends.
    fn follow(&mut self, config: &Config, flows: &[NamedFlow]) {
        let limits = |asked| limits(config, asked, self.interfaces.len().max(1));
        let limits = config.registration.as_ref().map(limits);
        if let (Some(registry), Some(limits)) = (&mut self.roster.registry, limits) {
            self.against = registry.impose(limits, patterns(flows));
        }
    }

    /// Interfaces that came back, and those that have the node's addresses only since a moment ago.
    fn look_after(&mut self, config: &Config) {
        self.reception.look_after();
        let (flows, rest) = planned(config, self.node);
        self.find_interfaces(config, (&flows, rest));
        if !self.against.is_empty() {
            self.follow(config, &flows);
        }
        let with_registered = load_with(config, self.node, &self.roster.rates());
        self.less_borne = less_borne(&load(config, self.node), &with_registered);
    }

    /// Guards interfaces that have come to the node's addresses. What programs may register is reckoned with one interface more then.
    fn find_interfaces(&mut self, config: &Config, (flows, rest): (&[NamedFlow], Rest)) {
        let before = self.interfaces.len();
        for name in interfaces_of(config, self.node) {
            if self.interfaces.contains(&name) {
                continue;
            }
            let wanted = Wanted {
                setup: &setup(flows, &rest),
                room: self.roster.room(),
                registered: &self.roster.registered(),
                interfaces: &[],
            };
            if let Ok(filter) = wanted.filter() {
                self.reception.add(filter, &name);
                self.interfaces.push(name);
            }
        }
        if self.interfaces.len() > before {
            self.follow(config, flows);
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
