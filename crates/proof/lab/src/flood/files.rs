//! The kernel's files on interfaces of the thread's network namespace, without a change of what is mounted anywhere.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use bumpless_placement::Tree;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// File systems of this process's own: the kernel takes them away when it has ended, however it does.
pub struct Files {
    root: PathBuf,
    _mounts: [OwnedFd; 2],
}

impl Files {
    /// Those of the calling thread's network namespace.
    ///
    /// # Errors
    /// The right to it is missing (CAP_SYS_ADMIN), or the kernel is older than 5.2.
    pub fn mount() -> io::Result<Self> {
        let (sys, folder) = (mounted("sysfs")?, mounted("tmpfs")?);
        let root = path(&folder);
        symlink(path(&sys), root.join("sys"))?;
        symlink("/proc", root.join("proc"))?;
        Ok(Self {
            root,
            _mounts: [sys, folder],
        })
    }

    /// They, as a change of where packets are worked off takes them.
    pub fn tree(&self) -> Tree {
        Tree::below(&self.root)
    }

    /// Where records of such changes may be.
    pub fn records(&self) -> PathBuf {
        self.root.join("records")
    }

    /// Packets that an interface has received.
    pub fn received(&self, interface: &str) -> io::Result<u64> {
        let of_interface = self.tree().of_interface(interface);
        first_number(&of_interface.join("statistics/rx_packets"))
    }

    /// Packets that an interface was to send and could not.
    pub fn not_sent(&self, interface: &str) -> io::Result<u64> {
        let of_interface = self.tree().of_interface(interface);
        first_number(&of_interface.join("statistics/tx_dropped"))
    }

    /// The processor's time of a thread, nanoseconds.
    pub fn worked(&self, thread: u32) -> io::Result<u64> {
        first_number(&self.tree().of_process(thread).join("schedstat"))
    }
}

fn mounted(kind: &str) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    );
    Ok(mount?)
}

fn path(mount: &OwnedFd) -> PathBuf {
    PathBuf::from(format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        mount.as_raw_fd()
    ))
}

fn first_number(file: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    let word = text.split_whitespace().next().unwrap_or_default();
    word.parse()
        .map_err(|_| io::Error::other(format!("{} has no number", file.display())))
}
