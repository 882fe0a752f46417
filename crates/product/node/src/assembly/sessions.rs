//! The sessions that a node with certificates starts.

use std::sync::Arc;

use bumpless_config::{Config, Security};

use super::keys::Keys;
use super::shared::Shared;
use crate::change::RunningChanges;
use crate::key_service::{self, GroupKeys, KeyService};
use crate::log::LogRegistry;
use crate::management::{self, Sessions};
use crate::state_security::StateGuards;
use crate::wiring::Wiring;
use crate::{RunError, RunOptions, certificates, key_file};

/// The threads of sessions, which end with this: with partners and witnesses, and with key servers.
pub type RunningSessions = (bumpless_management::Running, Option<bumpless_keys::Running>);

/// Sessions with partners and witnesses, and with key servers, if there are certificates.
///
/// # Errors
/// Certificates that cannot be used, and what the system says.
pub fn start_sessions(
    (config, wiring): (&Config, &Wiring),
    keys: Keys,
    (shared, (sessions, key_service), guards): (&Shared, (&Sessions, &KeyService), &StateGuards),
    (options, log): (&RunOptions, LogRegistry),
    changes: &RunningChanges,
) -> Result<Option<RunningSessions>, RunError> {
    let (Keys::Sessions(identity), Security::Certificates(certificates)) = (keys, &config.security)
    else {
        return Ok(None);
    };
    let folder = key_file::folder_of(options.config_file.as_deref());
    let ways = |rings| (Arc::clone(&shared.orders), shared.waker.clone(), rings);
    let given = config.security.has_key_servers();
    let group = GroupKeys::new(wiring.partners.len(), ways(guards.group_rings()));
    let group = given.then_some(group);
    let of_servers = match &group {
        None => None,
        Some(group) => {
            let again = certificates::identity(certificates, (config, &wiring.names.node), folder);
            let with = (certificates, again.map_err(RunError::Identity)?, folder);
            let told = (group.clone(), key_service);
            let started = key_service::start((config, wiring), with, told, log.clone());
            Some(started.map_err(RunError::system("start sessions with key servers"))?)
        }
    };
    let with = (certificates, *identity, folder);
    let orders = (ways(guards.rings()), group);
    let told = (sessions, log);
    let started = management::start((config, wiring), with, orders, told, changes.entrance());
    let started = started.map_err(RunError::system("start sessions with partners"))?;
    Ok(Some((started, of_servers)))
}
