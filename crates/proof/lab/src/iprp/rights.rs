//! What two hosts in namespaces take: root's rights, or those that any user has in a user namespace of its own.

use std::fs;

use bumpless_net_linux::capabilities::{Capability, Effective};
use rustix::process::{getegid, geteuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::{LabError, impossible};

const NEEDED: [Capability; 3] = [
    Capability::NetAdmin,
    Capability::NetRaw,
    Capability::SysAdmin,
];

/// Sees to it that this process may make networks of its own, in a user namespace if it may not otherwise. The process must
/// have one thread.
///
/// # Errors
/// The system permits neither.
#[allow(unsafe_code)]
pub fn ensure() -> Result<(), LabError> {
    let effective = Effective::of_this_thread();
    if NEEDED.iter().all(|right| effective.may_have(*right)) {
        return Ok(());
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let refused = |error: std::io::Error| {
        impossible(format_args!(
            "this takes networks of its own, and neither root's rights are there nor does the system permit user namespaces ({error}): run it \
             as root, or permit them (`sysctl user.max_user_namespaces`, on some systems kernel.unprivileged_userns_clone=1 or \
             kernel.apparmor_restrict_unprivileged_userns=0)"
        ))
    };
    // SAFETY: it concerns whose rights this thread has, not its descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }.map_err(|error| refused(error.into()))?;
    let map = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
    map("setgroups", "deny".into())
        .and_then(|()| map("uid_map", format!("0 {user} 1")))
        .and_then(|()| map("gid_map", format!("0 {group} 1")))
        .map_err(refused)
}
