//! What drives tquic: sockets with an address each, one thread, and the peers' certificate. The loop is that of tquic's own tools.

pub mod certificate;
pub mod network;
