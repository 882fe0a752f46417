//! What is set otherwise than tquic has it.

use peer_tquic::certificate::tls;
use tquic::{Config, CongestionControlAlgorithm, MultipathAlgorithm};

/// An outage leaves the other path; a client that was killed is forgotten after this.
const IDLE_MILLISECONDS: u64 = 10_000;
/// A connection identifier for each path, and some to spare.
const CONNECTION_IDS: u64 = 8;
const PROTOCOL: &[u8] = b"echo";

/// The configuration of one end: two paths, and Cubic as in the paper's table I.
pub fn config(server: bool) -> anyhow::Result<Config> {
    let mut config = Config::new()?;
    config.set_max_idle_timeout(IDLE_MILLISECONDS);
    config.set_congestion_control_algorithm(CongestionControlAlgorithm::Cubic);
    config.enable_multipath(true);
    config.set_multipath_algorithm(MultipathAlgorithm::Redundant);
    config.set_active_connection_id_limit(CONNECTION_IDS);
    config.set_tls_config(tls(PROTOCOL, server)?);
    Ok(config)
}
