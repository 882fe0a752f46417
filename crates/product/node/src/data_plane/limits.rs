//! What this node and its partners can take: of two ends' limits the lower counts (`spec/management.md`, M-12).

use bumpless_base::{Instant, LinkId, MAX_LINKS, PeerId};
use bumpless_config::Config;

use super::DataPlane;
use super::drivers::Drivers;
use crate::wiring::Wiring;

/// What a node can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packets of states that are on their way to it and not acknowledged.
    pub in_flight_max: u32,
    /// Bit/s on each network; zero: it states none.
    pub bandwidth: [u64; MAX_LINKS],
}

impl Limits {
    /// What `config` says of every node.
    pub fn of(config: &Config) -> Self {
        let mut bandwidth = [0; MAX_LINKS];
        let networks = config.networks.iter();
        bandwidth
            .iter_mut()
            .zip(networks)
            .for_each(|(own, network)| *own = network.bandwidth);
        Self {
            in_flight_max: config.transfer.in_flight_max,
            bandwidth,
        }
    }
}

/// The lower of two bandwidths, of which zero states none.
pub const fn lower(one: u64, other: u64) -> u64 {
    match (one, other) {
        (0, stated) | (stated, 0) => stated,
        (one, other) if one < other => one,
        (_, other) => other,
    }
}

/// This node's limits, and those that partners have stated.
#[derive(Clone, Debug)]
pub(super) struct AllLimits {
    own: Limits,
    partners: Box<[Option<Limits>]>,
}

impl AllLimits {
    pub fn new(config: &Config, wiring: &Wiring) -> Self {
        Self {
            own: Limits::of(config),
            partners: vec![None; wiring.partners.len()].into_boxed_slice(),
        }
    }

    /// At what bandwidth states leave on a network: it has one pace for all that are there.
    fn bandwidth(&self, link: usize) -> u64 {
        let of = |limits: &Limits| limits.bandwidth.get(link).copied().unwrap_or_default();
        let partners = self.partners.iter().flatten();
        partners.fold(of(&self.own), |all, partner| lower(all, of(partner)))
    }
}

impl<D: Drivers> DataPlane<D> {
    /// `peer` has stated what it can take. Until it does, this node's own limits count.
    pub(super) fn take_limits(&mut self, peer: PeerId, limits: Limits, now: Instant) {
        let Some(stated) = self.limits.partners.get_mut(usize::from(peer.0)) else {
            return;
        };
        *stated = Some(limits);
        let in_flight_max = limits.in_flight_max.min(self.limits.own.in_flight_max);
        self.cores.sender.set_in_flight_max(peer, in_flight_max);
        self.cores.receiver.set_in_flight_max(peer, in_flight_max);
        for (at, port) in self.ports.iter_mut().enumerate() {
            let Some(port) = port else {
                continue;
            };
            let bandwidth = self.limits.bandwidth(at);
            port.set_bandwidth(bandwidth, now);
            let link = LinkId(at as u8);
            self.cores.sender.set_link_bandwidth(link, bandwidth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_of_two_bandwidths_counts_and_one_that_is_not_stated_does_not() {
        for (one, other, expected) in [(1, 2, 1), (2, 1, 1), (0, 7, 7), (7, 0, 7), (0, 0, 0)] {
            assert_eq!(lower(one, other), expected);
        }
    }

    #[test]
    fn a_network_has_the_pace_of_the_slowest_of_all_that_are_there() {
        let limits = |first: u64, second: u64| {
            let mut limits = Limits {
                in_flight_max: 1,
                bandwidth: [0; MAX_LINKS],
            };
            limits.bandwidth[..2].copy_from_slice(&[first, second]);
            limits
        };
        let partners = vec![Some(limits(700, 0)), None, Some(limits(800, 20))];
        let all = AllLimits {
            own: limits(900, 30),
            partners: partners.into_boxed_slice(),
        };
        assert_eq!(
            [all.bandwidth(0), all.bandwidth(1), all.bandwidth(9)],
            [700, 20, 0]
        );
    }
}
