//! Why a daemon does not run.

use std::fmt;
use std::io;

use bumpless_capture::{FirewallError, Holder, Missing, remedy};
use bumpless_config::Problem;
use bumpless_node::LockError;

use crate::host::SocketError;
use crate::trust::TrustError;

/// Why a daemon did not start, or ended unbidden. Nothing of it is left on the host.
#[derive(Debug)]
pub enum RunError {
    /// All that keeps it from starting here.
    Several(Vec<RunError>),
    /// Capabilities that are missing.
    Rights(Vec<Missing>),
    /// Rules that do not say what the host's networks are.
    Networks(Vec<Problem>),
    /// What protects messages between hosts.
    Trust(TrustError),
    /// One with the same control socket runs already.
    Lock(LockError),
    /// One with another control socket runs already.
    Running(Holder),
    /// What captured packets come by is another process's.
    Taken {
        /// Which queue or group.
        what: String,
        /// Who has it.
        holder: Holder,
    },
    /// What captured packets come by cannot be had.
    Queue(io::Error),
    /// The firewall's rules.
    Firewall(FirewallError),
    /// A socket of a network.
    Socket(SocketError),
    /// Something else of the system's.
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// A core refused its setup.
    Setup(String),
    /// The data plane has ended by a panic.
    Panicked,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Several(errors) => lines(f, errors),
            Self::Rights(all) => {
                let path = std::env::current_exe().unwrap_or_default();
                let named: Vec<_> = all.iter().map(ToString::to_string).collect();
                write!(f, "{}; {}", named.join(", "), remedy(&path.display().to_string()))
            }
            Self::Networks(problems) => lines(f, problems),
            Self::Trust(error) => error.fmt(f),
            Self::Lock(LockError::Running { path, pid }) => {
                write!(f, "a daemon of iPRP with this socket runs already on this host")?;
                if let Some(pid) = pid {
                    write!(f, " (process {pid})")?;
                }
                write!(
                    f,
                    "; stop it first, or have it read its file again by `bumpless iprp reload` (lock {})",
                    path.display()
                )
            }
            Self::Lock(error) => error.fmt(f),
            Self::Running(holder) => write!(
                f,
                "a daemon of iPRP with another socket runs already on this host: {holder} has its firewall table; stop that one first, two cannot \
                 capture on one host"
            ),
            Self::Taken { what, holder } => write!(
                f,
                "{holder} has {what} on this host, so packets cannot be captured by it: stop that one, or give another `queue` in [host]"
            ),
            Self::Queue(cause) => write!(
                f,
                "cannot capture packets: {cause}; if another program has it, give another `queue` in [host]"
            ),
            Self::Firewall(error) => error.fmt(f),
            Self::Socket(error) => error.fmt(f),
            Self::System { what, cause } => write!(f, "cannot {what}: {cause}"),
            Self::Setup(cause) => write!(f, "the file cannot be run: {cause}"),
            Self::Panicked => f.write_str(
                "the data plane ended by a panic, so the daemon has ended and packets leave as they are; start it again, and report this",
            ),
        }
    }
}

impl std::error::Error for RunError {}

fn lines(f: &mut fmt::Formatter<'_>, all: &[impl ToString]) -> fmt::Result {
    let all: Vec<_> = all.iter().map(ToString::to_string).collect();
    f.write_str(&all.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_already_is_no_node_and_is_named() {
        let holder = || Holder {
            process: Some((7, "suricata".into())),
        };
        let same = RunError::Lock(LockError::Running {
            path: "/run/i.sock.lock".into(),
            pid: Some(7),
        });
        let other = RunError::Running(holder());
        let queue = RunError::Taken {
            what: "NFQUEUE 4760".into(),
            holder: holder(),
        };
        let all = RunError::Several(vec![same, other, queue]).to_string();
        let lines: Vec<_> = all.lines().collect();
        assert_eq!(lines.len(), 3, "all at once: {all}");
        assert!(lines[0].contains("(process 7)") && lines[0].contains("iprp reload"));
        assert!(lines[1].contains("process 7 (suricata)"), "{all}");
        assert!(lines[2].starts_with("process 7 (suricata) has NFQUEUE 4760"));
        assert!(!all.contains("node"), "{all}");
        let refused = RunError::Queue(io::ErrorKind::PermissionDenied.into()).to_string();
        let (cause, remedy) = (refused.find("permission"), refused.find("`queue`"));
        assert!(cause.is_some() && cause < remedy, "cause first: {refused}");
    }
}
