//! From the configuration to what the cores and drivers of one node are built from.

use std::net::SocketAddr;

use bumpless_base::{Duration, LinkId, LinkSet, NodeId, PeerId, Table};
use bumpless_config::{Application, Config, ReceptionGuard, ReferenceKind};
use bumpless_transfer::{self as transfer, ChannelPlace};

use crate::log::Names;
use crate::membership::{ApplicationNumber, GroupPlace};

/// Assumed round trip until one is measured: a switched network's, with room for a busy partner.
const INITIAL_ROUND_TRIP: Duration = Duration::from_millis(1);

/// Settings of one network on this node, for whoever opens the link.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// The network's name.
    pub name: String,
    /// Address to bind.
    pub local: SocketAddr,
    /// Longest message, bytes.
    pub message_max: u16,
    /// Bit/s to pace at; zero: not paced.
    pub bandwidth: u64,
    /// Bytes on the wire for each message beyond its own.
    pub frame_overhead: u16,
    /// Differentiated-services code point.
    pub dscp: u8,
    /// Socket priority.
    pub priority: u8,
    /// Datagrams that the receive buffer must hold: the in-flight limit of every partner.
    pub in_flight_max: u32,
    /// Whether a flood of strangers is kept from the process, as far as its sockets can.
    pub screens: bool,
    /// For how long the kernel may ask the interface itself when there is nothing to receive.
    pub busy_poll: Duration,
}

impl LinkSettings {
    /// Bytes of twice a full window of every partner, which the kernel's buffer must hold while the thread is away; what 32 bits
    /// cannot hold is as much as they can.
    pub(crate) fn windows(&self) -> usize {
        let each = usize::from(self.message_max) + 1024;
        (self.in_flight_max as usize)
            .saturating_mul(each)
            .saturating_mul(2)
    }
}

/// One node's view of the configuration.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// This node.
    pub node: NodeId,
    /// Names for logs and status.
    pub names: Names,
    /// The partners; the position is the [`PeerId`].
    pub partners: Vec<NodeId>,
    /// Positions of the groups of which this node is a candidate.
    pub groups: Table<GroupPlace, usize>,
    /// Positions of the applications that run here, by their channels' places in both transfer cores.
    pub applications: Table<ChannelPlace, usize>,
}

/// Applications that can come while a node of a pair runs, before as many have gone.
pub const ROOM: usize = 64;

impl Wiring {
    /// What `node` has to do with `config`.
    pub fn new(config: &Config, node: NodeId) -> Self {
        let partners = config.partners(node);
        let groups: Table<_, _> = (0..config.groups.len())
            .filter(|&group| config.groups[group].candidates.contains(&node))
            .collect();
        let applications = (0..config.applications.len())
            .filter(|&app| groups.contains(&config.applications[app].group))
            .collect();
        let name = |node: NodeId| config.nodes[usize::from(node.0)].name.clone();
        let names = Names {
            node: name(node),
            groups: config
                .groups
                .iter()
                .map(|group| group.name.clone())
                .collect(),
            applications: config
                .applications
                .iter()
                .map(|app| (app.name.clone(), app.channel.get()))
                .collect(),
            links: config
                .networks
                .iter()
                .map(|network| network.name.clone())
                .collect(),
            partners: partners.iter().map(|&partner| name(partner)).collect(),
        };
        Self {
            node,
            names,
            partners,
            groups,
            applications,
        }
    }

    /// The number of the application at `place`.
    pub fn number(&self, place: ChannelPlace) -> ApplicationNumber {
        ApplicationNumber(self.applications[place] as u16)
    }

    /// The place of the configuration's group `group` among those of this node.
    pub fn group(&self, group: usize) -> Option<GroupPlace> {
        let mut places = self.groups.indices();
        places.find(|&place| self.groups[place] == group)
    }

    /// The partner with which this node shares `group`.
    pub fn partner_in(&self, config: &Config, group: usize) -> Option<PeerId> {
        let other = config.groups[group]
            .candidates
            .iter()
            .find(|&&candidate| candidate != self.node)?;
        let position = self.partners.iter().position(|partner| partner == other)?;
        u8::try_from(position).ok().map(PeerId)
    }

    /// What the driver of each network needs; `None` where this node has no address.
    pub fn links(&self, config: &Config) -> Vec<Option<LinkSettings>> {
        let addresses = &config.nodes[usize::from(self.node.0)].addresses;
        let networks = config.networks.iter().zip(addresses);
        networks
            .map(|(network, address)| {
                address.map(|local| LinkSettings {
                    name: network.name.clone(),
                    local,
                    message_max: network.message_max(),
                    bandwidth: network.bandwidth,
                    frame_overhead: network.message_overhead(),
                    dscp: network.dscp,
                    priority: network.priority,
                    in_flight_max: config.transfer.in_flight_max
                        * u32::try_from(self.partners.len()).unwrap_or(u32::MAX),
                    screens: config.reception.guard != ReceptionGuard::Off,
                    busy_poll: config.reception.busy_poll,
                })
            })
            .collect()
    }

