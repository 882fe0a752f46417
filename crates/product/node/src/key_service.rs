//! Keys that a node takes from key servers: what becomes of them, and how it stands with the servers (`spec/security.md`,
//! N-87 and further).

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bumpless_base::PeerId;
use bumpless_config::{Certificates, Config};
use bumpless_keys as keys;
use bumpless_keys::{KEYS, Server, Setup, State};
use bumpless_net_linux::{Clock, Waker};
use bumpless_pki::{Identity, NodeName};
use bumpless_secure::group::GroupKey;
use bumpless_secure::{Keyring, RingSuite};
use rtrb::Producer;
use serde_json::{Value, json};

use crate::certificates::paths;
use crate::data_plane::Command;
use crate::data_plane::addresses::Correspondent;
use crate::data_plane::protection::Use;
use crate::log::LogRegistry;
use crate::state_security::StateRings;
use crate::wiring::Wiring;

/// The data plane takes orders within a turn.
const TAKEN: Duration = Duration::from_secs(1);
/// After this without a first answer status warns.
const FIRST: u64 = 2;
/// After this without an answer of any server status warns.
const MISSED: u64 = 10;

/// Where keys go: orders to the data plane, what wakes it, and where executors find the same.
pub type KeyWays = (Arc<Mutex<Producer<Command>>>, Waker, StateRings);

type Ring = Arc<Keyring<RingSuite>>;

/// The group's keys for what is exchanged with partners. Both those who take them from servers and those who judge partners by
/// their certificates have a say.
#[derive(Clone)]
pub struct GroupKeys(Arc<Mutex<Given>>);

struct Given {
    ring: Option<Ring>,
    /// By partner: it is revoked, and has none.
    barred: Vec<bool>,
    orders: Arc<Mutex<Producer<Command>>>,
    waker: Waker,
    /// Where executors find the same.
    states: StateRings,
    /// What the data plane may have still, held so that it frees nothing.
    unanswered: Vec<(Receiver<Ring>, Option<Ring>)>,
}

