//! Linux drivers: batched UDP links, pacing, wake-up, real-time threads, multicast
//! memberships, ICMP, hops, and the size of a terminal.
//!
//! Everything that touches the kernel for the data plane is here, so that the cores stay free of
//! I/O, clocks and randomness. Start with [`Link`], the boundary at which a network begins, and
//! [`UdpLink`], the driver behind it. No call in the data path blocks (except [`Poller::wait`] and
//! [`Clock::sleep_until`], whose job it is), and none allocates after construction.

pub mod capabilities;
pub mod clock;
pub mod errno;
pub mod hop;
pub mod jitter;
pub mod link;
pub mod multicast;
pub mod open_files;
pub mod pace;
pub mod ping;
pub mod poll;
pub mod random;
pub mod realtime;
mod screen;
pub mod secrets;
pub mod sockets;
mod sys;
pub mod terminal;
pub mod udp;

pub use clock::Clock;
pub use errno::Errno;
pub use hop::{HopAnswer, HopFate, HopProber};
pub use jitter::{JitterMeter, Stall};
pub use link::{Link, ReceiveOutcome, Segment, SendFailure, SendOutcome};
pub use pace::Pacer;
pub use ping::{Echo, EchoReply, PassedOver, PingError, Pinger};
pub use poll::{Poller, Ready, Waker};
pub use screen::Screen;
pub use udp::{
    OpenCause, OpenError, Rejected, Run, SendBatch, Taken, UdpConfig, UdpLink, UdpReport,
    can_coalesce, can_segment, receive_run,
};
