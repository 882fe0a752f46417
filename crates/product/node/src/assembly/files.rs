//! How many files a node opens.

use bumpless_config::{Config, Security};

use crate::control::CALLERS_MAX;
use crate::field_identity;
use crate::reception::programs::SILENT_MAX;
use crate::wiring::Wiring;

/// Files that `wiring` takes, those included with which a process starts, and those that come and go: callers of the
/// control socket, the log opened again, a configuration that is read.
pub fn files_needed(config: &Config, wiring: &Wiring) -> u64 {
    /// The standard ones; lock, wake-up, wake latency, log, control socket.
    const ALWAYS: usize = 3 + 5;
    /// Poll descriptor, its copy and wake-up; connections come besides.
    const PER_FIELD: usize = 3;
    const FOR_A_WHILE: usize = 8;
    // Listeners, callers that have not shown who they are, two sessions with each partner and witness.
    let sessions = match &config.security {
        Security::Certificates(given) => {
            let servers = 2 * given.key_servers.len().min(1);
            let others = 2 * (wiring.partners.len() + config.references.len());
            config.networks.len() + 8 + others + servers
        }
        _ => 0,
    };
    let fields = wiring.applications.iter();
    let fields = fields.filter_map(|&at| config.applications[at].field.as_ref());
    let fields: usize = fields
        .map(|field| match field_identity::secure_count(field) {
            0 => PER_FIELD + field.count(),
            // Connections are made by a thread of its own.
            secure => 2 * PER_FIELD + field.count() + secure,
        })
        .sum();
    let networks = config.networks.len() + config.references.len();
    // Each network's record of how its interface was; each program's connection, and those that have not said what they want.
    let placed = config.networks.len() + 1;
    let programs = { config.registration.as_ref() }.map_or(0, |it| it.flows + 2 + SILENT_MAX);
    let needed =
        ALWAYS + networks + fields + CALLERS_MAX + FOR_A_WHILE + sessions + placed + programs;
    needed as u64
}
