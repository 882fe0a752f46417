//! One turn after the other: files that change, orders, groups, connections.

mod telling;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use bumpless_base::{Duration, Instant};
use bumpless_keys::{KEYS, Message, Refused, Server, Session};
use bumpless_net_linux::Clock;
use bumpless_node::control::refusal;
use bumpless_pki::{Identity, IdentityPaths, NodeName};
use bumpless_secure::group::Place;
use bumpless_sessions::Identities;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::callers::Callers;
use crate::config::Config;
use crate::error::RunError;
use crate::event::Events;
use crate::group::{Group, Next, expected, not_kept};
use crate::request::{Order, Request};
use crate::store::{Kept, Store, StoreError};
use telling::Refusals;

/// Longest wait, after which it is looked whether to end.
const LOOK: Duration = Duration::from_millis(20);

/// A server that runs.
pub struct Service {
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
    refusals: Refusals,
    /// What each group sealed with when that was told last.
    told: Vec<Option<(u64, u16)>>,
}

/// The groups of `config` with what `store` kept of them, as of `now`.
///
/// # Errors
/// What was kept cannot be read or used, or a server that is followed has no name that a certificate can have.
pub fn restored(
    config: &Config,
    site: &str,
    store: &Store,
    now: Instant,
) -> Result<Vec<Group>, RunError> {
    let mut follow = Vec::new();
    for other in &config.follow {
        let name = NodeName::new(&other.name, KEYS, site).map_err(RunError::Name)?;
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
    Ok(groups)
}

impl Service {
    /// With what was kept on disk.
    ///
    /// # Errors
    /// What was kept cannot be read or used, or a server that is followed has no name that a certificate can have.
    pub fn new(
        config: &Config,
        (identity, paths): (Identity, IdentityPaths),
        (store, events): (Store, Events),
        listeners: Vec<TcpListener>,
    ) -> Result<Self, RunError> {
        let now = Clock.now();
        let site = identity.name().site().to_owned();
        let groups = restored(config, &site, &store, now)?;
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
            refusals: Refusals::default(),
        })
    }

    /// Judges by the list who was given keys before this process, and keeps the first keys: what cannot be kept now cannot be
    /// kept later either.
    ///
    /// # Errors
    /// They cannot be kept.
    pub fn begin(&mut self) -> Result<(), RunError> {
        let now = Clock.now();
        for group in &mut self.groups {
            for (name, why) in group.judge(self.identities.loaded()) {
                telling::given_up(&self.events, group.name(), &name, why);
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

    /// Until `stop` is set.
    pub fn serve(&mut self, ordered: &Receiver<Order>, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
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
        let now = std::time::Instant::now();
        let changed = self.identities.changed(now);
        if let Some(lines) = self.identities.news(now) {
            for line in lines {
                self.events.say("care", json!({"about": line}), line);
            }
        }
        let Some(identity) = changed else {
            return;
        };
        self.callers.judge(&identity);
        for group in &mut self.groups {
            for (name, why) in group.judge(&identity) {
                telling::given_up(&self.events, group.name(), &name, why);
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
        let at = at.ok_or_else(|| {
            let name = name.unwrap_or_default();
            format!(
                "no group is called '{name}'; there are: {}",
                names.join(", ")
            )
        })?;
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
}
