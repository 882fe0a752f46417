//! A range of addresses: an address and how many of its bits count.

use std::fmt;
use std::net::IpAddr;

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// The prefix that `text` writes, such as 10.1.0.0/16 or fd00:a::/64.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, (String, String)> {
        let form = || "a prefix such as \"10.1.0.0/16\" or \"fd00:a::/64\"".to_owned();
        let none = || (format!("is the text {text:?}"), form());
        let (address, bits) = text.split_once('/').ok_or_else(none)?;
        let address: IpAddr = address.parse().map_err(|_| none())?;
        let bits: u8 = bits.parse().map_err(|_| none())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if bits > most {
            return Err((
                format!("has {bits} bits, and such an address has {most}"),
                form(),
            ));
        }
        let given = Self { address, bits };
        let whole = Self {
            address: given.masked(address),
            bits,
        };
        match given == whole {
            true => Ok(given),
            false => Err((
                format!("is {text}, whose address has more bits than count"),
                format!("{:?}", whole.to_string()),
            )),
        }
    }

    /// Whether `address` begins so.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && self.masked(address) == self.address
    }

    /// Whether an address can be in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    fn masked(&self, address: IpAddr) -> IpAddr {
        let bits = u32::from(self.bits);
        match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        Prefix::parse(text).unwrap()
    }

    #[test]
    fn what_begins_alike_is_inside() {
        let inside = |text: &str, address: &str| prefix(text).contains(address.parse().unwrap());
        assert!(inside("10.1.0.0/16", "10.1.255.255") && !inside("10.1.0.0/16", "10.2.0.0"));
        assert!(inside("0.0.0.0/0", "255.1.2.3") && !inside("0.0.0.0/0", "::1"));
        assert!(inside("10.0.0.1/32", "10.0.0.1") && !inside("10.0.0.1/32", "10.0.0.0"));
        assert!(inside("fd00:a::/64", "fd00:a::1") && !inside("fd00:a::/64", "fd00:b::1"));
        assert!(inside("::/0", "fd00::") && inside("::1/128", "::1"));
        assert!(prefix("10.1.0.0/16").overlaps(&prefix("10.1.2.0/24")));
        assert!(!prefix("10.1.0.0/16").overlaps(&prefix("10.2.0.0/16")));
    }

    #[test]
    fn wrong_prefixes_are_refused_with_what_would_be_right() {
        for text in [
            "",
            "10.1.0.0",
            "10.1/16",
            "10.1.0.0/x",
            "10.1.0.0/-1",
            "a/8",
        ] {
            assert!(
                Prefix::parse(text).unwrap_err().1.contains("such as"),
                "{text}"
            );
        }
        assert!(Prefix::parse("10.0.0.0/33").unwrap_err().0.contains("32"));
        let (_, right) = Prefix::parse("10.1.2.3/16").unwrap_err();
        assert_eq!(right, "\"10.1.0.0/16\"");
    }
}
