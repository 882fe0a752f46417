//! The programs at both ends of a measurement: what they say, and what they hear. They know nothing of iPRP.
//!
//! | module | owns |
//! |---|---|
//! | `certificate` | what TLS takes |
//! | `client` | messages one after the other over a connection, and when their answers came |
//! | `connection` | one connection of a client |
//! | `server` | what sends back what it hears |
//! | `foreign` | programs that are built apart, in place of client and server |
//! | `state` | states and their acknowledgements, in the place of messages and answers |

mod certificate;
mod client;
mod connection;
mod foreign;
mod server;
mod state;

pub use certificate::Certificate;
pub use client::{Client, Heard, Message};
pub use foreign::{Foreign, Server};
pub use server::{Ports, serve};
pub use state::States;

/// Bytes of a message (fifth paper, V-A).
pub const MESSAGE: usize = 1000;
