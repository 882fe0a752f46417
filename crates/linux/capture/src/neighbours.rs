//! Next hops of the host, as far as the kernel knows how to reach them (rtnetlink; linux/neighbour.h).

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};

use crate::netlink::{Message, Netlink, attributes};

const NEW_NEIGHBOUR: u16 = 28;
const GET_NEIGHBOUR: u16 = 30;
const DUMP: u16 = 0x300;
/// Groups of news: of neighbours, and of interfaces (RTMGRP_NEIGH, RTMGRP_LINK).
const NEWS: u32 = 4 | 1;

const HEADER_LEN: usize = 12;
const DESTINATION: u16 = 1;

/// It has not been found yet, or not any more.
const UNFOUND: u16 = 0x01 | 0x20;
/// It is asked whether it is still there.
const PROBED: u16 = 0x10;
/// Room for news, of which none is looked at.
const ROOM: usize = 64 * 1024;

/// A next hop: the kernel's number of the interface, and its address there.
pub type Hop = (u32, IpAddr);

/// A next hop that the kernel has, and whether it is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Which.
    pub hop: Hop,
    /// It does not answer at present, or has just been asked.
    pub probed: bool,
}

/// Tells of changes, and reads what is.
#[derive(Debug)]
pub struct Neighbours {
    news: Netlink,
    buffer: Box<[u8]>,
}

impl Neighbours {
    /// Of the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            news: Netlink::open_to_groups(None, NEWS)?,
            buffer: vec![0; ROOM].into(),
        })
    }

    /// Whether anything has changed since this was asked last.
    pub fn changed(&mut self) -> bool {
        let mut any = false;
        loop {
            match self.news.receive(&mut self.buffer) {
                Ok(Some(_)) => any = true,
                Ok(None) => return any,
                // More than the kernel could keep.
                Err(_) => return true,
            }
        }
    }

    /// Those to which packets can be sent.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn read(&self) -> io::Result<Vec<Neighbour>> {
        let netlink = Netlink::open(None)?;
        let question = Message::new()
            .begin_quiet(GET_NEIGHBOUR, DUMP)
            .raw(&[0; HEADER_LEN]);
        let mut found = Vec::new();
        netlink.dump(question.bytes(), |kind, body| {
            if kind == NEW_NEIGHBOUR {
                found.extend(neighbour(body));
            }
        })?;
        Ok(found)
    }
}

fn neighbour(body: &[u8]) -> Option<Neighbour> {
    let header: &[u8; HEADER_LEN] = body.first_chunk()?;
    let interface = u32::from_ne_bytes([4, 5, 6, 7].map(|i| header[i]));
    let state = u16::from_ne_bytes([header[8], header[9]]);
    let (_, value) = attributes(body, HEADER_LEN).find(|(kind, _)| *kind == DESTINATION)?;
    let address = match value.len() {
        4 => IpAddr::from(*value.first_chunk::<4>()?),
        16 => IpAddr::from(*value.first_chunk::<16>()?),
        _ => return None,
    };
    (state != 0 && state & UNFOUND == 0).then_some(Neighbour {
        hop: (interface, address),
        probed: state & PROBED != 0,
    })
}

impl AsRawFd for Neighbours {
    fn as_raw_fd(&self) -> RawFd {
        self.news.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_be_reached_is_read_as_the_kernel_tells_it() {
        let message = |state: u16, address: &[u8]| {
            let mut header = [0; HEADER_LEN];
            header[4..8].copy_from_slice(&7u32.to_ne_bytes());
            header[8..10].copy_from_slice(&state.to_ne_bytes());
            let built = Message::new()
                .begin_quiet(NEW_NEIGHBOUR, 0)
                .raw(&header)
                .attribute(DESTINATION, address);
            built.bytes()[16..].to_vec()
        };
        let v4 = [10, 1, 0, 2];
        for (state, told) in [
            (0x00, None),
            (0x01, None),
            (0x02, Some(false)),
            (0x04, Some(false)),
            (0x08, Some(false)),
            (0x10, Some(true)),
            (0x20, None),
            (0x40, Some(false)),
            (0x80, Some(false)),
        ] {
            let read = neighbour(&message(state, &v4));
            assert_eq!(read.map(|it| it.probed), told, "{state:x}");
            assert!(read.is_none_or(|it| it.hop == (7, IpAddr::from(v4))));
        }
        let v6 = [0xFD; 16];
        let read = neighbour(&message(0x02, &v6)).unwrap();
        assert_eq!(read.hop, (7, IpAddr::from(v6)));
        assert_eq!(neighbour(&message(0x02, &[1; 5])), None);
        assert_eq!(neighbour(&[0; 11]), None);
    }
}
