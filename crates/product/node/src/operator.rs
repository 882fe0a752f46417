//! What the control socket's requests do.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use bumpless_base::{ResumeFrom, Role};
use bumpless_config::Config;
use bumpless_management::Carried;
use bumpless_net_linux::{Clock, Waker};
use bumpless_redundancy::GroupId;
use rtrb::Producer;
use serde_json::{Value, json};

use crate::change::ChangeRequest;
use crate::control::{Handler, Request, refusal};
use crate::data_plane::Command;
use crate::directory::Directory;
use crate::key_service::KeyService;
use crate::log::{LogHealth, Names, OutputState};
use crate::management::Sessions;
use crate::note::Note;
use crate::reception::guard::NetworkGuard;
use crate::snapshot::Snapshot;
use crate::state_security::Healths;
use crate::{status, values};

const TIMEOUT: Duration = Duration::from_secs(1);
/// Reading, planning and preparing a change.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(4);

/// With partners and witnesses, and with key servers.
type AllSessions = (Sessions, KeyService);

/// Answers requests from the snapshot and passes orders to the data plane.
pub struct Operator {
    directory: Arc<Mutex<Directory>>,
    names: Names,
    snapshot: Arc<Mutex<Snapshot>>,
    orders: Arc<Mutex<Producer<Command>>>,
    changes: (Sender<ChangeRequest>, Thread),
    waker: Waker,
    notes: Arc<Mutex<Vec<Note>>>,
    log: LogHealth,
    sessions: AllSessions,
    states: Healths,
    guard: NetworkGuard,
}

impl Operator {
    /// An operator for one node.
    pub fn new(
        directory: Arc<Mutex<Directory>>,
        names: Names,
        snapshot: Arc<Mutex<Snapshot>>,
        orders: Arc<Mutex<Producer<Command>>>,
        changes: (Sender<ChangeRequest>, Thread),
        waker: Waker,
        (notes, log, sessions, states, guard): (
            Arc<Mutex<Vec<Note>>>,
            LogHealth,
            AllSessions,
            Healths,
            NetworkGuard,
        ),
    ) -> Self {
        Self {
            directory,
            names,
            snapshot,
            orders,
            changes,
            waker,
            notes,
            log,
            sessions,
            states,
            guard,
        }
    }

    /// A copy of what the data plane shows: held only for that, so that its next refresh finds it free.
    fn snapshot(&self) -> Snapshot {
        match self.snapshot.lock() {
            Ok(snapshot) => snapshot.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        }
    }

    fn values(&self, application: Option<&str>) -> Value {
        let (snapshot, directory) = (self.snapshot(), self.directory());
        let shown = (&snapshot, &directory.field.values);
        let known = (&*directory, &self.names);
        values::render(shown, known, application, Clock.now()).unwrap_or_else(refusal)
    }

    fn status(&self) -> Value {
        let snapshot = self.snapshot();
        let networks = self.names.links.len();
        let notes = self
            .notes
            .lock()
            .map(|notes| notes.clone())
            .unwrap_or_default();
        let notes = notes.into_iter();
        let notes = notes.filter(|note| note.holds(&snapshot.links, networks));
        let (reception, unguarded) = self.guard.told();
        let directory = self.directory();
        let mut weaknesses = directory.weaknesses();
        weaknesses.extend(notes.map(|note| note.text));
        weaknesses.extend(status::silent_fields(&snapshot, &directory));
        weaknesses.extend(directory.field.notes.weaknesses());
        weaknesses.extend(directory.field.drivers.weaknesses(&directory.config));
        weaknesses.extend(status::silent_devices(&snapshot, &directory));
        weaknesses.extend(status::stopped_programs(&snapshot, &directory));
        weaknesses.extend(status::refused_by_the_kernel(&snapshot, &self.names));
        weaknesses.extend(status::flooded(&snapshot, &self.names));
        let log = self.log();
        weaknesses.extend(self.sessions.0.weaknesses());
        weaknesses.extend(self.sessions.1.weaknesses());
        weaknesses.extend(self.states.weaknesses());
        weaknesses.extend(unguarded);
        weaknesses.extend(log.iter().filter_map(OutputState::weakness));
        weaknesses.dedup();
        let mut status =
            status::render(&snapshot, &directory, &self.names, &weaknesses, Clock.now());
        status["plan"] = directory.admission.json();
        status["sessions"] = self.sessions.0.json();
        status["key_servers"] = self.sessions.1.json();
        status["reception"] = reception;
        status["log"] = log.iter().map(OutputState::json).collect();
        status
    }

