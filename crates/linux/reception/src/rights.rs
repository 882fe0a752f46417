//! What a program at an interface takes of rights, and how they are granted.

use bumpless_net_linux::capabilities::{Capability, Effective, Missing};

const NEEDED: [(Capability, &str); 3] = [
    (Capability::NetAdmin, "attaching a program to an interface"),
    (Capability::Bpf, "loading it"),
    (Capability::Perfmon, "having it read headers of any length"),
];

/// How the capabilities are granted to the program at `path`.
pub fn remedy(path: &str) -> String {
    format!(
        "run it as root, or once `sudo setcap cap_net_admin,cap_bpf,cap_perfmon+ep {path}`, or have AmbientCapabilities=CAP_NET_ADMIN \
         CAP_BPF CAP_PERFMON in its service"
    )
}

/// The capabilities that are needed and that this process does not have.
pub fn missing() -> Vec<Missing> {
    missing_in(Effective::of_this_thread())
}

fn missing_in(effective: Effective) -> Vec<Missing> {
    let mut missing = effective.lacking(&NEEDED);
    // CAP_SYS_ADMIN contains the two others.
    if effective.has(Capability::SysAdmin) {
        missing.retain(|it| it.name == Capability::NetAdmin.name());
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_read_as_the_kernel_writes_it() {
        let names = |mask: &str| {
            let missing = missing_in(Effective::read(&format!("CapInh:\t0\nCapEff:\t{mask}\n")));
            missing.iter().map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(names("000001ffffffffff"), [""; 0]);
        assert_eq!(names("000000c000001000"), [""; 0]);
        assert_eq!(names("0000000000201000"), [""; 0]);
        assert_eq!(names("0000008000001000"), ["CAP_PERFMON"]);
        let all = ["CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"];
        assert_eq!(names("0000000000000000"), all);
        assert_eq!(missing_in(Effective::read("")), []);
    }
}
