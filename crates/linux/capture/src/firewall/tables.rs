//! Which tables a host has, and whose they are.

use std::io;

use rustix::net::netlink;

use super::batch::{DUMP, IPV4, IPV6, SUBSYSTEM};
use crate::netlink::{Message, Netlink, attributes};

const GET_TABLE: u16 = SUBSYSTEM | 1;

mod attribute {
    pub const NAME: u16 = 1;
    pub const OWNER: u16 = 7;
}

/// Names of the tables that the host has, of IPv4 and IPv6.
///
/// # Errors
/// The kernel does not tell.
pub fn tables() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    each(|name, _| names.push(name.to_owned()))?;
    Ok(names)
}

/// The address of the netlink socket with which the table `name` goes. `None`: there is none, or it is nobody's.
///
/// # Errors
/// The kernel does not tell.
pub fn owner(name: &str) -> io::Result<Option<u32>> {
    let mut found = None;
    each(|it, owner| {
        if it == name {
            found = found.or(owner);
        }
    })?;
    Ok(found)
}

/// Shows name and owner of each table.
fn each(mut show: impl FnMut(&str, Option<u32>)) -> io::Result<()> {
    let netlink = Netlink::open(Some(netlink::NETFILTER))?;
    for family in [IPV4, IPV6] {
        let question = Message::new()
            .begin_quiet(GET_TABLE, DUMP)
            .netfilter(family, 0);
        netlink.dump(question.bytes(), |_, body| {
            let value = |wanted: u16| {
                let mut all = attributes(body, 4).filter(|(kind, _)| *kind == wanted);
                all.next().map(|(_, value)| value)
            };
            let owner = value(attribute::OWNER).and_then(|it| it.try_into().ok());
            let name = String::from_utf8_lossy(value(attribute::NAME).unwrap_or_default());
            show(name.trim_end_matches('\0'), owner.map(u32::from_be_bytes));
        })?;
    }
    Ok(())
}
