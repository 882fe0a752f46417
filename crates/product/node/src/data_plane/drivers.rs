//! What is below a data plane: the kernel's sockets in a controller, something else in a simulation.

use bumpless_net_linux::{Echo, Link, Pinger};
use bumpless_secure::{RingSuite, Suite};

use super::link_port::LinkPort;

/// A family of drivers.
pub trait Drivers {
    /// Datagrams on one network.
    type Link: Link;
    /// Echo requests to one address.
    type Echo: Echo;
    /// What protects messages.
    type Suite: Suite;
}

/// The networks, in configuration order; `None` where the node has no address.
pub type Ports<D> = Vec<Option<LinkPort<<D as Drivers>::Link, <D as Drivers>::Suite>>>;

/// ICMP echo, by reference point; `None` for those that are not asked so.
pub type Pingers<D> = Vec<Option<<D as Drivers>::Echo>>;

/// The kernel's sockets, or what is wrapped around them.
#[derive(Clone, Copy, Debug)]
pub enum Sockets {}

impl Drivers for Sockets {
    type Link = Box<dyn Link + Send>;
    type Echo = Pinger;
    type Suite = RingSuite;
}
