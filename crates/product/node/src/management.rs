//! Sessions of a node with its partners and witnesses: who they are by the configuration, and what becomes of the keys
//! that they give (`spec/management.md`).

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bumpless_base::PeerId;
use bumpless_config::{Certificates, Config, Reference, ReferenceKind};
use bumpless_management as management;
use bumpless_management::{LinkProfile, Partner, PartnerState, Profile, Ring, Setup};
use bumpless_net_linux::{Clock, Waker};
use bumpless_pki::{BadName, Identity, IdentityPaths, NodeName, Problems, system_clock};
use bumpless_secure::{Keyring, RingSuite, Secret};
use rtrb::Producer;
use serde_json::{Value, json};

use crate::data_plane::Command;
use crate::data_plane::addresses::Correspondent;
use crate::data_plane::protection::Use;
use crate::log::LogRegistry;
use crate::state_security::StateRings;
use crate::wiring::Wiring;

/// The second part of the name in a witness's certificate, in which a node has its pair.
pub const WITNESS: &str = "witness";
/// The data plane takes orders within a turn.
const TAKEN: Duration = Duration::from_secs(1);

/// Where the files of `node` of `pair` are below `folder`.
pub fn paths(folder: &Path, node: &str, pair: &str) -> IdentityPaths {
    let own = format!("{node}.{pair}").to_ascii_lowercase();
    IdentityPaths::in_folder(&folder.join(own))
}

/// The identity of a node of `config`, a configuration in `folder`.
///
/// # Errors
/// Everything that is wrong with its files.
pub fn identity(
    certificates: &Certificates,
    (node, pair): (&str, &str),
    folder: &Path,
) -> Result<Identity, Problems> {
    let paths = paths(&folder.join(&certificates.folder), node, pair);
    Identity::load(&paths, node, pair, system_clock())
}

/// What a configuration in `folder` finds on this computer of the certificates of its nodes: of each that has a folder,
/// the node's name and its identity. A configuration may be checked where there is none.
pub fn identities(
    certificates: &Certificates,
    config: &Config,
    folder: &Path,
) -> Vec<(String, Result<Identity, Problems>)> {
    let nodes = config.nodes.iter().map(|node| node.name.clone());
    let here = nodes.filter(|node| {
        let paths = paths(&folder.join(&certificates.folder), node, &config.pair);
        paths.certificate.parent().is_some_and(Path::is_dir)
    });
    here.map(|node| {
        let identity = identity(certificates, (&node, &config.pair), folder);
        (node, identity)
    })
    .collect()
}

/// With whom there are sessions, and by which number in the configuration each is known to the data plane.
struct Wanted {
    partners: Vec<Partner>,
    with: Vec<Correspondent>,
    names: Vec<String>,
}

impl Wanted {
    fn new(config: &Config, wiring: &Wiring, own: &NodeName) -> Result<Self, BadName> {
        let mut wanted = Self {
            partners: Vec::new(),
            with: Vec::new(),
            names: Vec::new(),
        };
        let names = wiring.names.partners.iter().zip(&wiring.partners);
        for (at, (name, number)) in names.enumerate() {
            let ends = config.nodes[usize::from(wiring.node.0)]
                .addresses
                .iter()
                .zip(&config.nodes[usize::from(number.0)].addresses);
            let paths = ends.filter_map(|(here, there)| {
                Some(management::Path {
                    from: (*here)?.ip(),
                    to: (*there)?,
                })
            });
            let partner = Partner {
                name: own.partner(name)?,
                paths: paths.collect(),
                calls: wiring.node < *number,
            };
            wanted.add(partner, Correspondent::Partner(PeerId(at as u8)), name);
        }
        for (at, reference) in config.references.iter().enumerate() {
            if let Some(path) = witness_path(config, wiring, reference) {
                let partner = Partner {
                    name: NodeName::new(&reference.name, WITNESS, own.site())?,
                    paths: vec![path],
                    calls: true,
                };
                let with = Correspondent::Reference(at as u8);
                wanted.add(partner, with, &reference.name);
            }
        }
        Ok(wanted)
    }

