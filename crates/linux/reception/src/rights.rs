//! What the kernel permits this process (capabilities(7)), and how more is granted.

use std::fmt;
use std::fs;

/// A capability that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: &'static str,
    /// What it is needed for.
    pub needed_for: &'static str,
}

const SYS_ADMIN: u32 = 21;

const NEEDED: [(u32, Missing); 3] = [
    (
        12,
        Missing {
            name: "CAP_NET_ADMIN",
            needed_for: "attaching a program to an interface",
        },
    ),
    (
        39,
        Missing {
            name: "CAP_BPF",
            needed_for: "loading it",
        },
    ),
    (
        38,
        Missing {
            name: "CAP_PERFMON",
            needed_for: "having it read headers of any length",
        },
    ),
];

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is missing ({})", self.name, self.needed_for)
    }
}

/// How the capabilities are granted to the program at `path`.
pub fn remedy(path: &str) -> String {
    format!(
        "run it as root, or once `sudo setcap cap_net_admin,cap_bpf,cap_perfmon+ep {path}`, or have AmbientCapabilities=CAP_NET_ADMIN \
         CAP_BPF CAP_PERFMON in its service"
    )
}

/// The capabilities that are needed and that this process does not have.
pub fn missing() -> Vec<Missing> {
    missing_in(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn missing_in(status: &str) -> Vec<Missing> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Where the kernel does not tell, trying does. CAP_SYS_ADMIN contains the two others.
    let has = |bit: u32| mask.is_none_or(|mask| mask >> bit & 1 == 1);
    let lacking = NEEDED
        .iter()
        .filter(|(bit, it)| !(has(*bit) || it.name != "CAP_NET_ADMIN" && has(SYS_ADMIN)));
    lacking.map(|(_, missing)| *missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_read_as_the_kernel_writes_it() {
        let names = |mask: &str| {
            let missing = missing_in(&format!("CapInh:\t0\nCapEff:\t{mask}\n"));
            missing.iter().map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(names("000001ffffffffff"), [""; 0]);
        assert_eq!(names("000000c000001000"), [""; 0]);
        assert_eq!(names("0000000000201000"), [""; 0]);
        assert_eq!(names("0000008000001000"), ["CAP_PERFMON"]);
        let all = ["CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"];
        assert_eq!(names("0000000000000000"), all);
        assert_eq!(missing_in(""), []);
    }
}
