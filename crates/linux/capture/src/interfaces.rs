//! Addresses and MTUs of the host, as the kernel tells them (rtnetlink; linux/rtnetlink.h).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netlink::{Message, Netlink, attributes};

const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const DUMP: u16 = 0x300;

const LINK_LEN: usize = 16;
const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_UP: u32 = 1;
const LINK_LOOPBACK: u32 = 8;

const ADDRESS_LEN: usize = 8;
const ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
const ADDRESS_BROADCAST: u16 = 4;
/// Bits that the network of an address has at most where it has a broadcast address (RFC 3021).
const BROADCAST_PREFIX_MAX: u8 = 30;

/// One of the host's network interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kernel's number of it.
    pub index: u32,
    /// Longest IP packet, bytes.
    pub mtu: u32,
    /// Whether the operator has it switched on.
    pub up: bool,
    /// Its addresses, as the kernel orders them. Those of IPv6 that hold on one link only are left out.
    pub addresses: Vec<IpAddr>,
    /// Addresses of IPv4 that stand for all hosts of its networks.
    pub broadcasts: Vec<Ipv4Addr>,
}

/// The host's interfaces, the loopback one left out, by number.
///
/// # Errors
/// The kernel does not tell.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let netlink = Netlink::open(None)?;
    let mut found: BTreeMap<u32, Interface> = BTreeMap::new();
    let links = Message::new()
        .begin_quiet(GET_LINK, DUMP)
        .raw(&[0; LINK_LEN]);
    netlink.dump(links.bytes(), |kind, body| {
        if let (NEW_LINK, Some(link)) = (kind, link(body)) {
            found.insert(link.index, link);
        }
    })?;
    let addresses = Message::new()
        .begin_quiet(GET_ADDRESS, DUMP)
        .raw(&[0; ADDRESS_LEN]);
    netlink.dump(addresses.bytes(), |kind, body| {
        if let (NEW_ADDRESS, Some((index, address))) = (kind, address(body))
            && let Some(interface) = found.get_mut(&index)
        {
            interface.addresses.push(address);
            interface.broadcasts.extend(broadcasts(body));
        }
    })?;
    Ok(found.into_values().collect())
}

/// An interface without its addresses; `None` for the loopback one.
fn link(body: &[u8]) -> Option<Interface> {
    let header: &[u8; LINK_LEN] = body.first_chunk()?;
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| header[at + i]));
    let (index, flags) = (word(4), word(8));
    let (mut name, mut mtu) = (None, 0);
    for (kind, value) in attributes(body, LINK_LEN) {
        match kind {
            LINK_NAME => {
                let end = value
                    .iter()
                    .position(|&byte| byte == 0)
                    .unwrap_or(value.len());
                name = Some(String::from_utf8_lossy(&value[..end]).into_owned());
            }
            LINK_MTU => mtu = u32::from_ne_bytes(*value.first_chunk()?),
            _ => {}
        }
    }
    (flags & LINK_LOOPBACK == 0).then_some(Interface {
        name: name?,
        index,
        mtu,
        up: flags & LINK_UP != 0,
        addresses: Vec::new(),
        broadcasts: Vec::new(),
    })
}

/// What stands for all hosts of an address's network: the highest one, and what it was given besides.
fn broadcasts(body: &[u8]) -> impl Iterator<Item = Ipv4Addr> {
    let prefix = body.get(1).copied().unwrap_or_default();
    let four = |wanted| {
        let mut all = attributes(body, ADDRESS_LEN);
        let (_, value) = all.find(|(kind, _)| *kind == wanted)?;
        let value: [u8; 4] = value.try_into().ok()?;
        Some(Ipv4Addr::from(value))
    };
    let network = four(ADDRESS).filter(|_| prefix <= BROADCAST_PREFIX_MAX);
    let highest = network.map(|it| it | Ipv4Addr::from(u32::MAX >> prefix));
    let given = four(ADDRESS_BROADCAST).filter(|given| Some(*given) != highest);
    highest.into_iter().chain(given)
}

fn address(body: &[u8]) -> Option<(u32, IpAddr)> {
    let header: &[u8; ADDRESS_LEN] = body.first_chunk()?;
    let index = u32::from_ne_bytes([4, 5, 6, 7].map(|i| header[i]));
    let of_kind = |wanted| attributes(body, ADDRESS_LEN).find(|(kind, _)| *kind == wanted);
    // On a link with two ends the other attribute has the other end.
    let (_, value) = of_kind(ADDRESS_LOCAL).or_else(|| of_kind(ADDRESS))?;
    let address = match value.len() {
        4 => IpAddr::from(Ipv4Addr::from(*value.first_chunk::<4>()?)),
        16 => IpAddr::from(Ipv6Addr::from(*value.first_chunk::<16>()?)),
        _ => return None,
    };
    match address {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => None,
        _ => Some((index, address)),
    }
}
