//! Packets that were lost because there was no room to hold them, as the kernel counts them.

use std::fs::{self, File};
use std::io;

use super::build::{Delays, QUEUE};
use super::namespace;
use super::place::Running;
use crate::topology::Topology;

/// How many packets found no room at the hosts that were to hold them; none where hosts hold no packets.
///
/// # Errors
/// The kernel does not tell, or the network has ended.
pub fn overflowed(running: &Running, topology: &Topology) -> io::Result<Option<u64>> {
    if running.delays != Delays::Held {
        return Ok(None);
    }
    let hosts = topology.hosts().map(|host| running.namespace(host.index()));
    let hosts: Vec<_> = hosts.collect();
    namespace::apart(|| {
        let mut lost = 0;
        for host in hosts {
            namespace::enter(&File::open(host)?)?;
            lost += lost_here(QUEUE)?;
        }
        Ok(Some(lost))
    })
}

/// The same of one queue in the namespace of the calling thread.
pub fn lost_here(queue: u16) -> io::Result<u64> {
    let table = fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue")?;
    Ok(lost_in(&table, queue))
}

fn lost_in(table: &str, queue: u16) -> u64 {
    let of = |line: &str| -> Option<u64> {
        let columns = line.split_whitespace().map(|it| it.parse::<u64>().ok());
        let columns: Vec<u64> = columns.collect::<Option<_>>()?;
        // Number, port, waiting, mode, range; what the queue had no room for, and the buffer of who reads it.
        match columns[..] {
            [number, _, _, _, _, full, unread, ..] if number == u64::from(queue) => {
                Some(full + unread)
            }
            _ => None,
        }
    };
    table.lines().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_queue_and_its_reader_had_no_room_for_is_counted_of_that_queue_alone() {
        let table = "    1   4711     7 2    40     3    20       99  1\n 4760   4712     0 2 65535     5     6        7  1\n";
        assert_eq!(lost_in(table, 1), 23);
        assert_eq!(lost_in(table, 4760), 11);
        assert_eq!(lost_in(table, 2), 0);
        assert_eq!(lost_in("1 2 3\n\nqueue 1 1 1 1 1 1 1 1\n", 1), 0);
    }
}