    fn add(&mut self, partner: Partner, with: Correspondent, name: &str) {
        self.partners.push(partner);
        self.with.push(with);
        self.names.push(name.to_owned());
    }
}

fn witness_path(
    config: &Config,
    wiring: &Wiring,
    reference: &Reference,
) -> Option<management::Path> {
    let ReferenceKind::Witness(there) = reference.kind else {
        return None;
    };
    let addresses = &config.nodes[usize::from(wiring.node.0)].addresses;
    let here = (*addresses.get(usize::from(reference.network.0))?)?;
    Some(management::Path {
        from: here.ip(),
        to: there,
    })
}

fn profile(config: &Config, wiring: &Wiring) -> Profile {
    let addresses = &config.nodes[usize::from(wiring.node.0)].addresses;
    let ends = config.networks.iter().zip(addresses);
    let links = ends.filter(|(_, address)| address.is_some());
    let link = |network: &bumpless_config::Network| LinkProfile {
        network: network.name.clone(),
        bandwidth_mbit: network.bandwidth / 1_000_000,
        mtu: network.mtu.into(),
    };
    Profile {
        pair: config.pair.clone(),
        node: wiring.names.node.clone(),
        number: wiring.node.0,
        payload_bytes: config.transfer.payload_size,
        in_flight_max: config.transfer.in_flight_max,
        links: links.map(|(network, _)| link(network)).collect(),
    }
}

/// How it stands with each partner and witness, for status.
#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<Vec<(String, PartnerState)>>>);

impl Sessions {
    fn all(&self) -> Vec<(String, PartnerState)> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.clone()
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
            })
        });
        state.collect()
    }

    /// What is wrong with them, a line each.
    pub fn weaknesses(&self) -> Vec<String> {
        let of = |(name, state): (String, PartnerState)| weaknesses(&name, &state);
        self.all().into_iter().flat_map(of).collect()
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
    (orders, waker, states): (Arc<Mutex<Producer<Command>>>, Waker, StateRings),
    (sessions, log): (&Sessions, LogRegistry),
) -> std::io::Result<management::Running> {
    let wanted = Wanted::new(config, wiring, identity.name()).map_err(std::io::Error::other)?;
    let none = wanted.names.iter().cloned();
    let none = none.map(|name| (name, PartnerState::default()));
    *sessions.0.lock().unwrap_or_else(PoisonError::into_inner) = none.collect();
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
        orders,
        waker,
        states,
        unanswered: Vec::new(),
        sessions: sessions.clone(),
        log,
    };
    management::start(setup, identity, Box::new(host))
}

type Keys = Arc<Keyring<RingSuite>>;

/// Gives keys to the data plane, and frees what it gives up.
struct DataPlaneKeys {
    with: Vec<Correspondent>,
    names: Vec<String>,
    orders: Arc<Mutex<Producer<Command>>>,
    waker: Waker,
    /// Where executors find the same.
    states: StateRings,
    /// What the data plane has, held so that it frees nothing.
    held: Vec<Option<Keys>>,
    /// What it may have still, until it answers.
    unanswered: Vec<(Receiver<Keys>, Option<Keys>)>,
    sessions: Sessions,
    log: LogRegistry,
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

    fn forget_keys(&mut self, partner: usize) {
        let Some(keys) = self.held[partner].clone() else {
            return;
        };
        self.give_states(partner, &keys, false);
        // A full queue of orders empties within a turn of the data plane.
        let until = Instant::now() + TAKEN;
        while Instant::now() < until {
            if let Some(answer) = self.order(partner, &keys, Use::Nothing) {
                self.unanswered.push((answer, Some(keys)));
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn changed(&mut self, partner: usize, state: &PartnerState) {
        let name = &self.names[partner];
        let mut states = self
            .sessions
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
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
}
