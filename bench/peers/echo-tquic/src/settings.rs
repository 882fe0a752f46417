//! What is set otherwise than tquic has it.

use peer_tquic::certificate::tls;
use tquic::{Config, CongestionControlAlgorithm, MultipathAlgorithm};

/// An outage leaves the other path; a client that was killed is forgotten after this.
const IDLE_MILLISECONDS: u64 = 10_000;
/// A connection identifier for each path, and some to spare.
const CONNECTION_IDS: u64 = 8;
/// Packets under way from the beginning. tquic 1.6.0 sends a challenge again after 25 ms, and after each answer to an earlier one: ten
/// full packets, its window otherwise, are soon under way on a path that takes longer. A path whose window is full gives no answer
/// to challenges, and tquic then sends nothing on the others either.
const INITIAL_PACKETS: u64 = 64;
const PROTOCOL: &[u8] = b"echo";

/// The configuration of one end: two paths, and Cubic as in the paper's table I.
pub fn config(server: bool) -> anyhow::Result<Config> {
    let mut config = Config::new()?;
    config.set_max_idle_timeout(IDLE_MILLISECONDS);
    config.set_congestion_control_algorithm(CongestionControlAlgorithm::Cubic);
    config.set_initial_congestion_window(INITIAL_PACKETS);
    config.enable_multipath(true);
    config.set_multipath_algorithm(MultipathAlgorithm::Redundant);
    config.set_active_connection_id_limit(CONNECTION_IDS);
    config.set_tls_config(tls(PROTOCOL, server)?);
    Ok(config)
}
