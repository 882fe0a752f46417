//! Which channels owe an acknowledgement, and what it says.

use super::channel::{Stage, Trigger};
use super::{AckTransmit, Receiver};
use crate::place::ChannelPlace;
use bumpless_base::BoundedQueue;
use bumpless_wire::{AckHeader, MAX_ACK_LEN, encode_ack};

/// Channels that owe an acknowledgement, first come first served, each at most once.
pub(super) struct AckQueue(BoundedQueue<ChannelPlace>);

impl AckQueue {
    pub fn new(channels: usize) -> Self {
        Self(BoundedQueue::new(channels))
    }

    /// Takes a channel out.
    pub fn remove(&mut self, channel: ChannelPlace) {
        self.0.retain(|&other| other != channel);
    }

    /// Who is in it, first come first.
    #[cfg(all(test, not(loom)))]
    pub fn list(&self) -> alloc::vec::Vec<ChannelPlace> {
        let mut queue = self.0.clone();
        core::iter::from_fn(|| queue.pop()).collect()
    }

    /// The caller keeps each channel from being in it twice, so it cannot be full.
    fn push(&mut self, channel: ChannelPlace) {
        let _ = self.0.push(channel);
    }
}

impl Receiver {
    /// Counts a packet for flow control; returns whether its channel must acknowledge because the
    /// limit of unacknowledged packets is reached (first paper, 7.2.3, reason iv).
    ///
    /// The limit holds for the peer as a whole, as the sender's does: when it is reached, every
    /// channel that has unacknowledged packets acknowledges.
    pub(super) fn count_unacknowledged(&mut self, index: ChannelPlace) -> bool {
        let channel = &mut self.channels[index];
        let peer_at = usize::from(channel.setup.peer.0);
        let peer = &mut self.peers[peer_at];
        channel.unacknowledged += 1;
        peer.unacknowledged += 1;
        if !channel.listed {
            channel.listed = true;
            peer.list.push(index);
        }
        if peer.unacknowledged < peer.ack_every() {
            return false;
        }
        while let Some(other) = self.peers[peer_at].list.pop() {
            self.channels[other].listed = false;
            if self.channels[other].unacknowledged > 0 {
                self.request_ack(other, None);
            }
        }
        true
    }

    /// Queues an acknowledgement of a channel. Everything received before it is polled is in it.
    pub(super) fn request_ack(&mut self, index: ChannelPlace, trigger: Option<Trigger>) {
        let channel = &mut self.channels[index];
        if channel.stage == Stage::Nothing {
            return;
        }
        if let Some(trigger) = trigger {
            channel.triggered.insert(trigger.link);
            channel.triggers[usize::from(trigger.link.0)] = Some(trigger);
        }
        let peer = &mut self.peers[usize::from(channel.setup.peer.0)];
        peer.unacknowledged = peer.unacknowledged.saturating_sub(channel.unacknowledged);
        channel.unacknowledged = 0;
        if !channel.queued {
            channel.queued = true;
            self.acks.push(index);
        }
    }

    pub(super) fn next_ack(&mut self, out: &mut [u8; MAX_ACK_LEN]) -> Option<AckTransmit> {
        while let Some(index) = self.acks.0.pop() {
            let channel = &mut self.channels[index];
            let peer = &self.peers[usize::from(channel.setup.peer.0)];
            channel.queued = false;
            let (trigger, more) = channel.take_trigger();
            let reportable = matches!(channel.stage, Stage::Assembling | Stage::Complete);
            let (true, Some(tag)) = (reportable, peer.tag) else {
                continue;
            };
            let header = AckHeader {
                version: peer.setup.version,
                tag,
                channel: channel.setup.id,
                link: trigger.map(|t| t.link),
                retransmission: trigger.is_some_and(|t| t.retransmission),
                cycle: channel.newest,
                trigger: trigger.map(|t| t.sequence),
                received: Some(channel.reception.count()),
            };
            let len = encode_ack(&header, channel.reception.blocks(), out);
            if more {
                channel.queued = true;
                self.acks.push(index);
            }
            return Some(AckTransmit {
                peer: channel.setup.peer,
                channel: index,
                links: channel.setup.links,
                len,
            });
        }
        None
    }
}
