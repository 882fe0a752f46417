//! Which user's process has a UDP address on this machine, as the kernel's tables tell.

use std::net::SocketAddr;

use bumpless_net_linux::sockets::Table;

/// The first of `addresses` that a socket on this machine is bound to, and whose it is; `None`: none is, or the kernel
/// does not tell.
pub fn udp_holder(addresses: &[SocketAddr]) -> Option<(SocketAddr, u32)> {
    [Table::Udp, Table::Udp6].iter().find_map(|table| {
        let rows = table.rows().unwrap_or_default().into_iter();
        let mut held = rows.filter(|row| addresses.contains(&row.local));
        held.next().map(|row| (row.local, row.user))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::UdpSocket;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_user_who_has_an_address_is_found_in_the_kernels_own_tables() {
        let own = fs::metadata("/proc/self").unwrap().uid();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let other = "192.0.2.1:9".parse().unwrap();
        assert_eq!(udp_holder(&[other, address]), Some((address, own)));
        assert_eq!(udp_holder(&[other]), None);
    }
}
