//! What the kernel permits this process, right by right (capabilities(7)).

use std::fmt;
use std::fs;

/// A right, with the number that the kernel has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Addresses, routes, firewall rules, programs at interfaces.
    NetAdmin = 12,
    /// Packets with any content, and sockets bound to an interface.
    NetRaw = 13,
    /// Memory locked without a limit.
    IpcLock = 14,
    /// Namespaces, and all that has no right of its own.
    SysAdmin = 21,
    /// Programs in the kernel that read what the verifier cannot bound by itself.
    Perfmon = 38,
    /// Programs in the kernel.
    Bpf = 39,
}

impl Capability {
    /// Its name, as setcap(8) and service files have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        }
    }
}

/// A right that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: &'static str,
    /// What it is needed for.
    pub needed_for: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is missing ({})", self.name, self.needed_for)
    }
}

/// The rights that are in effect, as far as the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effective(Option<u64>);

impl Effective {
    /// Those of the calling thread.
    pub fn of_this_thread() -> Self {
        Self::read(&fs::read_to_string("/proc/thread-self/status").unwrap_or_default())
    }

    /// Those that the text of a file `status` below `/proc` has.
    pub fn read(status: &str) -> Self {
        let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        Self(mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()))
    }

    /// Whether `right` may be there. Where the kernel does not tell, trying does.
    pub fn may_have(self, right: Capability) -> bool {
        self.0.is_none_or(|mask| mask >> right as u32 & 1 == 1)
    }

    /// Whether `right` is there for certain.
    pub fn has(self, right: Capability) -> bool {
        self.0.is_some() && self.may_have(right)
    }

    /// Which of `needed` are missing; each comes with what it is needed for.
    pub fn lacking(self, needed: &[(Capability, &'static str)]) -> Vec<Missing> {
        let missing = needed.iter().filter(|(right, _)| !self.may_have(*right));
        let missing = missing.map(|&(right, needed_for)| Missing {
            name: right.name(),
            needed_for,
        });
        missing.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_as_the_kernel_writes_them() {
        let read = |mask: &str| Effective::read(&format!("CapInh:\t0\nCapEff:\t{mask}\n"));
        let all = read("000001ffffffffff");
        assert!(all.has(Capability::NetAdmin) && all.has(Capability::Bpf));
        let one = read("0000000000001000");
        assert!(one.has(Capability::NetAdmin) && !one.may_have(Capability::NetRaw));
        let needed = [
            (Capability::NetAdmin, "rules"),
            (Capability::NetRaw, "sockets"),
        ];
        let missing = one.lacking(&needed);
        let words: Vec<_> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["CAP_NET_RAW is missing (sockets)"]);
    }

    #[test]
    fn where_the_kernel_does_not_tell_a_right_is_neither_missing_nor_certain() {
        for status in ["", "CapEff:\tnonsense\n"] {
            let unknown = Effective::read(status);
            assert!(unknown.may_have(Capability::SysAdmin) && !unknown.has(Capability::SysAdmin));
            assert!(unknown.lacking(&[(Capability::Bpf, "loading")]).is_empty());
        }
    }
}
