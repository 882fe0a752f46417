//! What a start finds on this host, beside the file.

use std::path::{Path, PathBuf};

use bumpless_capture::{group_holder, missing, queue_holder, table_holder};
use bumpless_node::{InstanceLock, key_file};

use super::{RunError, TABLE};
use crate::config::Config;
use crate::groups::GroupKeys;
use crate::host::find_attachments;
use crate::members;
use crate::networks::Attachment;
use crate::request::socket_path;
use crate::trust::{self, Shown, Trust};

/// What a start would find on this host, beside the file.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its networks.
    pub networks: Vec<Attachment>,
    /// Its certificate, if it has one.
    pub certificate: Option<Shown>,
}

/// What a start works with.
pub struct Surveyed {
    pub trust: Trust,
    pub groups: Vec<GroupKeys>,
    pub networks: Vec<Attachment>,
    /// The control socket's path.
    pub socket: PathBuf,
}

/// What a start would find on this host, beside the file: rights, networks, keys or certificate, who captures already.
///
/// # Errors
/// Everything that keeps the daemon from starting here, and groups that no network carries. A daemon that runs with the same control
/// socket is none of it: it may be told to read the file again.
pub fn check_host(config: &Config, file: &Path) -> Result<Found, Vec<RunError>> {
    let surveyed = survey(config, file);
    let networks = match &surveyed {
        Ok(found) => Ok(found.networks.clone()),
        Err(_) => find_attachments(config, &file.display().to_string()),
    };
    let problems = networks.map(|it| members::problems(config, &it, file));
    let problems = problems.unwrap_or_default();
    let uncarried = (!problems.is_empty()).then_some(RunError::Networks(problems));
    match (surveyed, uncarried) {
        (Ok(found), None) => Ok(Found {
            networks: found.networks,
            certificate: found.trust.shown(),
        }),
        (surveyed, uncarried) => {
            let errors = surveyed.err().into_iter().flatten();
            Err(errors.chain(uncarried).collect())
        }
    }
}

/// What a start finds.
///
/// # Errors
/// Everything that keeps the daemon from starting here.
pub fn survey(config: &Config, file: &Path) -> Result<Surveyed, Vec<RunError>> {
    let socket = socket_path(config, key_file::folder_of(Some(file)));
    let missing = missing();
    let mut errors = match missing.is_empty() {
        true => taken(config, &socket),
        false => vec![RunError::Rights(missing)],
    };
    let groups = trust::groups(config, file).map_err(RunError::Trust);
    let trust = trust::load(config, file).map_err(RunError::Trust);
    let networks = find_attachments(config, &file.display().to_string());
    match (groups, trust, networks.map_err(RunError::Networks)) {
        (Ok(groups), Ok(trust), Ok(networks)) if errors.is_empty() => Ok(Surveyed {
            trust,
            groups,
            networks,
            socket,
        }),
        (groups, trust, networks) => {
            let others = [groups.err(), trust.err(), networks.err()];
            errors.extend(others.into_iter().flatten());
            Err(errors)
        }
    }
}

/// The file beside the control socket with this extension.
pub fn beside_socket(socket: &Path, extension: &str) -> PathBuf {
    PathBuf::from(format!("{}.{extension}", socket.display()))
}

/// What only one on a host can have, and another process has; who runs with the same control socket is left out.
fn taken(config: &Config, socket: &Path) -> Vec<RunError> {
    let same = InstanceLock::noted(&beside_socket(socket, "lock"));
    // Who may not look whose it is takes a process that lives for the one that the lock names.
    let lives = same.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
    let is_other = |pid: Option<u32>| match pid {
        Some(_) => pid != same,
        None => !lives,
    };
    let number = config.host.queue;
    let running = table_holder(TABLE).filter(|it| is_other(it.pid()));
    if let Some(holder) = running {
        return vec![RunError::Running(holder)];
    }
    let queue = queue_holder(number).map(|holder| (format!("NFQUEUE {number}"), holder));
    let group = group_holder(number).map(|holder| (format!("NFLOG group {number}"), holder));
    let both = queue.into_iter().chain(group);
    let mut others = both.filter(|(_, holder)| is_other(holder.pid()));
    let other = others.next();
    let error = other.map(|(what, holder)| RunError::Taken { what, holder });
    error.into_iter().collect()
}
