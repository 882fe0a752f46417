//! Programs that are measured and need nothing but this workspace: our own transfer, and the kernel's
//! TCP and MPTCP. Each runs as two processes, a sender and a receiver (`bumpless bench peer`).

pub(crate) mod node;
pub mod options;
pub mod payload;
pub mod states;
pub mod stream;
pub mod tcp;
pub mod tls;
pub mod transfer;

use std::io;

use bumpless_base::Duration;

pub use options::{Kind, PeerOptions, Side};

/// How long a transfer may take before it counts as failed.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// One channel's way to the receiver; each is used by one thread.
pub trait ChannelSender: Send {
    /// Called once on the thread that will use it.
    fn begin(&mut self) {}

    /// Sends `state` and waits until the receiving application has it and says so; returns the time
    /// from just before the call that sends to just after the acknowledgement was read.
    ///
    /// # Errors
    /// It did not arrive within `timeout`, or cannot.
    fn transfer(&mut self, state: &[u8], timeout: Duration) -> Result<Duration, String>;
}

/// Runs one side of a peer until its input ends.
///
/// # Errors
/// What keeps it from listening or connecting, with a remedy; or nobody reads what it says.
pub fn run(side: Side, options: &PeerOptions) -> Result<(), String> {
    match (options.kind, side) {
        (kind, Side::Send) if kind.is_ours() => transfer::send(options),
        (kind, Side::Receive) if kind.is_ours() => transfer::receive(options),
        (Kind::TcpTls, Side::Send) => tls::send(options),
        (Kind::TcpTls, Side::Receive) => tls::receive(options),
        (_, Side::Send) => tcp::send(options),
        (_, Side::Receive) => tcp::receive(options),
    }
}

/// Waits for the end of standard input.
pub(crate) fn wait_for_end() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

/// The kernel that does the work.
pub(crate) fn kernel_version() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(
        |_| "Linux".into(),
        |release| format!("Linux {}", release.trim()),
    )
}
