//! Which sockets programs have, as the kernel's tables tell (proc(5), `/proc/net/udp` and the like).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A table of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Bound sockets of UDP, IPv4.
    Udp,
    /// Those of IPv6.
    Udp6,
    /// Sockets of TCP that listen or are connected, IPv4.
    Tcp,
    /// Those of IPv6.
    Tcp6,
}

/// A socket in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it is bound.
    pub local: SocketAddr,
    /// Whose it is.
    pub user: u32,
    /// The file that it is, as `fstat` tells; 0: nobody has it open any more.
    pub inode: u64,
}

/// What waits in the buffers of UDP sockets at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Bytes of the kernel's memory that wait to be read.
    pub waiting: u64,
    /// Datagrams that were lost for want of room, since each of the sockets was opened.
    pub lost: u64,
}

/// Of all bound UDP sockets of this thread's network namespace, of both families, by port.
///
/// # Errors
/// The kernel does not show them.
pub fn queues() -> io::Result<HashMap<u16, Queue>> {
    let mut queues = HashMap::new();
    for table in [Table::Udp, Table::Udp6] {
        add_queues(&mut queues, &table.text()?);
    }
    Ok(queues)
}

fn add_queues(queues: &mut HashMap<u16, Queue>, table: &str) {
    for (port, queue) in table.lines().filter_map(queue) {
        let sum: &mut Queue = queues.entry(port).or_default();
        sum.waiting = sum.waiting.saturating_add(queue.waiting);
        sum.lost = sum.lost.saturating_add(queue.lost);
    }
}

fn queue(line: &str) -> Option<(u16, Queue)> {
    let mut columns = line.split_whitespace();
    let port = address(columns.nth(1)?)?.port();
    let (_, waiting) = columns.nth(2)?.split_once(':')?;
    let queue = Queue {
        waiting: u64::from_str_radix(waiting, 16).ok()?,
        lost: columns.nth(7)?.parse().ok()?,
    };
    Some((port, queue))
}

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Udp6 => "udp6",
            Self::Tcp => "tcp",
            Self::Tcp6 => "tcp6",
        }
    }

    /// The sockets in it, of this thread's network namespace.
    ///
    /// # Errors
    /// The kernel does not show it. Without IPv6 there is none of the tables for that: no error, no row.
    pub fn rows(self) -> io::Result<Vec<Row>> {
        self.text().map(|text| rows_in(&text))
    }

    fn text(self) -> io::Result<String> {
        match fs::read_to_string(format!("/proc/thread-self/net/{}", self.name())) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && matches!(self, Self::Udp6 | Self::Tcp6) =>
            {
                Ok(String::new())
            }
            read => read,
        }
    }
}

fn rows_in(table: &str) -> Vec<Row> {
    table.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let mut columns = line.split_whitespace();
    Some(Row {
        local: address(columns.nth(1)?)?,
        user: columns.nth(5)?.parse().ok()?,
        inode: columns.nth(1)?.parse().ok()?,
    })
}

/// An address as the kernel writes it: words of 32 bits as this machine has them in memory, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = [0; 16];
    let words = address.as_bytes().chunks(8);
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        let word = std::str::from_utf8(word).ok()?;
        place.copy_from_slice(&u32::from_str_radix(word, 16).ok()?.to_ne_bytes());
    }
    let address = match (address.len(), bytes) {
        (8, [a, b, c, d, ..]) => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        (32, bytes) => IpAddr::V6(Ipv6Addr::from(bytes)),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_socket_is_found_in_the_kernels_own_tables_with_its_user_and_file() {
        let user = fs::metadata("/proc/self").unwrap().uid();
        let check = |table: Table, local: SocketAddr, socket: std::os::fd::BorrowedFd<'_>| {
            let inode = rustix::fs::fstat(socket).unwrap().st_ino;
            let row = Row { local, user, inode };
            assert!(table.rows().unwrap().contains(&row), "{row:?}");
        };
        for (udp, tcp, local) in [
            (Table::Udp, Table::Tcp, "127.0.0.1:0"),
            (Table::Udp6, Table::Tcp6, "[::1]:0"),
        ] {
            let Ok(socket) = UdpSocket::bind(local) else {
                continue;
            };
            check(udp, socket.local_addr().unwrap(), socket.as_fd());
            let socket = TcpListener::bind(local).unwrap();
            check(tcp, socket.local_addr().unwrap(), socket.as_fd());
        }
    }

    #[test]
    fn what_waits_at_a_port_and_what_found_no_room_there_is_what_the_kernel_says() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let at_port = || queues().unwrap()[&to.port()];
        assert_eq!(at_port(), Queue::default());
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let send = || sender.send_to(&[7; 1000], to).unwrap();
        send();
        assert!(at_port().waiting >= 1000 && at_port().lost == 0);
        // More than any socket has room for unless it asks for it.
        for _ in 0..10_000 {
            send();
        }
        assert!(at_port().lost > 0, "{:?}", at_port());
        let mut sum = HashMap::new();
        let line = "1: 0100007F:0009 00000000:0000 07 00000000:000000FF 00:00000000 00000000 0 0 8 2 0000000000000000 5\n";
        add_queues(&mut sum, &line.repeat(2));
        let waiting = 2 * 255;
        assert_eq!(sum, HashMap::from([(9, Queue { waiting, lost: 10 })]));
    }

    #[test]
    fn lines_that_are_not_as_expected_tell_nothing() {
        for table in [
            "",
            "a b c d e f g h i j\n",
            "1: 0100007F:0009\n",
            "1: 0100007F:0009 0 0 0 0 0 0 0\n",
            "1: 01:09 0 0 0 0 0 0 0 0\n",
            "1: äääää:09 0 0 0 0 0 0 0 0",
        ] {
            assert_eq!(rows_in(table), [], "{table}");
            assert!(table.lines().all(|line| queue(line).is_none()), "{table}");
        }
        let right = "1: 0100007F:0009 0 0 0 0 0 7 0 8 more";
        assert_eq!(rows_in(right).len(), 1);
    }
}
