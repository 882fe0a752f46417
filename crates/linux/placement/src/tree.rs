//! The kernel's files on interfaces and interrupts (sysfs-class-net, core-api/irq/irq-affinity).

use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    sys: PathBuf,
    proc: PathBuf,
}

impl Default for Tree {
    fn default() -> Self {
        Self::below(Path::new("/"))
    }
}

impl Tree {
    /// Those in `sys` and `proc` below `root`.
    pub fn below(root: &Path) -> Self {
        Self {
            sys: root.join("sys"),
            proc: root.join("proc"),
        }
    }

    /// Of an interface.
    pub fn of_interface(&self, name: &str) -> PathBuf {
        self.sys.join("class/net").join(name)
    }

    /// Of an interrupt.
    pub fn of_interrupt(&self, number: u32) -> PathBuf {
        self.proc.join("irq").join(number.to_string())
    }

    /// Of all processors.
    pub fn of_processors(&self) -> PathBuf {
        self.sys.join("devices/system/cpu")
    }

    /// Of all processes.
    pub fn of_processes(&self) -> &Path {
        &self.proc
    }

    /// Of a process, or of a thread of the kernel's.
    pub fn of_process(&self, number: u32) -> PathBuf {
        self.proc.join(number.to_string())
    }

    /// Names of the receive queues of an interface, in order.
    pub fn queues(&self, name: &str) -> Vec<String> {
        let mut queues = names_in(&self.of_interface(name).join("queues"));
        queues.retain(|queue| queue.starts_with("rx-"));
        queues
    }

    /// Numbers of the interrupts of an interface, in order: those of its device, and those that its driver has called by its name.
    pub fn interrupts(&self, name: &str) -> Vec<u32> {
        let mut numbers = self.of_device(name);
        for number in numbers_in(&self.proc.join("irq")) {
            let actions = names_in(&self.of_interrupt(number));
            if actions.iter().any(|action| is_of(action, name)) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        // Those that the driver has not asked for have no files.
        numbers.retain(|&number| self.of_interrupt(number).exists());
        numbers
    }

    /// Those of the device, or of what it is a part of: a virtio interface's are its PCI device's.
    fn of_device(&self, name: &str) -> Vec<u32> {
        let Ok(device) = fs::canonicalize(self.of_interface(name).join("device")) else {
            return Vec::new();
        };
        let all = fs::canonicalize(self.sys.join("devices")).unwrap_or_default();
        let parts = device.ancestors().take_while(|at| **at != all);
        let mut parts = parts.map(|at| numbers_in(&at.join("msi_irqs")));
        parts
            .find(|numbers| !numbers.is_empty())
            .unwrap_or_default()
    }
}

/// Whether a driver's name of an interrupt is one of the interface called `name`: the name, alone or with something behind it.
fn is_of(action: &str, name: &str) -> bool {
    let behind = action.strip_prefix(name);
    behind.is_some_and(|it| !it.starts_with(|first: char| first.is_ascii_alphanumeric()))
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

fn numbers_in(folder: &Path) -> Vec<u32> {
    let names = names_in(folder).into_iter();
    names.filter_map(|name| name.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn interrupts_of_an_interface_are_those_of_its_device_and_those_called_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let tree = Tree::below(&root);
        let pci = root.join("sys/devices/pci0000:00/0000:00:03.0");
        let virtio = pci.join("virtio2");
        fs::create_dir_all(&virtio).unwrap();
        fs::create_dir_all(pci.join("msi_irqs")).unwrap();
        fs::create_dir_all(tree.of_interface("eth0")).unwrap();
        symlink(&virtio, tree.of_interface("eth0").join("device")).unwrap();
        for number in [37, 38, 39] {
            fs::write(pci.join("msi_irqs").join(number.to_string()), "msi").unwrap();
        }
        for (number, action) in [
            (37, "virtio2-config"),
            (38, "virtio2-input.0"),
            (9, "eth0-rx-0"),
            (10, "eth01"),
        ] {
            fs::create_dir_all(tree.of_interrupt(number).join(action)).unwrap();
        }
        // 39 is not asked for.
        assert_eq!(tree.interrupts("eth0"), [9, 37, 38]);
        assert_eq!(tree.interrupts("veth0"), [0; 0]);
    }
}
