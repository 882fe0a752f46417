//! What capturing takes of rights, and how they are granted.

use bumpless_net_linux::capabilities::{Capability, Effective, Missing};

const NEEDED: [(Capability, &str); 2] = [
    (
        Capability::NetAdmin,
        "capturing packets and the firewall rules for it",
    ),
    (
        Capability::NetRaw,
        "giving packets back to the host, and binding sockets to networks",
    ),
];

/// How the capabilities are granted to the program at `path`.
pub fn remedy(path: &str) -> String {
    format!(
        "run it as root, or once `sudo setcap cap_net_admin,cap_net_raw+ep {path}`, or have AmbientCapabilities=CAP_NET_ADMIN \
         CAP_NET_RAW in its service"
    )
}

/// The capabilities that capturing needs and this process does not have.
pub fn missing() -> Vec<Missing> {
    Effective::of_this_thread().lacking(&NEEDED)
}
