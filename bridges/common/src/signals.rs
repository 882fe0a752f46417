//! Signals that tell a bridge to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGINT, SIGTERM, SIGQUIT or SIGHUP; returns its name.
///
/// # Errors
/// What the system says of listening to them.
pub async fn told_to_end() -> io::Result<&'static str> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
        _ = quit.recv() => "SIGQUIT",
        _ = hangup.recv() => "SIGHUP",
    })
}
