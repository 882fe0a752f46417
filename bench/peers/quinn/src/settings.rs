//! What is set otherwise than quinn has it. `bench/peers/README.md` gives the sources.

use std::time::Duration;

use peer_conversation::Arguments;
use quinn::congestion::CubicConfig;
use quinn::{AckFrequencyConfig, IdleTimeout, TransportConfig, VarInt};

/// Bytes asked for each socket's buffers, as quinn's own program `perf` asks.
pub const SOCKET_BUFFER: usize = 2 * 1024 * 1024;

/// How often an idle connection is kept alive.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const IDLE_MILLISECONDS: u32 = 60_000;

/// The tuned form's wait for an acknowledgement that nothing forces.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// The round trip on which the tuned form counts before it has measured one.
const INITIAL_RTT: Duration = Duration::from_millis(1);
/// The tuned form's first congestion window: half of what the bench's queue of 256 kB holds.
const INITIAL_WINDOW: u64 = 128 * 1024;
/// UDP payload in an Ethernet frame with an IPv4 header.
const MTU: u16 = 1472;

/// The transport for both ends.
pub fn transport(arguments: &Arguments) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_MILLISECONDS))))
        .max_concurrent_bidi_streams(streams(arguments));
    if arguments.tuned {
        tune(&mut transport, arguments);
    }
    transport
}

fn tune(transport: &mut TransportConfig, arguments: &Arguments) {
    let size = arguments.max_size as u64;
    let all = size.saturating_mul(arguments.channels as u64);
    let mut congestion = CubicConfig::default();
    congestion.initial_window(INITIAL_WINDOW);
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements.max_ack_delay(Some(ACK_DELAY));
    transport
        .stream_receive_window(VarInt::from_u64(size).unwrap_or(VarInt::MAX))
        .send_window(all.max(10_000_000))
        .initial_rtt(INITIAL_RTT)
        .initial_mtu(MTU)
        .min_mtu(MTU)
        .ack_frequency_config(Some(acknowledgements))
        .congestion_controller_factory(std::sync::Arc::new(congestion));
}

/// A stream for each channel, and quinn's default of 100 beside them.
fn streams(arguments: &Arguments) -> VarInt {
    let channels = u32::try_from(arguments.channels).unwrap_or(u32::MAX / 2);
    VarInt::from_u32(channels.saturating_add(100))
}

/// Says the same in words.
pub fn describe(arguments: &Arguments) -> String {
    let tuned = if arguments.tuned {
        "; ACK frequency extension with max_ack_delay 1 ms, initial_rtt 1 ms, initial window 128 KiB, \
         initial and minimal MTU 1472, stream window of the largest state, send window of all states"
    } else {
        ", else defaults"
    };
    format!(
        "TLS 1.3, stream per transfer, single-threaded runtime, socket buffers 2 MiB, keep-alive 5 s{tuned}{}",
        arguments.one_network_note()
    )
}
