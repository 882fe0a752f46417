//! What the daemon's threads share, and what status tells of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bumpless_guard::{Flow, FlowId, Match, Setup};
use bumpless_node::control::refusal;
use bumpless_node::reception;
use bumpless_reception::{Reception, StartError, Wanted};
use bumpless_registration::message::Refusal;
use serde_json::{Value, json};

use crate::config::{Config, Registration};
use crate::programs::{Flows, Limits, Registered, Registry};

/// What the daemon's threads share.
pub struct Shared {
    /// Where programs may register; `None`: nowhere.
    pub registration: Option<Asked>,
    started: Instant,
    /// The file was read again, and what is in force has not been told yet.
    changed: AtomicBool,
    state: Mutex<State>,
}

/// Who may register sockets, and where.
pub struct Asked {
    /// Members of this group may.
    pub group: String,
    /// At this socket.
    pub socket: PathBuf,
}

/// The guard, and who has registered with it.
pub struct State {
    /// The filters.
    pub reception: Reception,
    /// What the file says.
    pub config: Config,
    setup: Setup,
    names: Vec<String>,
    of_file: usize,
    /// Sockets of programs; `None`: none may be registered.
    pub registry: Option<Registry>,
}

impl Shared {
    /// Guards the interfaces of `config`.
    ///
    /// # Errors
    /// Everything that is wrong; then nothing is guarded.
    pub fn start(config: Config, socket: PathBuf) -> Result<Self, Vec<StartError>> {
        let (setup, room) = (config.setup(), config.room());
        let reception = Reception::start_with_room(&setup, room, &config.host.interfaces)?;
        let asked = |it: &Registration| Asked {
            group: it.group.clone(),
            socket,
        };
        let new = |it| Registry::new(limits(&config, it), of_file(&config));
        Ok(Self {
            registration: config.registration.as_ref().map(asked),
            started: Instant::now(),
            changed: AtomicBool::new(false),
            state: Mutex::new(State {
                reception,
                of_file: setup.flows.len(),
                names: names(&config, room),
                setup: roomy(setup, room),
                registry: config.registration.as_ref().map(new),
                config,
            }),
        })
    }

    /// Reads the file at `path` again and follows it, whole or not at all. Whether it says anything else than before.
    ///
    /// # Errors
    /// Everything that is against it; then all is as it was.
    pub fn reload(&self, path: &Path) -> Result<bool, Vec<String>> {
        // Held from before the file is read: of two who ask, nobody brings into force what he has read before the other.
        let mut state = self.state();
        let config = Config::load(path)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let changed = config != state.config;
        if changed {
            state.follow(config)?;
            self.changed.store(true, Ordering::Relaxed);
        }
        Ok(changed)
    }

    /// Whether what is in force is another than when this was asked last.
    pub fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// The state, for as long as the answer is held.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What status says.
    pub fn status(&self) -> Value {
        let state = self.state();
        let reports = match state.reception.report() {
            Ok(reports) => reports,
            Err(error) => {
                return refusal(format_args!("the kernel does not give the counts: {error}"));
            }
        };
        let mut interfaces = reception::interfaces(&reports, &state.setup, &state.names);
        state.add_programs(&mut interfaces);
        let mut registration = json!({"allowed": self.registration.is_some()});
        if let (Some(asked), Some(registry)) = (&self.registration, &state.registry) {
            registration = registry.json();
            registration["allowed"] = true.into();
            registration["group"] = asked.group.clone().into();
            registration["socket"] = asked.socket.display().to_string().into();
        }
        json!({
            "schema": "bumpless.guard.status/1",
            "pid": std::process::id(),
            "uptime_s": self.started.elapsed().as_secs_f64(),
            "budgets_percent_of_processor": state.config.reserved_percent(),
            "interfaces": interfaces,
            "registration": registration,
            "weaknesses": reception::weaknesses(&reports),
        })
    }
}

fn limits(config: &Config, asked: &Registration) -> Limits {
    Limits {
        flows: asked.flows,
        percent: asked.processor_percent as f64,
        priority: asked.priority_max,
        interfaces: config.host.interfaces.len(),
        packet_ns: config.host.packet_ns,
    }
}

/// The patterns of the file's flows, with the flows' names.
fn of_file(config: &Config) -> HashMap<Match, String> {
    let named = config.flows.iter();
    named
        .flat_map(|flow| flow.matches.iter().map(|&it| (it, flow.name.clone())))
        .collect()
}

/// The names of the file's flows, and room behind them.
fn names(config: &Config, room: usize) -> Vec<String> {
    let mut names: Vec<_> = config.flows.iter().map(|flow| flow.name.clone()).collect();
    names.resize(names.len() + room, String::new());
    names
}

