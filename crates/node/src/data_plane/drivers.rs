//! What is below a data plane: the kernel's sockets in a controller, something else in a simulation.

use bumpless_net_linux::{Echo, Link, Pinger};

/// A family of drivers.
pub trait Drivers {
    /// Datagrams on one network.
    type Link: Link;
    /// Echo requests to one address.
    type Echo: Echo;
}

/// The kernel's sockets, or what is wrapped around them.
#[derive(Clone, Copy, Debug)]
pub enum Sockets {}

impl Drivers for Sockets {
    type Link = Box<dyn Link + Send>;
    type Echo = Pinger;
}