impl GroupKeys {
    /// None yet, for so many partners.
    pub fn new(partners: usize, (orders, waker, states): KeyWays) -> Self {
        Self(Arc::new(Mutex::new(Given {
            ring: None,
            barred: vec![false; partners],
            orders,
            waker,
            states,
            unanswered: Vec::new(),
        })))
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing of the partner is opened and nothing leaves for it from here on: it is revoked. `false`: it is believed again.
    pub fn bar(&self, peer: PeerId, barred: bool) {
        let mut given = self.given();
        let Some(known) = given.barred.get_mut(usize::from(peer.0)) else {
            return;
        };
        if std::mem::replace(known, barred) == barred {
            return;
        }
        if let Some(ring) = given.ring.clone() {
            given.insist(peer, &ring);
        }
    }

    /// These are the keys from here on. `false`: they cannot be taken at present.
    fn set(&self, ring: &[GroupKey]) -> bool {
        let mut given = self.given();
        let given = &mut *given;
        given
            .unanswered
            .retain(|(answer, _)| answer.try_recv().is_err());
        let before = given.ring.clone();
        let secrets = ring.iter().map(GroupKey::secret).collect();
        let next = match ring.is_empty() {
            true => None,
            // Servers give no two keys with one identifier.
            false => match Keyring::new(secrets) {
                Ok(next) => Some(Arc::new(next)),
                Err(_) => return false,
            },
        };
        let Some(keys) = next.as_ref().or(before.as_ref()) else {
            return true;
        };
        let mut taken = true;
        for at in 0..given.barred.len() {
            let way = match next.is_some() && !given.barred[at] {
                true => Use::SealAndOpen,
                false => Use::Nothing,
            };
            taken &= given.order(PeerId(at as u8), (keys, way), before.as_ref());
        }
        given.ring = next;
        taken
    }
}

impl Given {
    /// As `barred` says of the partner.
    fn insist(&mut self, peer: PeerId, ring: &Ring) {
        let way = match self.barred[usize::from(peer.0)] {
            true => Use::Nothing,
            false => Use::SealAndOpen,
        };
        // A full queue of orders empties within a turn of the data plane.
        for _ in 0..TAKEN.as_millis() {
            if self.order(peer, (ring, way), Some(ring)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn order(&mut self, peer: PeerId, (keys, way): (&Ring, Use), before: Option<&Ring>) -> bool {
        self.states.set(peer, keys, way == Use::SealAndOpen);
        let (reply, answer) = sync_channel(1);
        let command = Command::SetKeys {
            with: Correspondent::Partner(peer),
            keys: Arc::clone(keys),
            way,
            reply,
        };
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let pushed = orders.push(command).is_ok();
        drop(orders);
        self.waker.wake();
        if !pushed {
            return false;
        }
        match answer.recv_timeout(TAKEN) {
            Ok(_) => true,
            // The process ends.
            Err(RecvTimeoutError::Disconnected) => false,
            // It is taken in the end: orders are not lost.
            Err(RecvTimeoutError::Timeout) => {
                self.unanswered.push((answer, before.cloned()));
                true
            }
        }
    }
}

/// How it stands with the key servers, for status.
#[derive(Clone, Default)]
pub struct KeyService(Arc<Mutex<Option<State>>>);

impl KeyService {
    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What status shows of them; null without any.
    pub fn json(&self) -> Value {
        let state = self.state();
        let Some(state) = &*state else {
            return Value::Null;
        };
        let seconds = |span: bumpless_base::Duration| span.as_nanos() as f64 / 1e9;
        json!({
            "server": state.server,
            "answered_ago_s": state.answered_ago.map(seconds),
            "key": state.sealing.map(|(_, id)| format!("{id:04x}")),
            "number": state.sealing.map(|(number, _)| number),
            "era": state.era,
            "keys": state.keys,
            "ends_in_s": state.ends_in.map(seconds),
            "rolled": state.rolled,
            "problems": state.problems.iter().map(|(server, problem)| json!({
                "server": server, "problem": problem,
            })).collect::<Vec<_>>(),
        })
    }

    /// What is wrong with them, a line each.
    pub fn weaknesses(&self) -> Vec<String> {
        let state = self.state();
        state.as_ref().map(weaknesses).unwrap_or_default()
    }
}

/// Whether servers are missed; before they are, a restart of one is nobody's concern.
fn is_missed(state: &State) -> bool {
    let seconds = bumpless_base::Duration::from_secs;
    match state.answered_ago {
        Some(ago) => ago >= seconds(MISSED),
        None => state.asked_for >= seconds(FIRST),
    }
}

fn weaknesses(state: &State) -> Vec<String> {
    let mut lines = Vec::new();
    if is_missed(state) {
        lines.push(match state.ends_in {
            Some(left) => format!(
                "no key server answers: the keys that are here last for {} s more, after that nothing is sent to other nodes; start one",
                left.as_nanos() / 1_000_000_000
            ),
            None => "no key server has given keys: nothing is sent to other nodes; start one".into(),
        });
    }
    // While a session begins anew after one has ended, there is nothing to tell yet.
    if is_missed(state) || state.server.is_some() {
        let problems = state.problems.iter();
        lines.extend(problems.map(|(server, why)| format!("key server '{server}': {why}")));
    }
    lines
}

struct NodeKeys {
    keys: GroupKeys,
    service: KeyService,
    log: LogRegistry,
    /// What was told is wrong: that servers are missed, and with which.
    told: (bool, Vec<(String, String)>),
}

impl keys::Host for NodeKeys {
    fn set_ring(&mut self, ring: &[GroupKey]) -> bool {
        self.keys.set(ring)
    }

    fn changed(&mut self, state: &State) {
        *self.service.state() = Some(state.clone());
        // A line with the time that is left is another one each second.
        let wrong = (is_missed(state), state.problems.clone());
        if wrong != self.told {
            for line in weaknesses(state) {
                self.log.tell_weakness(Clock.now(), line);
            }
            self.told = wrong;
        }
    }
}

/// Starts to take keys from the servers of `certificates`, for the group with the pair's name.
///
/// # Errors
/// A name that cannot stand in a certificate, or what the system says.
pub fn start(
    (config, wiring): (&Config, &Wiring),
    (certificates, identity, folder): (&Certificates, Identity, &Path),
    (group, service): (GroupKeys, &KeyService),
    log: LogRegistry,
) -> std::io::Result<keys::Running> {
    let site = identity.name().site().to_owned();
    let mut servers = Vec::new();
    for server in &certificates.key_servers {
        let name = NodeName::new(&server.name, KEYS, &site).map_err(std::io::Error::other)?;
        servers.push(Server {
            name,
            address: server.address,
        });
    }
    let setup = Setup {
        identity: paths(
            &folder.join(&certificates.folder),
            &wiring.names.node,
            &config.pair,
        ),
        group: config.pair.clone(),
        servers,
    };
    let host = NodeKeys {
        keys: group,
        service: service.clone(),
        log,
        told: (false, Vec::new()),
    };
    keys::start(setup, identity, Box::new(host))
}
