//! The network on this machine: a network namespace for each node, forwarding by the kernel (`spec/wan.md`, U-30 and further).
//!
//! | module | owns |
//! |---|---|
//! | `needs` | what this machine may lack for it |
//! | `routes` | the routing table of a node |
//! | `ospf` | who decides where packets go: a routing daemon on each router, if not fixed routes |
//! | `link` | messages to the kernel of interfaces, addresses, routes and queues |
//! | `namespace` | namespaces, entered and made |
//! | `build` | the whole network from its topology |
//! | `delay` | packets held at the host that they are for, where the kernel has no netem |
//! | `held` | packets that found no room there |
//! | `place` | the name of a network: its lock and the file that tells of it |
//! | `keeper` | the process that holds a network |
//! | `up` | that process started, and its answer |
//! | `processes` | programs that run in a network |
//! | `queues` | what the ends of links do with what they are given to send |
//! | `outage` | links and nodes that carry nothing |
//! | `impairment` | links that carry less than they might |
//! | `play` | outages by script |
//! | `capture` | what passes nodes and links, in a file |
//! | `cables` | the cables of a second way |
//! | `backup` | a second way from some hosts to others, with delays of its own |
//! | `source` | from which address a host speaks |
//! | `down` | the end of a network |
//!
//! Nothing of a network is in the namespace of the machine itself, and nothing has a name: the kernel removes all of it when
//! the process that holds it ends. So there is nothing to be cleaned up after a crash but two files.

mod backup;
mod build;
mod cables;
mod capture;
mod delay;
mod down;
mod held;
mod impairment;
mod keeper;
mod link;
mod namespace;
mod needs;
mod ospf;
mod outage;
mod place;
mod play;
mod processes;
mod queues;
mod routes;
mod source;
mod up;

pub use backup::{Backup, Carrying, Line, Lines};
pub use build::Delays;
pub use cables::Cables;
pub use capture::{
    Captured, Ended, Interface, Limits, Point, addresses_at, capture, points_of, remedy,
};
pub use down::down;
pub use held::overflowed;
pub use impairment::{impair, impairments};
pub use keeper::keep;
pub use namespace::enter;
pub use needs::lacking;
pub use ospf::Routing;
pub use outage::{cut, heal, outages};
pub use place::{Place, PlaceError, Running};
pub use play::{Played, play};
pub use processes::{Process, processes};
pub use source::speak_from_link;
pub use up::{Tie, UpError, answer, end_with_starter, order, up, up_tied};
