//! What is asked of a certificate.

use std::net::IpAddr;

use crate::name::NodeName;
use crate::role::Role;

/// What a certificate is to have.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Whom it is for.
    pub name: &'a NodeName,
    /// What its holder is at field devices.
    pub role: Option<&'a Role>,
    /// Addresses by which others call its holder, if it is a field device.
    pub addresses: &'a [IpAddr],
}

impl<'a> From<&'a NodeName> for Wanted<'a> {
    fn from(name: &'a NodeName) -> Self {
        Self {
            name,
            role: None,
            addresses: &[],
        }
    }
}
