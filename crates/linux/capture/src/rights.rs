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

const NEEDED: [(u32, Missing); 2] = [
    (
        12,
        Missing {
            name: "CAP_NET_ADMIN",
            needed_for: "capturing packets and the firewall rules for it",
        },
    ),
    (
        13,
        Missing {
            name: "CAP_NET_RAW",
            needed_for: "giving packets back to the host, and binding sockets to networks",
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
        "run it as root, or once `sudo setcap cap_net_admin,cap_net_raw+ep {path}`, or have AmbientCapabilities=CAP_NET_ADMIN \
         CAP_NET_RAW in its service"
    )
}

/// The capabilities that capturing needs and this process does not have.
pub fn missing() -> Vec<Missing> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    missing_in(&status)
}

fn missing_in(status: &str) -> Vec<Missing> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let lacks = |bit: &u32| mask.is_some_and(|mask| mask >> bit & 1 == 0);
    let lacking = NEEDED.iter().filter(|(bit, _)| lacks(bit));
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
        assert_eq!(names("0000000000001000"), ["CAP_NET_RAW"]);
        assert_eq!(names("0000000000000000"), ["CAP_NET_ADMIN", "CAP_NET_RAW"]);
        // Where the kernel does not tell, trying does.
        assert_eq!(missing_in(""), []);
    }
}
