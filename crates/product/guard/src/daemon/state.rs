//! What the daemon's threads share, and what status tells of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bumpless_config::Registration;
use bumpless_node::control::refusal;
use bumpless_node::reception::programs::{
    Flows, Limits, Refusal, Registered, Registry, Roster, patterns,
};
use bumpless_node::reception::{self, budgets};
use bumpless_reception::{Reception, StartError, Wanted};
use serde_json::{Value, json};

use crate::config::Config;

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
    /// Its flows, and those of programs that have registered.
    pub roster: Roster,
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
        let new = |it| Registry::new(limits(&config, it), patterns(&config.flows));
        let registry = config.registration.as_ref().map(new);
        Ok(Self {
            registration: config.registration.as_ref().map(asked),
            started: Instant::now(),
            changed: AtomicBool::new(false),
            state: Mutex::new(State {
                reception,
                roster: Roster::new(setup, &config.flows, registry),
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
        let roster = &state.roster;
        let mut interfaces = reception::interfaces(&reports, roster.setup(), roster.names());
        roster.add_programs(&mut interfaces);
        let config = &state.config;
        let with_registered = config.cost_with(&roster.rates());
        let mut weaknesses = reception::weaknesses(&reports);
        weaknesses.extend(budgets::less_borne(&config.cost(), &with_registered));
        let mut registration = json!({"allowed": self.registration.is_some()});
        if let (Some(asked), Some(registry)) = (&self.registration, &roster.registry) {
            registration = registry.json();
            registration["allowed"] = true.into();
            registration["group"] = asked.group.clone().into();
            registration["socket"] = asked.socket.display().to_string().into();
        }
        json!({
            "schema": "bumpless.guard.status/1",
            "pid": std::process::id(),
            "uptime_s": self.started.elapsed().as_secs_f64(),
            "budgets_percent_of_processor": config.reserved_percent(),
            "interfaces": interfaces,
            "registration": registration,
            "weaknesses": weaknesses,
        })
    }
}

fn limits(config: &Config, asked: &Registration) -> Limits {
    Limits {
        flows: asked.flows,
        percent: asked.processor_percent as f64,
        priority: asked.priority_max,
        burst: asked.burst_max,
        interfaces: config.host.interfaces.len(),
        packet_ns: config.host.packet_ns,
    }
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
    /// Has all be as `config` says; what programs have registered stays.
    fn follow(&mut self, config: Config) -> Result<(), Vec<String>> {
        if is_elsewhere(&self.config, &config) {
            let words = "`socket` in [guard], or `group` or `socket` in [registration], is another one: those take a restart, in which \
                         programs register anew; all else changes while the guard runs";
            return Err(vec![words.to_owned()]);
        }
        let mut registry = self.roster.registry.clone();
        if let (Some(registry), Some(asked)) = (&mut registry, &config.registration) {
            registry.follow(limits(&config, asked), patterns(&config.flows))?;
        }
        let setup = config.setup();
        let roster = Roster::new(setup.clone(), &config.flows, registry);
        let wanted = Wanted {
            setup: &setup,
            room: roster.room(),
            registered: &roster.registered(),
            interfaces: &config.host.interfaces,
        };
        let followed = self.reception.follow(wanted);
        followed.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        (self.roster, self.config) = (roster, config);
        Ok(())
    }
}

/// What programs ask for.
pub struct Admission<'a>(pub &'a Shared);

impl Flows for Admission<'_> {
    fn admit(&mut self, wanted: Registered) -> Result<u16, (Refusal, String)> {
        let State {
            reception, roster, ..
        } = &mut *self.0.state();
        roster.admit(reception, wanted)
    }

    fn remove(&mut self, place: u16) {
        let State {
            reception, roster, ..
        } = &mut *self.0.state();
        roster.remove(reception, place);
    }

    fn refused(&mut self, refusal: Refusal, sentence: &str) {
        self.0.state().roster.refused(refusal, sentence);
    }
}
