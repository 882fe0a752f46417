//! Sessions of a node with its partners and witnesses: who they are by the configuration, and what becomes of the keys
//! that they give (`spec/management.md`).

mod wanted;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use bumpless_base::MAX_LINKS;
use bumpless_config::{Certificates, Config};
use bumpless_management as management;
use bumpless_management::{Carried, Errand, PartnerState, Profile, Ring, Setup};
use bumpless_net_linux::{Clock, Waker};
use bumpless_pki::Identity;
use bumpless_secure::{Keyring, RingSuite, Secret};
use rtrb::Producer;
use serde_json::{Value, json};

use self::wanted::{Wanted, profile};
use crate::certificates::paths;
use crate::change::{ChangeRequest, Proposals};
use crate::data_plane::Command;
use crate::data_plane::addresses::Correspondent;
use crate::data_plane::limits::Limits;
use crate::data_plane::protection::Use;
use crate::key_service::{GroupKeys, KeyWays};
use crate::log::LogRegistry;
use crate::state_security::StateRings;
use crate::wiring::Wiring;

/// The data plane takes orders within a turn.
const TAKEN: Duration = Duration::from_secs(1);

/// How it stands with each partner and witness, for status.
#[derive(Clone, Default)]
pub struct Sessions {
    states: Arc<Mutex<Vec<(String, PartnerState)>>>,
    /// What needs care about the node's own certificate, authorities and list.
    cares: Arc<Mutex<Vec<String>>>,
    /// Way to the partner of a pair, and its name.
    partner: Arc<OnceLock<(Errand, String)>>,
}

impl Sessions {
    fn states(&self) -> MutexGuard<'_, Vec<(String, PartnerState)>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<(String, PartnerState)> {
        self.states().clone()
    }

    /// Asks the pair's other node for the change to the configuration `text`; its name, and what came of it within
    /// `patience`. `None`: there are no sessions.
    pub fn propose(&self, text: String, patience: Duration) -> Option<(&str, Carried)> {
        let (errand, name) = self.partner.get()?;
        Some((name, errand.propose(0, text, patience)))
    }

    /// Asks the pair's other node to give up what is prepared, if there is a session.
    pub fn withdraw(&self) {
        if let Some((errand, _)) = self.partner.get() {
            errand.withdraw(0);
        }
    }

    /// What status shows of them.
    pub fn json(&self) -> Value {
        let states = self.all();
        let state = states.iter().map(|(name, state)| {
            json!({
                "with": name,
                "connected": state.connected,
                "has_key": state.has_key,
                "keys_agreed": state.keys_agreed,
                "problem": state.problem,
                "mismatches": state.mismatches,
                "states": state.profile.as_ref().map(|profile| json!({
                    "payload_bytes": profile.payload_bytes,
                    "in_flight_max": profile.in_flight_max,
                    "links": profile.links,
                })),
            })
        });
        state.collect()
    }

    /// What is wrong with them, a line each.
    pub fn weaknesses(&self) -> Vec<String> {
        let of = |(name, state): (String, PartnerState)| weaknesses(&name, &state);
        let mut lines: Vec<_> = self.all().into_iter().flat_map(of).collect();
        lines.extend(self.cares().iter().cloned());
        lines
    }

    fn cares(&self) -> MutexGuard<'_, Vec<String>> {
        self.cares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What needs care from here on; returns what did before.
    fn set_cares(&self, lines: &[String]) -> Vec<String> {
        std::mem::replace(&mut *self.cares(), lines.to_vec())
    }
}

fn weaknesses(name: &str, state: &PartnerState) -> Vec<String> {
    let mut lines = state.mismatches.clone();
    if let Some(problem) = &state.problem {
        let without = match state.has_key {
            true => "no new key is agreed on",
            false => "there is no key",
        };
        lines.push(format!("{without} with '{name}': {problem}"));
    }
    lines
}

/// Starts the sessions of a node.
///
/// # Errors
/// A name that cannot stand in a certificate, or what the system says.
pub fn start(
    (config, wiring): (&Config, &Wiring),
    (certificates, identity, folder): (&Certificates, Identity, &Path),
    ((orders, waker, states), group): (KeyWays, Option<GroupKeys>),
    (sessions, log): (&Sessions, LogRegistry),
    changes: (Sender<ChangeRequest>, Thread),
) -> std::io::Result<management::Running> {
    let wanted = Wanted::new(config, wiring, identity.name()).map_err(std::io::Error::other)?;
    let none = wanted.names.iter().cloned();
    let none = none.map(|name| (name, PartnerState::default()));
    *sessions.states() = none.collect();
    let called = wanted.partners.iter().any(|partner| !partner.calls);
    let addresses = &config.nodes[usize::from(wiring.node.0)].addresses;
    let own = addresses.iter().flatten().copied();
    let setup = Setup {
        identity: paths(
            &folder.join(&certificates.folder),
            &wiring.names.node,
            &config.pair,
        ),
        profile: profile(config, wiring),
        partners: wanted.partners,
        listen: own.filter(|_| called).collect(),
        key_lifetime: certificates.key_lifetime.to_std(),
    };
    let host = DataPlaneKeys {
        held: wanted.with.iter().map(|_| None).collect(),
        with: wanted.with,
        names: wanted.names,
        links: wiring.names.links.clone(),
        orders,
        waker,
        states,
        group,
        unanswered: Vec::new(),
        sessions: sessions.clone(),
        log,
        proposals: Proposals::new(changes),
    };
    let running = management::start(setup, identity, Box::new(host))?;
    // Partners come before witnesses.
    if let [partner] = &wiring.names.partners[..] {
        let _ = sessions.partner.set((running.errand(), partner.clone()));
    }
    Ok(running)
}