    /// The address of each partner on `link`.
    pub fn partner_addresses(&self, config: &Config, link: LinkId) -> Vec<Option<SocketAddr>> {
        let address =
            |node: &NodeId| config.nodes[usize::from(node.0)].addresses[usize::from(link.0)];
        self.partners.iter().map(address).collect()
    }

    /// What the transfer core knows of each link.
    pub fn link_parameters(&self, config: &Config) -> Vec<transfer::LinkParameters> {
        config
            .networks
            .iter()
            .map(|network| transfer::LinkParameters {
                bandwidth: network.bandwidth,
                frame_overhead: network.message_overhead(),
                initial_round_trip: INITIAL_ROUND_TRIP,
            })
            .collect()
    }

    /// The partners as the sender knows them.
    pub fn sender_peers(&self, config: &Config) -> Vec<transfer::SenderPeer> {
        let peer = transfer::SenderPeer {
            version: config.transfer.version,
            payload_size: config.transfer.payload_size,
            in_flight_max: config.transfer.in_flight_max,
        };
        vec![peer; self.partners.len()]
    }

    /// The partners as the receiver knows them.
    pub fn receiver_peers(&self, config: &Config) -> Vec<transfer::ReceiverPeer> {
        let peer = transfer::ReceiverPeer {
            version: config.transfer.version,
            payload_size: config.transfer.payload_size,
            in_flight_max: config.transfer.in_flight_max,
        };
        vec![peer; self.partners.len()]
    }

    /// The channels on which this node sends while it is primary.
    pub fn sender_channels(&self, config: &Config) -> Vec<transfer::SenderChannel> {
        self.channels(config, |app, peer| self.sender_channel(config, app, peer))
    }

    fn sender_channel(
        &self,
        config: &Config,
        app: &Application,
        peer: PeerId,
    ) -> transfer::SenderChannel {
        transfer::SenderChannel {
            id: app.channel,
            peer,
            links: usable(config, self.node, app),
            distribution: app.distribution,
            unsent: app.unsent,
            max_size: app.state_max,
            deadline: app.deadline,
            expiry: app.expiry,
        }
    }

    /// The channels on which this node receives while it is backup.
    pub fn receiver_channels(&self, config: &Config) -> Vec<transfer::ReceiverChannel> {
        self.channels(config, |app, peer| self.receiver_channel(config, app, peer))
    }

    fn receiver_channel(
        &self,
        config: &Config,
        app: &Application,
        peer: PeerId,
    ) -> transfer::ReceiverChannel {
        transfer::ReceiverChannel {
            id: app.channel,
            peer,
            links: usable(config, self.node, app),
            max_size: app.state_max,
            expect_within: app.period + app.deadline,
        }
    }

    /// The channel of `app` in both directions; `None` if it has no partner here.
    pub fn channel(
        &self,
        config: &Config,
        app: &Application,
    ) -> Option<(transfer::SenderChannel, transfer::ReceiverChannel)> {
        let peer = self.partner_in(config, app.group)?;
        let sender = self.sender_channel(config, app, peer);
        Some((sender, self.receiver_channel(config, app, peer)))
    }

    fn channels<C>(&self, config: &Config, build: impl Fn(&Application, PeerId) -> C) -> Vec<C> {
        self.applications
            .iter()
            .filter_map(|&app| {
                let app = &config.applications[app];
                self.partner_in(config, app.group)
                    .map(|peer| build(app, peer))
            })
            .collect()
    }
}

/// The witnesses' addresses on `link`, by position in the configuration.
pub fn witness_addresses(config: &Config, link: LinkId) -> Vec<Option<SocketAddr>> {
    config
        .references
        .iter()
        .map(|reference| match reference.kind {
            ReferenceKind::Witness(address) if reference.network == link => Some(address),
            _ => None,
        })
        .collect()
}

fn usable(config: &Config, node: NodeId, app: &Application) -> LinkSet {
    let addresses = &config.nodes[usize::from(node.0)].addresses;
    app.networks
        .iter()
        .filter(|link| addresses[usize::from(link.0)].is_some())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_beyond_32_bits_are_the_most_that_a_buffer_can_be() {
        let settings = LinkSettings {
            name: "A".into(),
            local: "127.0.0.1:4700".parse().unwrap(),
            message_max: 65_507,
            bandwidth: 0,
            frame_overhead: 0,
            dscp: 0,
            priority: 0,
            in_flight_max: 32_768,
            screens: false,
            busy_poll: Duration::ZERO,
        };
        let bytes = 2 * 32_768 * (65_507 + 1024_u64);
        assert_eq!(settings.windows() as u64, bytes.min(usize::MAX as u64));
    }
}
