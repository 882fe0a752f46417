//! Two hosts joined by two networks, A and B, with a filter where each network ends.

use std::net::Ipv4Addr;

use super::filter::{Filter, Place};
use super::namespace::Namespace;
use crate::peer::Side;

/// 1 Gbit/s.
const BUCKET: &str = "tbf rate 1gbit burst 32kb limit 256kb";
/// A second bucket that is there for its smallness alone: it makes the queue cut up what the stack hands
/// over for segmentation offload, so that every packet travels, and is lost, on its own. Its rate is far
/// above what the machine can: at a rate near that, each packet would wait for a timer of its own.
const BY_PACKET: &str = "peakrate 1tbit mtu 2000";

/// Number of networks.
pub const NETWORKS: usize = 2;

/// What the networks carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// 1 Gbit/s by a token bucket at each sending end, with segmentation offload as the system has it.
    Gigabit,
    /// The same, but packets travel one by one, so that single ones can be lost.
    GigabitByPacket,
    /// What the machine can, with segmentation offload as the system has it.
    Unshaped,
}

impl Shape {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gigabit | Self::GigabitByPacket => "1gbit",
            Self::Unshaped => "unshaped",
        }
    }

    /// What a sender should pace at, Mbit/s; 0 = not.
    ///
    /// Pacing counts what a frame takes on Ethernet, 24 bytes of preamble, check sequence and gap among it,
    /// which the bucket does not: full frames of 1514 bytes pass it as fast as those of 1538 pass this.
    pub const fn bandwidth_mbit(self) -> u32 {
        match self {
            Self::Gigabit | Self::GigabitByPacket => 1_000 * 1538 / 1514,
            Self::Unshaped => 0,
        }
    }
}

/// Two hosts and what lies between them; gone when dropped.
#[derive(Debug)]
pub struct Lab {
    sender: Namespace,
    receiver: Namespace,
    filters: Vec<Filter>,
    /// Why there is no multipath TCP, if so.
    pub without_mptcp: Option<String>,
}

/// The address of a host (1 sender, 2 receiver) on a network (from 1 on).
pub const fn address(network: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, network, host)
}

impl Lab {
    /// Two hosts, networks of `shape` between them.
    ///
    /// # Errors
    /// The process is not root, or the kernel or iproute2 lacks what is needed.
    pub fn new(shape: Shape) -> Result<Self, String> {
        let host = || Namespace::new().map_err(|error| format!("{error}, or use --quick"));
        let (sender, receiver) = (host()?, host()?);
        let mut filters = Vec::new();
        for network in 1..=NETWORKS as u8 {
            connect(&sender, &receiver, network, shape)?;
            let ends = [
                (&receiver, Place::Forward, 2),
                (&sender, Place::Backward, 1),
            ];
            filters.push(Filter::new(
                &ends.map(|(host, place, end)| (host, place, interface(network, end))),
            )?);
        }
        for host in [&sender, &receiver] {
            // Losses of one measurement must not slow the next one's connections.
            host.tool("sysctl", "-q -w net.ipv4.tcp_no_metrics_save=1")?;
        }
        let without_mptcp = multipath(&sender, &receiver).err();
        Ok(Self {
            sender,
            receiver,
            filters,
            without_mptcp,
        })
    }

    /// One of the hosts.
    pub fn host(&self, side: Side) -> &Namespace {
        match side {
            Side::Send => &self.sender,
            Side::Receive => &self.receiver,
        }
    }

    /// What is lost on each network.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }
}

fn interface(network: u8, end: u8) -> String {
    format!("n{network}e{end}")
}

/// Lays a cable: a veth pair with an address on each end.
fn connect(
    sender: &Namespace,
    receiver: &Namespace,
    network: u8,
    shape: Shape,
) -> Result<(), String> {
    let (here, there) = (interface(network, 1), interface(network, 2));
    let far = receiver.path();
    sender.tool(
        "ip",
        &format!("link add {here} type veth peer name {there} netns {far}"),
    )?;
    for (host, name, end) in [(sender, &here, 1), (receiver, &there, 2)] {
        let address = address(network, end);
        host.tool("ip", &format!("address add {address}/24 dev {name}"))?;
        let bucket = match shape {
            Shape::Gigabit => Some(""),
            Shape::GigabitByPacket => Some(BY_PACKET),
            Shape::Unshaped => None,
        };
        if let Some(cutting) = bucket {
            host.tool(
                "tc",
                &format!("qdisc add dev {name} root {BUCKET} {cutting}"),
            )?;
        }
        host.tool("ip", &format!("link set dev {name} up"))?;
    }
    Ok(())
}

/// Lets multipath TCP use the second network.
fn multipath(sender: &Namespace, receiver: &Namespace) -> Result<(), String> {
    for host in [sender, receiver] {
        host.tool("ip", "mptcp limits set subflow 4 add_addr_accepted 4")?;
    }
    let (here, there) = (address(2, 1), address(2, 2));
    sender.tool(
        "ip",
        &format!("mptcp endpoint add {here} dev {} subflow", interface(2, 1)),
    )?;
    receiver.tool(
        "ip",
        &format!("mptcp endpoint add {there} dev {} signal", interface(2, 2)),
    )
}
