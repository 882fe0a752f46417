//! Which process has what only one can have: a table that goes with its owner, a queue, a group of NFLOG.
//!
//! The kernel tells the address of the netlink socket; whose that socket is stands in /proc, for who may read it.

use std::fmt;
use std::fs;

use crate::firewall::owner;

/// NETLINK_NETFILTER, as /proc/net/netlink has it.
const NETFILTER: &str = "12";

/// Who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Process id and name, if they may be known.
    pub process: Option<(u32, String)>,
}

impl Holder {
    /// The process id.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|(pid, _)| *pid)
    }

    /// Of a netlink socket with this address.
    fn of(socket: u32) -> Self {
        let inode = inode(&read("netlink"), socket);
        Self {
            process: inode.and_then(|inode| process_with(&format!("socket:[{inode}]"))),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some((pid, name)) => write!(f, "process {pid} ({name})"),
            None => f.write_str("another process"),
        }
    }
}

/// Who has the firewall's table `name`; nobody, too, if it goes with no process.
pub fn table_holder(name: &str) -> Option<Holder> {
    owner(name).ok().flatten().map(Holder::of)
}

/// Who has queue `number` (NFQUEUE).
pub fn queue_holder(number: u16) -> Option<Holder> {
    socket(&read("netfilter/nfnetlink_queue"), number).map(Holder::of)
}

/// Who is shown the packets of group `number` (NFLOG).
pub fn group_holder(number: u16) -> Option<Holder> {
    socket(&read("netfilter/nfnetlink_log"), number).map(Holder::of)
}

/// Of this thread's network namespace.
fn read(name: &str) -> String {
    fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
}

/// The socket behind queue or group `number`: the first columns of both lists.
fn socket(list: &str, number: u16) -> Option<u32> {
    let mut lines = list.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| {
        let is_it = words.next()?.parse() == Ok(number);
        words.next()?.parse().ok().filter(|_| is_it)
    })
}

/// The inode of a socket for the firewall.
fn inode(list: &str, socket: u32) -> Option<u64> {
    list.lines().find_map(|line| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let is_it = words.get(1) == Some(&NETFILTER) && words.get(2)?.parse() == Ok(socket);
        words.last()?.parse().ok().filter(|_| is_it)
    })
}

/// The process that has this open.
fn process_with(open: &str) -> Option<(u32, String)> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.map(|it| it.path()).find_map(|process| {
        let pid = process.file_name()?.to_str()?.parse().ok()?;
        let files = fs::read_dir(process.join("fd")).ok()?.flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets.find(|it| it.as_os_str() == open)?;
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        Some((pid, name.trim_end().to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn lists_of_the_kernel_are_read_as_it_writes_them() {
        let queues = " 4760   1234     0 2 65535     0     0        7  1\n 4770 4294963199     0 2 65535     0     0        0  1\n";
        assert_eq!(socket(queues, 4760), Some(1234));
        assert_eq!(socket(queues, 4770), Some(4_294_963_199));
        assert_eq!(socket(queues, 47), None);
        let sockets = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n\
            0000000000000000 0   1234       00000000 0        0        0     2        0        11\n\
            0000000000000000 12  1234       00000000 0        0        0     2        0        12\n\
            0000000000000000 12  4294963199 00000000 0        0        0     2        0        13\n";
        assert_eq!(inode(sockets, 1234), Some(12));
        assert_eq!(inode(sockets, 4_294_963_199), Some(13));
        assert_eq!(inode(sockets, 1), None);
        assert_eq!((socket("", 1), inode("", 1)), (None, None));
    }

    #[test]
    fn who_has_a_socket_open_is_found_by_process_id() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let open = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let (pid, name) = process_with(open.to_str().unwrap()).unwrap();
        assert_eq!((pid, name.is_empty()), (std::process::id(), false));
        assert_eq!(process_with("socket:[0]"), None);
    }
}
