//! Sessions of a witness with the nodes that it serves: each gives a key for what that node asks (`spec/management.md`,
//! M-30 to M-33).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use bumpless_config::pair_id;
use bumpless_management::{Host, Partner, PartnerState, Profile, Ring, Running, Setup, start};
use bumpless_net_linux::Waker;
use bumpless_pki::{Identity, IdentityPaths, NodeName, Problems, system_clock};
use bumpless_secure::{Keyring, RingSuite, Secret};

use super::WitnessError;
use crate::certificates::{WITNESS, paths};
use crate::warn;

/// The serving thread takes keys within a turn.
const TAKEN: Duration = Duration::from_secs(1);
/// No keys are replaced by a witness: nodes do it.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Who a witness is, and whom it serves.
#[derive(Clone, Debug)]
pub struct Certified {
    /// A folder with its certificates, each in a folder called NAME.witness.
    pub folder: PathBuf,
    /// What it is called: by one name at all its addresses, or by one at each.
    pub names: Vec<String>,
    /// The nodes that it serves, as NODE.PAIR.
    pub nodes: Vec<String>,
}

impl Certified {
    /// What it is called and at which of `listen`: one name at all addresses, or each at the address in its place.
    ///
    /// # Errors
    /// Neither one name nor as many as there are addresses.
    fn by_name<'a>(
        &'a self,
        listen: &'a [SocketAddr],
    ) -> Result<Vec<(&'a str, &'a [SocketAddr])>, WitnessError> {
        if let [name] = &self.names[..] {
            return Ok(vec![(name, listen)]);
        }
        if self.names.len() != listen.len() {
            return Err(WitnessError::Setup(format!(
                "{} names for {} addresses: give one --name for all, or one for each --listen in the same order",
                self.names.len(),
                listen.len()
            )));
        }
        let names = self.names.iter().map(String::as_str);
        Ok(names.zip(listen.chunks(1)).collect())
    }
}

/// Keys for what a node asks, at its position in [`Sessions::served`].
pub struct NewKeys {
    /// The node's position.
    pub node: usize,
    /// Its keys; `None`: it is not believed any more.
    pub keys: Option<Keyring<RingSuite>>,
    /// Whether they are in use from now on.
    pub reply: SyncSender<bool>,
}

/// A node that is served by one of the witness's names.
pub struct Served {
    /// Its pair (`bumpless_config::pair_id`).
    pub pair: u32,
    /// Where it asks.
    pub at: Vec<SocketAddr>,
}

/// Sessions that run, and what comes of them.
pub struct Sessions {
    /// Keys as they come.
    pub keys: Receiver<NewKeys>,
    /// Every node once for each of the witness's names.
    pub served: Vec<Served>,
    _running: Vec<Running>,
}

impl Sessions {
    /// Answers nodes at `listen`, each address by the name that it has.
    ///
    /// # Errors
    /// Everything that is wrong with the witness's files, a name that no node can have, or what the system says.
    pub fn start(
        certified: &Certified,
        listen: &[SocketAddr],
        waker: &Waker,
    ) -> Result<Self, WitnessError> {
        let names = certified.by_name(listen)?;
        let pairs = pairs(certified);
        let identities = identities(certified, names.iter().map(|&(name, _)| name))?;
        let (sender, keys) = channel();
        let (mut served, mut running) = (Vec::new(), Vec::new());
        for ((name, at), (paths, identity)) in names.into_iter().zip(identities) {
            let host = Serving {
                nodes: certified.nodes.clone(),
                first: served.len(),
                told: vec![None; certified.nodes.len()],
                cares: Vec::new(),
                sender: sender.clone(),
                waker: waker.clone(),
            };
            let setup = setup((name, paths), (&identity, &certified.nodes), at)?;
            let started = start(setup, identity, Box::new(host));
            running.push(started.map_err(WitnessError::System)?);
            served.extend(pairs.iter().map(|&pair| Served {
                pair,
                at: at.to_vec(),
            }));
        }
        Ok(Self {
            keys,
            served,
            _running: running,
        })
    }
}

/// The identity by each of `names`, and where its files are.
///
/// # Errors
/// Everything that is wrong with all files.
fn identities<'a>(
    certified: &Certified,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<(IdentityPaths, Identity)>, WitnessError> {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for name in names {
        let paths = paths(&certified.folder, name, WITNESS);
        match Identity::load(&paths, name, WITNESS, system_clock()) {
            Ok(identity) => found.push((paths, identity)),
            Err(problems) => wrong.extend(problems.0),
        }
    }
    match wrong.is_empty() {
        true => Ok(found),
        false => Err(WitnessError::Identity(Problems(wrong))),
    }
}

fn setup(
    (name, paths): (&str, IdentityPaths),
    (identity, nodes): (&Identity, &[String]),
    listen: &[SocketAddr],
) -> Result<Setup, WitnessError> {
    let site = identity.name().site();
    let partner = |text: &String| NodeName::at_site(text, site).map(|name| served(&name));
    let partners: Result<Vec<_>, _> = nodes.iter().map(partner).collect();
    Ok(Setup {
        profile: Profile {
            pair: WITNESS.into(),
            node: name.into(),
            ..Profile::default()
        },
        identity: paths,
        partners: partners.map_err(|error| WitnessError::Setup(error.to_string()))?,
        listen: listen.to_vec(),
        key_lifetime: NEVER,
    })
}

/// The pairs as the nodes' requests name them: by their names as in the configuration, small and capital letters apart.
fn pairs(certified: &Certified) -> Vec<u32> {
    let pair = |text: &String| text.split('.').nth(1).map_or(0, pair_id);
    certified.nodes.iter().map(pair).collect()
}

fn served(name: &NodeName) -> Partner {
    Partner {
        name: name.clone(),
        paths: Vec::new(),
        calls: false,
    }
}

struct Serving {
    nodes: Vec<String>,
    /// Position of the first one in [`Sessions::served`].
    first: usize,
    /// What was wrong with the sessions with each when that was told last.
    told: Vec<Option<String>>,
    /// What needs care about the witness's own certificate, authorities and list.
    cares: Vec<String>,
    sender: Sender<NewKeys>,
    waker: Waker,
}

impl Serving {
    fn give(&self, node: usize, keys: Option<Keyring<RingSuite>>) -> bool {
        let (reply, answer) = sync_channel(1);
        let new = NewKeys {
            node: self.first + node,
            keys,
            reply,
        };
        if self.sender.send(new).is_err() {
            return false;
        }
        self.waker.wake();
        answer.recv_timeout(TAKEN).unwrap_or(false)
    }
}

impl Host for Serving {
    fn set_profile(&mut self, _: usize, _: &Profile) -> bool {
        true
    }

    fn set_keys(&mut self, node: usize, ring: &Ring) -> bool {
        let secrets = ring.secrets.iter().map(|secret| Secret::new(**secret));
        let Ok(keys) = Keyring::new(secrets.collect()) else {
            return false;
        };
        self.give(node, Some(keys))
    }

    fn forget_keys(&mut self, node: usize) -> bool {
        self.give(node, None)
    }

    fn set_cares(&mut self, lines: &[String]) {
        for line in lines.iter().filter(|line| !self.cares.contains(line)) {
            warn(format_args!("{line}"));
        }
        self.cares = lines.to_vec();
    }

    fn changed(&mut self, node: usize, state: &PartnerState) {
        if state.problem.is_some() && state.problem != self.told[node] {
            let problem = state.problem.as_deref().unwrap_or_default();
            warn(format_args!(
                "no session with {}: {problem}",
                self.nodes[node]
            ));
        }
        self.told[node].clone_from(&state.problem);
    }
}
