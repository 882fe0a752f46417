//! Starting: the certificate, the state, sockets, and what runs then.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel, sync_channel};

use bumpless_keys::KEYS;
use bumpless_node::control::{ControlServer, Handler, refusal};
use bumpless_node::{InstanceLock, key_file};
use bumpless_pki::{Identity, IdentityPaths, system_clock};
use bumpless_sessions::listen;
use serde_json::Value;

use crate::config::Config;
use crate::error::RunError;
use crate::event::Events;
use crate::request::{Order, Request, socket_path};
use crate::service::Service;
use crate::store::Store;

/// Who asks at the control socket is answered within a turn.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// How a server is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print events as JSON.
    pub json: bool,
    /// Set to end.
    pub stop: Arc<AtomicBool>,
}

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
    let _lock = InstanceLock::take(&lock_of(&path)).map_err(RunError::Lock)?;
    let socket = socket_path(config, folder);
    let _control_lock = InstanceLock::take(&lock_of(&socket)).map_err(RunError::Control)?;
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
    let _control = ControlServer::start(&socket, None, Asking(orders))
        .map_err(system("open the control socket"))?;
    server.serve(&ordered, &options.stop);
    Ok(())
}

/// The file of the lock beside the one at `path`.
pub fn lock_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.lock", path.display()))
}

/// Answers at the control socket.
struct Asking(Sender<Order>);

impl Handler for Asking {
    type Request = Request;
    type Reply = Value;

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
