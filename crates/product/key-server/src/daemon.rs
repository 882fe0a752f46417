//! Starting, one turn after the other, ending.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use bumpless_base::{Duration, Instant};
use bumpless_keys::{KEYS, Message, Refused, Server, Session};
use bumpless_net_linux::Clock;
use bumpless_node::control::{ControlServer, Handler, refusal};
use bumpless_node::{InstanceLock, LockError, key_file};
use bumpless_pki::{BadName, Identity, IdentityPaths, NodeName, Problems, system_clock};
use bumpless_secure::group::Place;
use bumpless_sessions::{Ended, Identities, listen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::callers::{Callers, Outcome};
use crate::config::Config;
use crate::event::Events;
use crate::group::{Group, Next, expected, not_kept};
use crate::request::{Request, socket_path};
use crate::store::{Kept, Store, StoreError};

/// Longest wait, after which it is looked whether to end.
const LOOK: Duration = Duration::from_millis(20);
/// Who asks at the control socket is answered within a turn.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// Of those that are refused one is told in so long.
const TELL_REFUSED: Duration = Duration::from_secs(1);

/// How a server is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print events as JSON.
    pub json: bool,
    /// Set to end.
    pub stop: Arc<AtomicBool>,
}

/// Why a server did not start.
#[derive(Debug)]
pub enum RunError {
    /// There is no folder with its certificate.
    NoFolder(PathBuf, String),
    /// Everything that is wrong with the files in it.
    Identity(Problems),
    /// A name that no certificate can have.
    Name(BadName),
    /// It runs already.
    Lock(LockError),
    /// Its state cannot be read or kept.
    Store(StoreError),
    /// What was kept cannot be used.
    State(PathBuf, String),
    /// The system refuses something.
    System(&'static str, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFolder(folder, name) => write!(
                f,
                "{}: there is no such folder, so this server has no certificate; make it where the authority is:\n    \
                 bumpless pki issue {name}\nand bring the folder here",
                folder.display()
            ),
            Self::Identity(problems) => problems.fmt(f),
            Self::Name(error) => error.fmt(f),
            Self::Lock(LockError::Running { path, .. }) => write!(
                f,
                "a key server with this state runs already on this computer; stop it first (lock {})",
                path.display()
            ),
            Self::Lock(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::State(path, why) => write!(
                f,
                "{}: {why}; bring back an earlier copy of it, or move it away: then keys begin anew",
                path.display()
            ),
            Self::System(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

/// The certificate of the server with the file at `file`, whose content is `config`.
///
/// # Errors
/// It has none, or everything that is wrong with it.
pub fn load_identity(config: &Config, file: &Path) -> Result<(Identity, IdentityPaths), RunError> {
    let name = format!("{}.{KEYS}", config.name).to_ascii_lowercase();
    let folder = key_file::folder_of(Some(file))
        .join(&config.certificates)
        .join(&name);
    if folder.symlink_metadata().is_err() {
        return Err(RunError::NoFolder(folder, name));
    }
    let paths = IdentityPaths::in_folder(&folder);
    let identity = Identity::load(&paths, &config.name, KEYS, system_clock());
    Ok((identity.map_err(RunError::Identity)?, paths))
}

/// Serves with the file at `file`, whose content is `config`, until it is told to stop.
///
/// # Errors
/// [`RunError`].
pub fn run(config: &Config, file: &Path, options: &Options) -> Result<(), RunError> {
    let (identity, paths) = load_identity(config, file)?;
    let folder = key_file::folder_of(Some(file));
    let path = folder.join(&config.state);
    let lock = PathBuf::from(format!("{}.lock", path.display()));
    let _lock = InstanceLock::take(&lock).map_err(RunError::Lock)?;
    let system = |what| move |error| RunError::System(what, error);
    let mut listeners = Vec::new();
    for &address in &config.listen {
        listeners.push(listen(address).map_err(system("listen for members"))?);
    }
    let events = Events::start(options.json).map_err(system("start the thread for events"))?;
    let (orders, ordered) = channel();
    let mut server = Service::new(
        config,
        (identity, paths),
        (Store::new(path), events),
        listeners,
    )?;
    server.begin()?;
    let socket = socket_path(config, folder);
    let _control = ControlServer::start(&socket, None, Asking(orders))
        .map_err(system("open the control socket"))?;
    server.serve(&ordered, options);
    Ok(())
}

/// What is asked at the control socket, and where the answer goes.
type Order = (Request, SyncSender<Value>);

/// Answers at the control socket.
struct Asking(Sender<Order>);

impl Handler for Asking {
    type Request = Request;

    fn is_order(request: &Request) -> bool {
        matches!(request, Request::Roll { .. })
    }

    fn handle(&mut self, request: Request) -> Value {
        let (reply, answer) = sync_channel(1);
        let asked = self.0.send((request, reply)).is_ok();
        let answer = asked.then(|| answer.recv_timeout(PATIENCE).ok()).flatten();
        answer.unwrap_or_else(|| refusal("the key server is busy or ends; ask again"))
    }
}

struct Service {
    name: String,
    site: String,
    identities: Identities,
    store: Store,
    events: Events,
    listeners: Vec<TcpListener>,
    groups: Vec<Group>,
    expected: Arc<[NodeName]>,
    callers: Callers,
    /// Why what is to hold was not kept last.
    problem: Option<String>,
    /// How many were refused, whom and why last, and when that is told again.
    refused: (u64, Option<String>, Instant),
    /// What each group sealed with when that was told last.
    told: Vec<Option<(u64, u16)>>,
}

impl Service {
    fn new(
        config: &Config,
        (identity, paths): (Identity, IdentityPaths),
        (store, events): (Store, Events),
        listeners: Vec<TcpListener>,
    ) -> Result<Self, RunError> {
        let now = Clock.now();
        let site = identity.name().site().to_owned();
        let mut follow = Vec::new();
        for other in &config.follow {
            let name = NodeName::new(&other.name, KEYS, &site).map_err(RunError::Name)?;
            follow.push(Server {
                name,
                address: other.address,
            });
        }
        let mut kept = store
            .load(now)
            .map_err(RunError::Store)?
            .unwrap_or_default();
        let mut groups = Vec::new();
        for settings in &config.groups {
            let Kept { groups: all, since } = &mut kept;
            let at = all.iter().position(|it| it.name == settings.name);
            let of_it = at.map(|at| all.swap_remove(at));
            let group = Group::new(settings.clone(), follow.clone(), (of_it, *since), now);
            let state = |why| RunError::State(store.path().to_owned(), why);
            groups.push(group.map_err(state)?);
        }
        Ok(Self {
            name: identity.name().short().to_owned(),
            expected: expected(&groups, &site),
            site,
            identities: Identities::new(paths, identity, std::time::Instant::now()),
            store,
            events,
            listeners,
            told: vec![None; groups.len()],
            groups,
            callers: Callers::default(),
            problem: None,
            refused: (0, None, now),
        })
    }

    /// Judges by the list who was given keys before this process, and keeps the first keys: what cannot be kept now cannot be
    /// kept later either.
    fn begin(&mut self) -> Result<(), RunError> {
        let now = Clock.now();
        for group in &mut self.groups {
            for (name, why) in group.judge(self.identities.loaded()) {
                tell_given_up(&self.events, group.name(), &name, why);
            }
        }
        for at in 0..self.groups.len() {
            if let Some(next) = self.groups[at].turn(&mut self.identities, now) {
                self.keep((at, next), now).map_err(RunError::Store)?;
            }
        }
        let addresses = self.listeners.iter().filter_map(|it| it.local_addr().ok());
        let addresses: Vec<_> = addresses.map(|it| it.to_string()).collect();
        let words = format!(
            "{} of site {} answers at {}",
            self.name,
            self.site,
            addresses.join(", ")
        );
        let about = json!({"name": self.name, "site": self.site, "listen": addresses});
        self.events.say("started", about, &words);
        Ok(())
    }

    fn serve(&mut self, ordered: &Receiver<Order>, options: &Options) {
        while !options.stop.load(Ordering::Relaxed) {
            self.wait();
            let now = Clock.now();
            self.judge_anew();
            for (request, reply) in ordered.try_iter() {
                // Whoever asked may have gone.
                let _ = reply.try_send(self.obey(request, now));
            }
            self.turn(now);
            self.accept();
            self.drive(now);
        }
        self.callers.close();
        self.groups.iter_mut().for_each(Group::close);
        self.events.say(
            "stopped",
            json!({}),
            "stopped: members go on with the keys that they have",
        );
    }

    fn wait(&self) {
        let now = Clock.now();
        let due = self.groups.iter().filter_map(|group| group.due(now)).min();
        let span = due.map_or(LOOK, |at| LOOK.min(at.since(now)));
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: (span.as_nanos() + 1000) as _,
        };
        let listeners = self.listeners.iter();
        let listeners = listeners.map(|listener| PollFd::new(listener, PollFlags::IN));
        let groups = self.groups.iter().flat_map(Group::polls);
        let mut files: Vec<_> = listeners
            .chain(self.callers.polls())
            .chain(groups)
            .collect();
        // A signal ends it early, which does no harm.
        let _ = poll(&mut files, Some(&timeout));
    }

    /// Whoever a list names that is another one than before is not served any more, and has the next keys no more.
    fn judge_anew(&mut self) {
        let Some(identity) = self.identities.changed(std::time::Instant::now()) else {
            return;
        };
        self.callers.judge(&identity);
        for group in &mut self.groups {
            for (name, why) in group.judge(&identity) {
                tell_given_up(&self.events, group.name(), &name, why);
            }
        }
    }

    fn obey(&mut self, request: Request, now: Instant) -> Value {
        match request {
            Request::Status => self.status(now),
            Request::Roll { group } => match self.roll(group.as_deref()) {
                Ok(name) => {
                    json!({"schema": "bumpless.key-server.roll/1", "ok": true, "group": name})
                }
                Err(why) => refusal(why),
            },
        }
    }

    fn roll(&mut self, name: Option<&str>) -> Result<String, String> {
        let names: Vec<_> = self.groups.iter().map(|it| it.name().to_owned()).collect();
        let at = match name {
            None if names.len() == 1 => Some(0),
            None => return Err(format!("name one of the groups: {}", names.join(", "))),
            Some(name) => names.iter().position(|it| it == name),
        };
        let at =
            at.ok_or_else(|| format!("there is no such group; there are: {}", names.join(", ")))?;
        self.groups[at].order_roll()?;
        Ok(names[at].clone())
    }

    /// What groups do by themselves, and what members are told then.
    fn turn(&mut self, now: Instant) {
        for at in 0..self.groups.len() {
            if let Some(next) = self.groups[at].turn(&mut self.identities, now)
                && let Err(error) = self.keep((at, next), now)
            {
                self.not_kept(at, &error, now);
            }
            if self.groups[at].take_news()
                && let Some(grant) = self.groups[at].grant(now)
            {
                self.callers.push(at, &Message::Push(grant));
            }
            let sealing = self.groups[at].sealing(now);
            if sealing != self.told[at] {
                self.told[at] = sealing;
                self.tell_sealing(at, sealing);
            }
        }
    }

    /// Keeps what is to hold for the group at this position, and puts it in force.
    fn keep(&mut self, (at, next): (usize, Next), now: Instant) -> Result<(), StoreError> {
        let all = self.groups.iter().enumerate();
        let kept = all.map(|(other, group)| group.kept((other == at).then_some(&next), now));
        self.store.keep(kept, now)?;
        self.groups[at].put_in_force(next);
        self.problem = None;
        Ok(())
    }

    fn not_kept(&mut self, at: usize, error: &StoreError, now: Instant) {
        self.groups[at].put_off(now);
        let words = not_kept(error);
        if self.problem.as_ref() != Some(&words) {
            self.events
                .say("not_kept", json!({"problem": words}), &words);
        }
        self.problem = Some(words);
    }

    fn accept(&mut self) {
        let now = std::time::Instant::now();
        let identity = self.identities.fresh(now);
        for listener in &self.listeners {
            let with = (&*identity, &*self.expected);
            if !self.callers.accept(listener, with, now) {
                // No descriptor is free, or the like: what waits would be reported again at once.
                std::thread::sleep(LOOK.to_std());
            }
        }
    }

    fn drive(&mut self, now: Instant) {
        let mut callers = std::mem::take(&mut self.callers);
        let mut outcomes = Vec::new();
        let mut answer = |session: &Session, message: &Message| self.answer(session, message, now);
        callers.drive(&mut answer, &mut outcomes, std::time::Instant::now());
        self.callers = callers;
        for outcome in outcomes {
            self.tell(outcome, now);
        }
    }

    fn answer(
        &mut self,
        session: &Session,
        message: &Message,
        now: Instant,
    ) -> (Option<usize>, Message) {
        let no_member = (None, Message::Refused(Refused::NoMember));
        let (Message::Ask { group, place }, Some(name)) = (message, session.other()) else {
            return no_member;
        };
        let named = self.groups.iter().position(|it| it.name() == group);
        let Some(at) = named.filter(|&at| self.groups[at].has(name)) else {
            return no_member;
        };
        if *place != Place::default() {
            self.groups[at].catch_up(*place, now);
        }
        let no_keys = (Some(at), Message::Refused(Refused::NoKeys));
        if let Some(next) = self.groups[at].lend(name, session.shown())
            && let Err(error) = self.keep((at, next), now)
        {
            self.not_kept(at, &error, now);
            return no_keys;
        }
        match self.groups[at].grant(now) {
            Some(grant) => (Some(at), Message::Answer(grant)),
            None => no_keys,
        }
    }

    fn tell(&mut self, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Came(name) => {
                let words = format!("{} is there", name.short());
                self.events
                    .say("came", json!({"member": name.short()}), &words);
            }
            Outcome::Left(name, why) => {
                let words = format!("{} is not there any more: {why}", name.short());
                self.events
                    .say("left", json!({"member": name.short()}), &words);
            }
            Outcome::Refused(from, why) => {
                let (count, last, tell_at) = &mut self.refused;
                *count += 1;
                let words = format!("{from} was refused: {why}");
                // Who connects and leaves again has only looked.
                if now >= *tell_at && !matches!(why, Ended::System(_)) {
                    *tell_at = now + TELL_REFUSED;
                    let about = json!({"from": from.to_string(), "refused": *count});
                    self.events.say("refused", about, &words);
                }
                *last = Some(words);
            }
        }
    }

    fn tell_sealing(&self, at: usize, sealing: Option<(u64, u16)>) {
        let group = self.groups[at].name();
        match sealing {
            Some((number, id)) => self.events.say(
                "sealing",
                json!({"group": group, "number": number, "key": format!("{id:04x}")}),
                &format!("group '{group}' seals with key {id:04x}, number {number}"),
            ),
            None => self.events.say(
                "no_keys",
                json!({"group": group}),
                &format!("group '{group}' has no keys"),
            ),
        }
    }

    fn status(&self, now: Instant) -> Value {
        let (members, guests) = self.callers.counts();
        let groups = self.groups.iter().enumerate();
        json!({
            "schema": "bumpless.key-server.status/1",
            "name": self.name,
            "site": self.site,
            "problem": self.problem,
            "connections": members,
            "unknown_connections": guests,
            "refused": self.refused.0,
            "refused_last": self.refused.1,
            "groups": groups.map(|(at, group)| group.status(&self.callers.connected(at), now)).collect::<Vec<_>>(),
        })
    }
}

fn tell_given_up(events: &Events, group: &str, name: &str, why: &str) {
    events.say(
        "given_up",
        json!({"group": group, "member": name, "why": why}),
        &format!("{name} is {why}: the keys of group '{group}' are rolled, and it has none of the next ones"),
    );
}
