//! A node's driver of one simulated network: what it sends and takes lies in the exchange's mailboxes.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use bumpless_net_linux::{Link, ReceiveOutcome, Segment, SendFailure, SendOutcome};
use bumpless_wire::EnvelopeHeader;

use super::{BATCH, Shared, begins_message, empty, footprint};
use crate::readable::{message_in, take_opened};
use crate::script::End;

/// A node's driver of one simulated network.
#[derive(Debug)]
pub struct SimLink {
    /// Where everything goes.
    pub exchange: Shared,
    /// The node.
    pub node: usize,
    /// The network.
    pub network: usize,
    /// Its own address there.
    pub local: SocketAddr,
    /// Position of its mailbox.
    mailbox: usize,
}

impl SimLink {
    /// The driver of `node` on `network`, where its address is `local`.
    pub fn new(exchange: &Shared, (node, network): (usize, usize), local: SocketAddr) -> Self {
        Self {
            exchange: exchange.clone(),
            node,
            network,
            local,
            mailbox: exchange.get().position(node, network),
        }
    }
}

impl Link for SimLink {
    fn send(&mut self, target: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        let exchange = &mut *self.exchange.get();
        let to = exchange.directory.at_address(self.network, target);
        exchange.note_sent(self.network, to, packets);
        if exchange.boxes[self.mailbox].unreachable {
            return SendOutcome {
                sent: 0,
                failure: Some(SendFailure::Unreachable),
            };
        }
        for packet in packets {
            let mut parcel = empty(&mut exchange.free, packet.len());
            (parcel.network, parcel.source) = (self.network, self.local);
            (parcel.target, parcel.to) = (target, to);
            parcel.leaves(exchange.sent_as(self.network, End::Node(self.node), to));
            let bytes = &mut parcel.bytes;
            bytes.extend_from_slice(packet.header);
            if !packet.payload.is_empty() {
                bytes.extend_from_slice(packet.payload);
            }
            exchange.boxes[self.mailbox].outbox.push(parcel);
        }
        SendOutcome {
            sent: packets.len(),
            failure: None,
        }
    }

    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        // What is passed on goes into the cores, which call no driver.
        let exchange = &mut *self.exchange.get();
        let mut datagrams = 0;
        while datagrams < BATCH {
            let mailbox = &mut exchange.boxes[self.mailbox];
            let Some(mut parcel) = mailbox.inbox.pop_front() else {
                break;
            };
            mailbox.waiting -= footprint(&parcel);
            let sealed = EnvelopeHeader::is_one(&parcel.bytes);
            take_opened();
            sink(parcel.source, &mut parcel.bytes);
            // What does not open, or is not protected as it must be, is as good as lost.
            let taken = match exchange.protected {
                true => take_opened(),
                false => !sealed,
            };
            if sealed && taken {
                exchange.judge_genuine((self.node, self.mailbox), &parcel);
            } else if sealed && exchange.protected {
                exchange.judge_refused((self.node, self.mailbox), &parcel);
            }
            if taken && begins_message(message_in(&parcel.bytes)) {
                exchange.note_taken(self.node, &parcel);
            }
            exchange.recycle(parcel);
            datagrams += 1;
        }
        ReceiveOutcome {
            datagrams,
            more: datagrams == BATCH,
            ..ReceiveOutcome::default()
        }
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }
}
