//! ICMP echo in the simulated networks: requests and replies travel as datagrams from and to port 0,
//! with the messages of RFC 792 as their bytes.

use std::net::{IpAddr, SocketAddr};

use bumpless_net_linux::{Echo, EchoReply, PassedOver, SendFailure};

use crate::exchange::Shared;

const REQUEST: u8 = 8;
const REPLY: u8 = 0;
/// type(1) code(1) checksum(2) identifier(2) sequence(2)
const LEN: usize = 8;

/// The end of a path at which echo requests are answered, or from which they are sent.
pub fn endpoint(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, 0)
}

/// Whether a datagram to or from `address` is an ICMP message.
pub fn is_icmp(address: SocketAddr) -> bool {
    address.port() == 0
}

/// Turns a request into its reply; returns whether it was one.
pub fn answer(message: &mut [u8]) -> bool {
    let whole = message.len() == LEN && message[0] == REQUEST && checksum(message) == 0;
    if whole {
        seal(message, REPLY);
    }
    whole
}

/// The sequence number of a reply.
pub fn replied(message: &[u8]) -> Option<u16> {
    let whole = message.len() == LEN && message[0] == REPLY && checksum(message) == 0;
    whole.then(|| u16::from_be_bytes([message[6], message[7]]))
}

fn seal(message: &mut [u8], kind: u8) {
    message[..4].copy_from_slice(&[kind, 0, 0, 0]);
    let sum = checksum(message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// RFC 1071, of an even number of bytes; zero of a whole message.
fn checksum(message: &[u8]) -> u16 {
    let (words, _) = message.as_chunks::<2>();
    let sum: u32 = words
        .iter()
        .map(|w| u32::from(u16::from_be_bytes(*w)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded + (folded >> 16)) as u16)
}

/// A node's socket for echo requests to one reference point.
#[derive(Debug)]
pub struct SimEcho {
    /// Where everything goes.
    pub exchange: Shared,
    /// The node.
    pub node: usize,
    /// The network.
    pub network: usize,
    /// The reference point.
    pub reference: usize,
    /// The node's address on the network.
    pub local: SocketAddr,
    /// The reference point's.
    pub target: IpAddr,
}

impl Echo for SimEcho {
    fn send(&mut self, sequence: u16) -> Result<(), SendFailure> {
        let mut exchange = self.exchange.get();
        if exchange.mailbox(self.node, self.network).unreachable {
            return Err(SendFailure::Unreachable);
        }
        let mut parcel = exchange.parcel(self.network, self.local, endpoint(self.target));
        let bytes = &mut parcel.bytes;
        bytes.extend_from_slice(&[0; LEN]);
        bytes[5] = self.node as u8;
        bytes[6..].copy_from_slice(&sequence.to_be_bytes());
        seal(bytes, REQUEST);
        let mailbox = exchange.mailbox(self.node, self.network);
        mailbox.outbox.push(parcel);
        Ok(())
    }

    fn receive(&mut self) -> Option<EchoReply> {
        let mut exchange = self.exchange.get();
        let sequence = exchange.echo(self.node, self.reference)?;
        Some(EchoReply { sequence })
    }

    /// Nothing else is in its mailbox.
    fn passed_over(&self) -> PassedOver {
        PassedOver::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_once_and_a_bent_message_is_neither() {
        let mut message = [0, 0, 0, 0, 0, 1, 0x12, 0x34];
        seal(&mut message, REQUEST);
        for bit in 0..64 {
            let mut bent = message;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(!answer(&mut bent), "bit {bit}");
        }
        assert_eq!(replied(&message), None);
        assert!(answer(&mut message));
        assert_eq!(replied(&message), Some(0x1234));
        assert!(!answer(&mut message));
    }
}