    fn log(&self) -> Vec<OutputState> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn directory(&self) -> MutexGuard<'_, Directory> {
        self.directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, file: &Path) -> Value {
        let name = file.display().to_string();
        let text = match Config::read_text(file) {
            Ok(text) => text,
            Err(problems) => {
                let said: Vec<_> = problems.iter().map(ToString::to_string).collect();
                return refusal(format_args!(
                    "the node cannot take it: {}; put it where the node's user can read it",
                    said.join("; ")
                ));
            }
        };
        let fingerprint = Config::parse(&text, &name).map(|config| config.fingerprint());
        let until = Instant::now() + CHANGE_TIMEOUT;
        let prepared = self.ask(|reply| ChangeRequest::Apply {
            text: text.clone(),
            file: name,
            carried: false,
            reply,
        });
        if let Err(refused) = prepared {
            return refusal(refused);
        }
        let left = until.saturating_duration_since(Instant::now());
        let carried = self.sessions.0.propose(text, left);
        if let Some((partner, Carried::Refused(why))) = &carried {
            // What the partner has prepared otherwise, if anything, stays.
            let _ = self.withdraw_here();
            return refusal(format_args!("'{partner}' refuses it: {why}"));
        }
        let partner = carried
            .filter(|(_, carried)| *carried == Carried::Prepared)
            .map(|(partner, _)| partner);
        json!({
            "schema": "bumpless.accepted/1",
            "accepted": "apply",
            "fingerprint": format!("{:016x}", fingerprint.unwrap_or_default()),
            "partner": partner,
        })
    }

    fn withdraw(&self) -> Value {
        match self.withdraw_here() {
            Ok(()) => {
                self.sessions.0.withdraw();
                json!({"schema": "bumpless.accepted/1", "accepted": "withdraw"})
            }
            Err(refused) => refusal(refused),
        }
    }

    fn withdraw_here(&self) -> Result<(), String> {
        self.ask(|reply| ChangeRequest::Withdraw { reply })
    }

    fn ask(
        &self,
        request: impl FnOnce(SyncSender<Result<(), String>>) -> ChangeRequest,
    ) -> Result<(), String> {
        let (reply, answer) = sync_channel(1);
        let (requests, thread) = &self.changes;
        let sent = requests.send(request(reply));
        thread.unpark();
        sent.map_err(|_| "the node is about to end".to_owned())?;
        answer
            .recv_timeout(CHANGE_TIMEOUT)
            .unwrap_or_else(|_| Err("the node takes too long to prepare; see its status".into()))
    }

    fn switchover(&mut self, name: Option<&str>, to: Option<&str>) -> Value {
        let found = self
            .find_group(name)
            .and_then(|group| Ok((group, self.wanted_role(group, to)?)));
        let (group, role) = match found {
            Ok(found) => found,
            Err(refused) => return refused,
        };
        let (reply, answer) = sync_channel(1);
        let order = match role {
            Some(role) => Command::TakeRole { group, role, reply },
            None => Command::Switchover { group, reply },
        };
        match self.give(order, &answer) {
            Ok(Ok(())) => json!({"schema": "bumpless.accepted/1", "accepted": "switchover"}),
            Ok(Err(refused)) => refusal(format_args!("no switchover: {refused}")),
            Err(refused) => refused,
        }
    }

    fn resume(&self, name: &str, from_initial: bool) -> Value {
        let Some(application) = self.directory().number_of(name) else {
            return refusal(format_args!("no application '{name}' is in force"));
        };
        let from = match from_initial {
            true => ResumeFrom::StateOrInitial,
            false => ResumeFrom::State,
        };
        let (reply, answer) = sync_channel(1);
        let order = Command::Resume {
            application,
            from,
            reply,
        };
        match self.give(order, &answer) {
            Ok(Ok(())) => json!({"schema": "bumpless.accepted/1", "accepted": "resume"}),
            Ok(Err(refused)) => refusal(format_args!("'{name}' is not resumed: {refused}")),
            Err(refused) => refused,
        }
    }

    /// Passes an order to the data plane and waits for its answer.
    fn give<T>(&self, order: Command, answer: &Receiver<T>) -> Result<T, Value> {
        let full = self
            .orders
            .lock()
            .map_or(true, |mut orders| orders.push(order).is_err());
        if full {
            return Err(refusal("too many orders are waiting; try again"));
        }
        self.waker.wake();
        answer
            .recv_timeout(TIMEOUT)
            .map_err(|_| refusal("the data plane does not answer; see the node's log"))
    }

    /// The role that this node has when the node `to` is primary of `group`.
    fn wanted_role(&self, group: GroupId, to: Option<&str>) -> Result<Option<Role>, Value> {
        let Some(to) = to else {
            return Ok(None);
        };
        let directory = self.directory();
        let config = &directory.config;
        let candidates = config.groups[usize::from(group.0)].candidates.iter();
        let names: Vec<_> = candidates
            .map(|node| config.nodes[usize::from(node.0)].name.as_str())
            .collect();
        if !names.contains(&to) {
            return Err(refusal(format_args!(
                "'{to}' is no candidate of the group; name one of {}",
                names.join(", ")
            )));
        }
        let own = self.names.node == to;
        Ok(Some(if own { Role::Primary } else { Role::Backup }))
    }

    fn find_group(&self, name: Option<&str>) -> Result<GroupId, Value> {
        let directory = self.directory();
        let names: Vec<_> = directory
            .config
            .groups
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        let position = match name {
            Some(name) => names.iter().position(|candidate| *candidate == name),
            None if names.len() == 1 => Some(0),
            None => {
                return Err(refusal(format_args!(
                    "name one of the groups: {}",
                    names.join(", ")
                )));
            }
        };
        position
            .map(|position| GroupId(position as u16))
            .ok_or_else(|| {
                refusal(format_args!(
                    "no group is called '{}'; the configuration has {}",
                    name.unwrap_or_default(),
                    names.join(", ")
                ))
            })
    }
}

impl Handler for Operator {
    type Request = Request;
    type Reply = Value;
    fn is_order(request: &Request) -> bool {
        !matches!(request, Request::Status | Request::Values { .. })
    }
    fn handle(&mut self, request: Request) -> Value {
        match request {
            Request::Status => self.status(),
            Request::Values { application } => self.values(application.as_deref()),
            Request::Switchover { group, to } => self.switchover(group.as_deref(), to.as_deref()),
            Request::Apply { file } => self.apply(&file),
            Request::Withdraw => self.withdraw(),
            Request::Resume {
                application,
                from_initial,
            } => self.resume(&application, from_initial),
        }
    }
}
