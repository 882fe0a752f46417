//! Sessions of a witness with the nodes that it serves: each gives a key for what that node asks (`spec/management.md`,
//! M-30 to M-33).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use bumpless_config::pair_id;
use bumpless_management::{Host, Partner, PartnerState, Profile, Ring, Running, Setup, start};
use bumpless_net_linux::Waker;
use bumpless_pki::{Identity, NodeName, system_clock};
use bumpless_secure::{Keyring, RingSuite, Secret};

use super::WitnessError;
use crate::management::{WITNESS, paths};
use crate::warn;

/// The serving thread takes keys within a turn.
const TAKEN: Duration = Duration::from_secs(1);
/// No keys are replaced by a witness: nodes do it.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Who a witness is, and whom it serves.
#[derive(Clone, Debug)]
pub struct Certified {
    /// A folder with its certificate in one called NAME.witness.
    pub folder: PathBuf,
    /// What it is called.
    pub name: String,
    /// The nodes that it serves, as NODE.PAIR.
    pub nodes: Vec<String>,
}

/// Keys for what a node asks, at its position in [`Certified::nodes`].
pub struct NewKeys {
    /// The node's position.
    pub node: usize,
    /// Its keys; `None`: it is not believed any more.
    pub keys: Option<Keyring<RingSuite>>,
    /// Whether they are in use from now on.
    pub reply: SyncSender<bool>,
}

/// Sessions that run, and what comes of them.
pub struct Sessions {
    /// Keys as they come.
    pub keys: Receiver<NewKeys>,
    /// The nodes' pairs (`bumpless_config::pair_id`).
    pub pairs: Vec<u32>,
    _running: Running,
}

impl Sessions {
    /// Answers nodes at `listen`.
    ///
    /// # Errors
    /// Everything that is wrong with the witness's files, a name that no node can have, or what the system says.
    pub fn start(
        certified: &Certified,
        listen: &[SocketAddr],
        waker: Waker,
    ) -> Result<Self, WitnessError> {
        let paths = paths(&certified.folder, &certified.name, WITNESS);
        let identity = Identity::load(&paths, &certified.name, WITNESS, system_clock());
        let identity = identity.map_err(WitnessError::Identity)?;
        let site = identity.name().site();
        let names = certified.nodes.iter();
        let names: Result<Vec<_>, _> = names.map(|text| NodeName::at_site(text, site)).collect();
        let names = names.map_err(|error| WitnessError::Setup(error.to_string()))?;
        let pairs = pairs(certified);
        let (sender, keys) = channel();
        let setup = Setup {
            profile: Profile {
                pair: WITNESS.into(),
                node: certified.name.clone(),
                ..Profile::default()
            },
            identity: paths,
            partners: names.iter().map(served).collect(),
            listen: listen.to_vec(),
            key_lifetime: NEVER,
        };
        let host = Serving {
            nodes: certified.nodes.clone(),
            told: vec![None; certified.nodes.len()],
            sender,
            waker,
        };
        let running = start(setup, identity, Box::new(host)).map_err(WitnessError::System)?;
        Ok(Self {
            keys,
            pairs,
            _running: running,
        })
    }
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
    /// What was wrong with the sessions with each when that was told last.
    told: Vec<Option<String>>,
    sender: Sender<NewKeys>,
    waker: Waker,
}

impl Serving {
    fn give(&self, node: usize, keys: Option<Keyring<RingSuite>>) -> bool {
        let (reply, answer) = sync_channel(1);
        let new = NewKeys { node, keys, reply };
        if self.sender.send(new).is_err() {
            return false;
        }
        self.waker.wake();
        answer.recv_timeout(TAKEN).unwrap_or(false)
    }
}

impl Host for Serving {
    fn set_keys(&mut self, node: usize, ring: &Ring) -> bool {
        let secrets = ring.secrets.iter().map(|secret| Secret::new(**secret));
        let Ok(keys) = Keyring::new(secrets.collect()) else {
            return false;
        };
        self.give(node, Some(keys))
    }

    fn forget_keys(&mut self, node: usize) {
        self.give(node, None);
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
