//! The thread of a node that asks key servers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::Clock;
use bumpless_pki::{Identity, IdentityPaths};
use bumpless_secure::group::{GroupKey, Schedule};
use bumpless_sessions::Identities;
use rustix::event::{Timespec, poll};

use crate::member::{Member, Server};

/// Longest wait, after which it is looked whether to end.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is told how things stand if nothing happens.
const TELL: Duration = Duration::from_secs(1);

/// Whose keys are asked for, and where.
#[derive(Clone, Debug)]
pub struct Setup {
    /// This node's certificate.
    pub identity: IdentityPaths,
    /// The group.
    pub group: String,
    /// Who has its keys, in the order in which they are to be used.
    pub servers: Vec<Server>,
}

/// How things stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The server whose session is in use.
    pub server: Option<String>,
    /// How long they have been asked for.
    pub asked_for: Duration,
    /// How long ago keys came last; `None`: never.
    pub answered_ago: Option<Duration>,
    /// Number and identifier of the key that is sealed with.
    pub sealing: Option<(u64, u16)>,
    /// The era of the keys.
    pub era: u64,
    /// How many keys are here.
    pub keys: usize,
    /// After so long nothing seals any more, if no server answers.
    pub ends_in: Option<Duration>,
    /// How often another key was sealed with.
    pub rolled: u64,
    /// What is wrong with servers: name and reason.
    pub problems: Vec<(String, String)>,
}

/// What a node does with the keys.
pub trait Host: Send {
    /// From here on packets are opened with these keys and sealed with the first one; without any, with none. `false`: that
    /// was not possible at present, and is to be said again.
    fn set_ring(&mut self, ring: &[GroupKey]) -> bool;

    /// Things stand so.
    fn changed(&mut self, state: &State);
}

/// The thread, which ends with this.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A thread that panics ends the process.
            let _ = thread.join();
        }
    }
}

/// Starts the thread.
///
/// # Errors
/// There is no thread to be had.
pub fn start(setup: Setup, identity: Identity, host: Box<dyn Host>) -> io::Result<Running> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let now = Clock.now();
    let mut service = Service {
        identities: Identities::new(setup.identity, identity, std::time::Instant::now()),
        member: Member::new(setup.group, setup.servers, Schedule::default(), now),
        host,
        ring: Vec::new(),
        sealing: None,
        rolled: 0,
        began: now,
        tell_at: now,
    };
    let thread = thread::Builder::new()
        .name("keys".into())
        .spawn(move || service.run(&stopped))?;
    Ok(Running {
        stop,
        thread: Some(thread),
    })
}

struct Service {
    identities: Identities,
    member: Member,
    host: Box<dyn Host>,
    /// The identifiers of the keys that the host has.
    ring: Vec<u16>,
    /// The one that is sealed with.
    sealing: Option<(u64, u16)>,
    rolled: u64,
    began: Instant,
    tell_at: Instant,
}

impl Service {
    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            self.wait();
            self.turn(Clock.now());
        }
        self.member.close();
    }

    fn wait(&self) {
        let now = Clock.now();
        let change = self.member.schedule().next_change(now);
        let span = change.map_or(LOOK, |at| LOOK.min(at.since(now)));
        let timeout = Timespec {
            tv_sec: 0,
            // A little more, so that the time has come when this ends.
            tv_nsec: (span.as_nanos() + 1000) as _,
        };
        let mut files: Vec<_> = self.member.polls().collect();
        // A signal ends it early, which does no harm.
        let _ = poll(&mut files, Some(&timeout));
    }

    fn turn(&mut self, now: Instant) {
        if let Some(identity) = self.identities.changed(std::time::Instant::now()) {
            self.member.judge(&identity);
        }
        let server = self.member.server().map(|it| it.address);
        let mut news = self.member.drive(&mut self.identities, now) && self.tell_at <= now;
        news |= self.member.server().map(|it| it.address) != server;
        news |= self.follow(now);
        if news || now >= self.tell_at {
            self.tell_at = now + TELL;
            let state = self.state(now);
            self.host.changed(&state);
        }
    }

    /// Gives the host the keys of this moment; whether another one is sealed with.
    fn follow(&mut self, now: Instant) -> bool {
        let held = self.member.schedule().ring(now);
        let ids: Vec<_> = held.iter().map(|it| it.key.id()).collect();
        if ids != self.ring {
            let keys: Vec<_> = held.iter().map(|it| it.key.clone()).collect();
            if self.host.set_ring(&keys) {
                self.ring = ids;
            }
        }
        let sealing = held.first().map(|it| (it.place.token, it.key.id()));
        let other = sealing != self.sealing;
        self.rolled += u64::from(other && self.sealing.is_some() && sealing.is_some());
        self.sealing = sealing;
        other
    }

    fn state(&self, now: Instant) -> State {
        let schedule = self.member.schedule();
        let ends = schedule.sealing(now).and(schedule.ends_at());
        let problems = self.member.problems();
        State {
            server: self.member.server().map(|it| it.name.short().to_owned()),
            asked_for: now.since(self.began),
            answered_ago: self.member.answered().map(|at| now.since(at)),
            sealing: self.sealing,
            era: schedule.era(),
            keys: schedule.keys().len(),
            ends_in: ends.map(|at| at.since(now)),
            rolled: self.rolled,
            problems: problems
                .map(|(server, why)| (server.name.short().to_owned(), why.to_owned()))
                .collect(),
        }
    }
}
