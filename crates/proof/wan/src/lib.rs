//! The wide-area network of a power grid on one machine (fifth paper, III-A), by `spec/wan.md`.
//!
//! | module | owns |
//! |---|---|
//! | `shape` | the numbers that a network is generated from, and what they may be |
//! | `impairment` | what keeps a link from carrying everything |
//! | `topology` | nodes and links, and what every network must be; the file that tells of one |
//! | `generate` | from a shape to a topology: ring, loops, chains |
//! | `route` | ways with the fewest hops, and what a packet takes on one |
//! | `address` | an address for each end of each link, from a pool |
//! | `ends` | links as people name them |
//! | `script` | outages and impairments by script: when which links carry nothing, or less |
//! | `picture` | a page that shows every node and finds it |
//! | `emulation` | the network on this machine: namespaces, cables, routes, delays, outages |
//! | `containerlab` | the same network for an engine of several machines |
#![deny(unsafe_code)]

pub mod address;
pub mod containerlab;
pub mod emulation;
mod ends;
mod generate;
mod impairment;
pub mod picture;
pub mod route;
mod script;
mod shape;
mod topology;

pub use ends::ends_of;
pub use generate::generate;
pub use impairment::{Impairment, LOSSES, RATE_MAX, millionths};
pub use script::{Script, Step};
pub use shape::{MEASURED_ROUTER_US, Shape, ShapeFault};
pub use topology::{Kind, Layer, Link, Node, NodeId, Topology, TopologyFault};
