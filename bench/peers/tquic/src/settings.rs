//! What is set otherwise than tquic has it. `bench/peers/README.md` gives the sources.

use peer_conversation::Arguments;
use peer_tquic::certificate::tls;
use tquic::{Config, MultipathAlgorithm};

const IDLE_MILLISECONDS: u64 = 60_000;
/// A connection identifier for each path, and some to spare.
const CONNECTION_IDS: u64 = 8;
const PROTOCOL: &[u8] = b"state";
/// The tuned form's round trip before one is measured, its acknowledgement delay, and the longest wait
/// before a probe.
const MILLISECOND: u64 = 1;
const MAX_PTO: u64 = 10;
/// UDP payload in an Ethernet frame with an IPv4 header.
const MTU: usize = 1472;
/// tquic's default windows: of a connection, and of a stream.
const CONNECTION_WINDOW: u64 = 15 * 1024 * 1024;
const STREAM_WINDOW: u64 = 6 * 1024 * 1024;

/// The configuration of one end.
pub fn config(arguments: &Arguments, server: bool) -> anyhow::Result<Config> {
    let mut config = Config::new()?;
    config.set_max_idle_timeout(IDLE_MILLISECONDS);
    config.set_initial_max_streams_bidi(arguments.channels as u64 + 200);
    if arguments.local.len() > 1 {
        config.enable_multipath(true);
        config.set_multipath_algorithm(MultipathAlgorithm::Redundant);
        config.set_active_connection_id_limit(CONNECTION_IDS);
    }
    if arguments.tuned {
        tune(&mut config, arguments);
    }
    config.set_tls_config(tls(PROTOCOL, server)?);
    Ok(config)
}

fn tune(config: &mut Config, arguments: &Arguments) {
    let size = arguments.max_size as u64;
    let stream = STREAM_WINDOW.max(size);
    let connection = CONNECTION_WINDOW.max(size.saturating_mul(arguments.channels as u64));
    config.set_initial_rtt(MILLISECOND);
    config.set_max_ack_delay(MILLISECOND);
    config.set_max_pto(MAX_PTO);
    config.enable_dplpmtud(false);
    config.set_send_udp_payload_size(MTU);
    config.set_max_connection_window(connection);
    config.set_initial_max_data(connection);
    config.set_max_stream_window(stream);
    config.set_initial_max_stream_data_bidi_remote(stream);
}

/// Says the same in words.
pub fn describe(arguments: &Arguments) -> String {
    let paths = match arguments.local.len() {
        0 | 1 => "one path",
        _ => "two paths with the redundant scheduler",
    };
    let tuned = if arguments.tuned {
        "; initial_rtt 1 ms, max_ack_delay 1 ms, max_pto 10 ms, \
         UDP payload 1472 without discovery, windows of the largest states"
    } else {
        ", else defaults"
    };
    format!("TLS 1.3, stream per transfer, {paths}, BBR with pacing{tuned}")
}
