//! What a node that is backup of another group sends for that one's states: their acknowledgements.

use bumpless_wire::{MAX_ACK_BLOCKS, WireVersion, ack_len};

use crate::input::{Background, Link, Packets, Scenario};

/// Acknowledgements that each lost packet of a state may cause: its gap, a packet that passes over it, its coming
/// again, a probe (T-15, T-23).
const PER_LOSS: u64 = 4;
/// Acknowledgements of a state without losses besides those for the in-flight limit: its last packet, its
/// completion, one that another channel's packet asks for.
const PER_STATE: u64 = 3;

/// Acknowledgements of a state of the channel at `at`, on all of its networks.
pub fn count(scenario: &Scenario, at: usize) -> u64 {
    let channel = &scenario.channels[at];
    let fifth = u64::from(scenario.packets.in_flight_max / 5).max(1);
    let full = scenario.packets.count(channel.size).div_ceil(fifth);
    // For each link that has shown something one, and each on all links (T-16).
    (full + PER_STATE + u64::from(channel.budget) * PER_LOSS) * channel.links.len() as u64
}

/// All acknowledgements on `link` of a state of the channel at `at`, as one message for each period.
pub fn of(scenario: &Scenario, link: &Link, at: usize) -> Background {
    let channel = &scenario.channels[at];
    let count = count(scenario, at);
    let blocks = (channel.budget as usize + 1).min(MAX_ACK_BLOCKS);
    let each = ack_len(version(&scenario.packets), blocks) as u64 + u64::from(link.frame_overhead);
    Background {
        bytes: u32::try_from(count * each).unwrap_or(u32::MAX),
        period: channel.period,
        acknowledges: Some(at),
    }
}

fn version(packets: &Packets) -> WireVersion {
    match packets.header == u32::from(WireVersion::V1.header_len()) {
        true => WireVersion::V1,
        false => WireVersion::V2,
    }
}

/// Reckons all acknowledgements in `scenario` anew, after its channels have changed.
pub fn renew(scenario: &mut Scenario) {
    for link in 0..scenario.links.len() {
        for message in 0..scenario.links[link].background.len() {
            if let Some(at) = scenario.links[link].background[message].acknowledges {
                let renewed = of(scenario, &scenario.links[link], at);
                scenario.links[link].background[message] = renewed;
            }
        }
    }
}

/// Has the network at `link` carry the acknowledgements of the channel at `at`, if others do.
pub fn also_on(scenario: &mut Scenario, link: usize, at: usize) {
    let of_channel = |message: &Background| message.acknowledges == Some(at);
    let is_acknowledged = scenario
        .links
        .iter()
        .any(|l| l.background.iter().any(of_channel));
    if is_acknowledged && !scenario.links[link].background.iter().any(of_channel) {
        let message = of(scenario, &scenario.links[link], at);
        scenario.links[link].background.push(message);
    }
}