fn roomy(mut setup: Setup, room: usize) -> Setup {
    setup.flows.resize(setup.flows.len() + room, Flow::NONE);
    setup
}

/// What takes a restart: those who have connected would have to find the guard anew.
fn is_elsewhere(before: &Config, after: &Config) -> bool {
    let places = |it: &Config| {
        let registration = it.registration.as_ref();
        let programs = registration.map(|it| (it.group.clone(), it.socket.clone()));
        (it.host.socket.clone(), programs)
    };
    places(before) != places(after)
}

impl State {
    /// Names of the file's flows.
    pub fn names_of_file(&self) -> &[String] {
        &self.names[..self.of_file]
    }

    /// The name of a flow.
    pub fn name(&self, flow: FlowId) -> &str {
        reception::name(flow, &self.names)
    }

    /// Says of each flow that a program has registered which one that is.
    fn add_programs(&self, interfaces: &mut [Value]) {
        let registry = self.registry.iter();
        let registered: HashMap<String, Value> = registry
            .flat_map(Registry::all)
            .map(|(_, it)| (it.name(), it.json()))
            .collect();
        let all = interfaces.iter_mut();
        for flow in all.flat_map(|it| it["flows"].as_array_mut().into_iter().flatten()) {
            let program = flow["name"].as_str().and_then(|name| registered.get(name));
            flow["program"] = program.cloned().unwrap_or_default();
        }
    }

    /// Has all be as `config` says; what programs have registered stays.
    fn follow(&mut self, config: Config) -> Result<(), Vec<String>> {
        if is_elsewhere(&self.config, &config) {
            let words = "`socket` in [guard], or `group` or `socket` in [registration], is another one: those take a restart, in which \
                         programs register anew; all else changes while the guard runs";
            return Err(vec![words.to_owned()]);
        }
        let mut registry = self.registry.clone();
        if let (Some(registry), Some(asked)) = (&mut registry, &config.registration) {
            registry.follow(limits(&config, asked), of_file(&config))?;
        }
        let setup = config.setup();
        let (of_file, room) = (
            setup.flows.len(),
            registry.as_ref().map_or(0, Registry::places),
        );
        let (mut all, mut names) = (roomy(setup.clone(), room), names(&config, room));
        let mut registered = Vec::new();
        for (place, it) in registry.iter().flat_map(Registry::all) {
            let at = of_file + usize::from(place);
            (all.flows[at], names[at]) = (it.flow(), it.name());
            registered.push((u16::try_from(at).unwrap_or(u16::MAX), it.flow()));
        }
        let wanted = Wanted {
            setup: &setup,
            room,
            registered: &registered,
            interfaces: &config.host.interfaces,
        };
        let followed = self.reception.follow(wanted);
        followed.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        (self.setup, self.names, self.of_file) = (all, names, of_file);
        (self.registry, self.config) = (registry, config);
        Ok(())
    }

    /// Has the filters receive this flow in the place of a program.
    fn set(&mut self, place: u16, flow: Flow, name: String) -> Result<(), (Refusal, String)> {
        let at = self.of_file + usize::from(place);
        let number = u16::try_from(at).unwrap_or(u16::MAX);
        if let Err(error) = self.reception.set_flow(number, &flow) {
            return Err((
                Refusal::Kernel,
                format!("the guard cannot receive it: {error}"),
            ));
        }
        self.setup.flows[at] = flow;
        self.names[at] = name;
        Ok(())
    }
}

/// What programs ask for.
pub struct Admission<'a>(pub &'a Shared);

impl Flows for Admission<'_> {
    fn admit(&mut self, wanted: Registered) -> Result<u16, (Refusal, String)> {
        let mut state = self.0.state();
        let (flow, name) = (wanted.flow(), wanted.name());
        let Some(registry) = &mut state.registry else {
            let sentence = "programs may not register with this guard".to_owned();
            return Err((Refusal::Full, sentence));
        };
        let place = registry.admit(wanted)?;
        let set = state.set(place, flow, name);
        if let (Err(_), Some(registry)) = (&set, &mut state.registry) {
            registry.remove(place);
        }
        set.map(|()| place)
    }

    fn remove(&mut self, place: u16) {
        let mut state = self.0.state();
        // A place that the kernel does not give back now has its flow replaced by the next one.
        let _ = state.set(place, Flow::NONE, String::new());
        if let Some(registry) = &mut state.registry {
            registry.remove(place);
        }
    }

    fn refused(&mut self, refusal: Refusal, sentence: &str) {
        if let Some(registry) = &mut self.0.state().registry {
            registry.count(refusal, sentence);
        }
    }
}
