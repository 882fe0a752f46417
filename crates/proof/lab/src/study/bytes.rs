//! Bytes that pass a substation's links, as its kernel counts them.

use std::{fs, io};

use bumpless_base::Instant;
use bumpless_net_linux::Clock;

use super::host::Host;
use super::result::Passed;

/// What had passed until an instant, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    at: Instant,
    network: u64,
    backup: u64,
}

impl Counted {
    /// Until this moment at `host`.
    ///
    /// # Errors
    /// The host cannot be entered, or its kernel does not tell.
    pub fn at(host: &Host) -> io::Result<Self> {
        let table = host.at(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        let (network, backup) =
            counted(&table).ok_or_else(|| io::Error::other("the host has no backup"))?;
        Ok(Self {
            at: Clock.now(),
            network,
            backup,
        })
    }

    /// What has passed since `earlier`.
    pub fn since(self, earlier: Self) -> Passed {
        Passed {
            us: self.at.since(earlier.at).as_nanos() / 1000,
            network: self.network.saturating_sub(earlier.network),
            backup: self.backup.saturating_sub(earlier.backup),
        }
    }
}

/// Bytes over the network and over the backup, which is the last interface of a host.
fn counted(table: &str) -> Option<(u64, u64)> {
    let interface = |line: &str| -> Option<(u32, u64)> {
        let (name, counts) = line.trim().split_once(':')?;
        let number = name.strip_prefix("eth")?.parse().ok()?;
        // Bytes are the first of eight columns of what came, and of those of what left.
        let mut counts = counts.split_whitespace().step_by(8);
        let mut count = || -> Option<u64> { counts.next()?.parse().ok() };
        Some((number, count()? + count()?))
    };
    let mut all: Vec<_> = table.lines().filter_map(interface).collect();
    all.sort_unstable();
    let ((_, backup), network) = all.split_last()?;
    let network = network.iter().map(|(_, bytes)| bytes).sum();
    Some((network, *backup))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backup_is_the_last_interface_and_both_directions_count() {
        let head = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n";
        let line = |name: &str, came: u64, left: u64| {
            format!("{name:>6}: {came} 1 2 3 4 5 6 7 {left} 1 2 3 4 5 6 7\n")
        };
        let table = [
            head.to_owned(),
            line("lo", 1_000_000, 1_000_000),
            line("eth3", 10, 20),
            line("eth1", 100, 200),
            line("eth2", 1_000, 2_000),
        ];
        assert_eq!(counted(&table.concat()), Some((3_300, 30)));
        assert_eq!(counted(head), None);
    }
}