/// What the node of `profile` can take on `networks`, which it may number otherwise.
fn limits(profile: &Profile, networks: &[String]) -> Limits {
    let mut bandwidth = [0; MAX_LINKS];
    for (own, network) in bandwidth.iter_mut().zip(networks) {
        let link = profile.links.iter().find(|link| link.network == *network);
        *own = link.map_or(0, |link| link.bandwidth);
    }
    Limits {
        in_flight_max: profile.in_flight_max,
        bandwidth,
    }
}

type Keys = Arc<Keyring<RingSuite>>;

/// Gives keys to the data plane, and frees what it gives up.
struct DataPlaneKeys {
    with: Vec<Correspondent>,
    names: Vec<String>,
    /// The networks, by number.
    links: Vec<String>,
    orders: Arc<Mutex<Producer<Command>>>,
    waker: Waker,
    /// Where executors find the same.
    states: StateRings,
    /// The keys of messages to partners, if those come from servers; the sessions' secrets are for states alone then.
    group: Option<GroupKeys>,
    /// What the data plane has, held so that it frees nothing.
    held: Vec<Option<Keys>>,
    /// What it may have still, until it answers.
    unanswered: Vec<(Receiver<Keys>, Option<Keys>)>,
    sessions: Sessions,
    log: LogRegistry,
    proposals: Proposals,
}

impl DataPlaneKeys {
    fn order(&self, partner: usize, keys: &Keys, way: Use) -> Option<Receiver<Keys>> {
        let (reply, answer) = sync_channel(1);
        let command = Command::SetKeys {
            with: self.with[partner],
            keys: Arc::clone(keys),
            way,
            reply,
        };
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.push(command).ok()?;
        self.waker.wake();
        Some(answer)
    }
}

impl DataPlaneKeys {
    /// States are exchanged with partners alone. Those that are here already open still.
    fn give_states(&self, partner: usize, keys: &Keys, seals: bool) {
        if let Correspondent::Partner(peer) = self.with[partner] {
            self.states.set(peer, keys, seals);
        }
    }
}

impl management::Host for DataPlaneKeys {
    fn set_profile(&mut self, partner: usize, profile: &Profile) -> bool {
        let Correspondent::Partner(peer) = self.with[partner] else {
            return true;
        };
        let limits = limits(profile, &self.links);
        let order = Command::SetLimits { peer, limits };
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = orders.push(order).is_ok();
        self.waker.wake();
        taken
    }

    fn set_keys(&mut self, partner: usize, ring: &Ring) -> bool {
        self.unanswered
            .retain(|(answer, _)| answer.try_recv().is_err());
        let secrets = ring.secrets.iter().map(|secret| Secret::new(**secret));
        // By chance two have one identifier.
        let Ok(keys) = Keyring::new(secrets.collect()) else {
            return false;
        };
        let keys = Arc::new(keys);
        let way = match ring.seals {
            true => Use::SealAndOpen,
            false => Use::Open,
        };
        self.give_states(partner, &keys, ring.seals);
        if let (Some(group), Correspondent::Partner(peer)) = (&self.group, self.with[partner]) {
            // Who has a session is believed.
            group.bar(peer, false);
            self.held[partner] = Some(keys);
            return true;
        }
        let Some(answer) = self.order(partner, &keys, way) else {
            return false;
        };
        let before = self.held[partner].replace(keys);
        match answer.recv_timeout(TAKEN) {
            Ok(_) => true,
            // The process ends.
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => {
                self.unanswered.push((answer, before));
                false
            }
        }
    }

    fn forget_keys(&mut self, partner: usize) -> bool {
        let Some(keys) = self.held[partner].clone() else {
            return true;
        };
        self.give_states(partner, &keys, false);
        if let (Some(group), Correspondent::Partner(peer)) = (&self.group, self.with[partner]) {
            group.bar(peer, true);
            return true;
        }
        // A full queue of orders empties within a turn of the data plane.
        let Some(answer) = self.order(partner, &keys, Use::Nothing) else {
            return false;
        };
        self.unanswered.push((answer, Some(keys)));
        true
    }

    fn set_cares(&mut self, lines: &[String]) {
        let before = self.sessions.set_cares(lines);
        for line in lines.iter().filter(|line| !before.contains(line)) {
            self.log.tell_weakness(Clock.now(), line.clone());
        }
    }

    fn changed(&mut self, partner: usize, state: &PartnerState) {
        let name = &self.names[partner];
        let mut states = self.sessions.states();
        let Some((_, known)) = states.get_mut(partner) else {
            return;
        };
        let before = weaknesses(name, known);
        *known = state.clone();
        drop(states);
        for line in weaknesses(name, state) {
            if !before.contains(&line) {
                self.log.tell_weakness(Clock.now(), line);
            }
        }
    }

    fn propose(&mut self, partner: usize, text: String) {
        if matches!(self.with[partner], Correspondent::Partner(_)) {
            self.proposals.take(text, &self.names[partner]);
        }
    }

    fn proposal(&mut self, partner: usize) -> Option<Result<(), String>> {
        match self.with[partner] {
            Correspondent::Partner(_) => self.proposals.answer(),
            Correspondent::Reference(_) => None,
        }
    }

    fn withdraw(&mut self, partner: usize) {
        if matches!(self.with[partner], Correspondent::Partner(_)) {
            self.proposals.withdraw();
        }
    }
}
