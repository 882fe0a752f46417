//! Where a measurement takes place: loopback, or two hosts of its own joined by two networks.

pub mod filter;
pub mod lab;
pub mod namespace;
pub mod program;

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use crate::peer::Side;
pub use lab::{Lab, Shape};

/// Where both ends are.
#[derive(Debug)]
pub enum Place {
    /// Both on loopback addresses that belong to this process; nothing can be lost there.
    Loopback,
    /// Two namespaces with two networks between them.
    Lab(Lab),
}

impl Place {
    /// The addresses of one side, one for each of `networks`.
    pub fn addresses(&self, side: Side, networks: usize) -> Vec<IpAddr> {
        let host = if side == Side::Send { 1 } else { 2 };
        (1..=networks as u8)
            .map(|network| match self {
                Self::Loopback => {
                    let id = std::process::id();
                    let (x, y) = (20 + id / 250 % 100, id % 250);
                    Ipv4Addr::new(127, x as u8, y as u8, host + 10 * network).into()
                }
                Self::Lab(_) => lab::address(network, host).into(),
            })
            .collect()
    }

    /// A command that will run on that side.
    pub fn command(&self, side: Side, program: &std::path::Path) -> Command {
        let mut command = Command::new(program);
        if let Self::Lab(lab) = self {
            lab.host(side).put_into(&mut command);
        }
        command
    }

    /// The laboratory, where there is one.
    pub fn lab(&self) -> Option<&Lab> {
        match self {
            Self::Lab(lab) => Some(lab),
            Self::Loopback => None,
        }
    }
}
