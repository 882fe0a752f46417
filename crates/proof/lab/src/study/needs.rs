//! What a study takes beside its network that this machine may lack.

use std::fs;

/// What a daemon of iPRP takes, bytes. Measured, with a margin.
const DAEMON_BYTES: u64 = 36 << 20;
/// What both ends of a run take, and programs of others, bytes.
pub const RUN_BYTES: u64 = 12 << 20;
/// What the network and everything else take, bytes; the network looks after its own part itself.
const NODE_BYTES: u64 = 700 << 10;
const SPARE_BYTES: u64 = 128 << 20;

/// What there are many of.
#[derive(Debug)]
pub struct Each {
    /// What they are called.
    pub what: &'static str,
    /// The option that says how many there are.
    pub option: &'static str,
    /// What one takes beside a daemon, bytes.
    pub bytes: u64,
    /// Whether each has a daemon.
    pub protected: bool,
}

/// Why this machine cannot have so many of `each` over a network of so many nodes, if it cannot.
pub fn lacking(numbers: (usize, usize), each: &Each) -> Option<String> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    memory(numbers, each, &meminfo)
}

fn memory((nodes, count): (usize, usize), of: &Each, meminfo: &str) -> Option<String> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let daemon = if of.protected { DAEMON_BYTES } else { 0 };
    let (available, each) = (kib << 10, daemon + of.bytes);
    // A centre has a daemon, too.
    let all = nodes as u64 * NODE_BYTES + SPARE_BYTES + daemon;
    let needed = all + count as u64 * each;
    if needed <= available {
        return None;
    }
    let fit = available.saturating_sub(all) / each;
    let advice = match fit {
        0 => "not even one would fit; a smaller network (--backbone-pairs) takes less".to_owned(),
        fit => format!("{} {fit} would fit", of.option),
    };
    Some(format!(
        "{count} {} take some {} MiB of memory with the network, and {} MiB are available: {advice}",
        of.what,
        needed >> 20,
        available >> 20
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_said_with_what_would_fit() {
        let runs = |protected| Each {
            what: "runs side by side",
            option: "--side-by-side",
            bytes: RUN_BYTES,
            protected,
        };
        let told = |mib: u64, sites, protected| {
            let meminfo = format!("MemTotal: 1 kB\nMemAvailable: {} kB\n", mib << 10);
            memory((602, sites), &runs(protected), &meminfo)
        };
        assert_eq!(told(2000, 20, true), None);
        let some = told(1000, 20, true).unwrap();
        assert!(some.contains("--side-by-side 8 would fit"), "{some}");
        assert_eq!(told(1000, 8, true), None);
        assert!(told(1000, 20, false).is_none());
        let none = told(500, 20, true).unwrap();
        assert!(none.contains("--backbone-pairs"), "{none}");
        assert_eq!(memory((602, 20), &runs(true), ""), None);
    }
}
