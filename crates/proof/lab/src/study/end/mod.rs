//! The programs at both ends of a measurement: what they say, and what they hear. They know nothing of iPRP.

mod certificate;
mod client;
mod connection;
mod foreign;
mod server;

pub use certificate::Certificate;
pub use client::{Client, Heard, Message};
pub use foreign::{Foreign, Server};
pub use server::{Ports, serve};

/// Bytes of a message (fifth paper, V-A).
pub const MESSAGE: usize = 1000;
