//! Which packets are lost.
//!
//! A packet is lost when an acknowledgement reports it missing and it is lost on every usable link
//! on which it was sent. On a link it is lost when something that left there later has arrived,
//! because a link keeps order, or when its answer is overdue. That one link is slower than another
//! is therefore no loss. Time alone never makes a packet lost: it may have come and filled a gap
//! without a word, so when only time was missing, the receiver is asked.

use super::channel::Channel;
use super::peer::Peer;
use bumpless_base::{Instant, LinkId, LinkSet};
use bumpless_wire::{Ack, MAX_ACK_BLOCKS};

enum Verdict {
    /// Send it again.
    Lost,
    /// It may be under way until then.
    UnderWay(Instant),
    /// It is going to be sent anyway.
    Pending,
}

impl Channel {
    fn judge(&self, sequence: u32, usable: LinkSet, peer: &Peer, now: Instant) -> Verdict {
        if self.lost.contains(sequence as usize) {
            return Verdict::Pending;
        }
        let mut sent = false;
        let mut until = now;
        for path in self.paths.iter().filter(|l| usable.contains(l.link)) {
            let Some(sending) = path.sending(sequence) else {
                continue;
            };
            sent = true;
            if !path.overtaken(sending)
                && let Some(round_trip) = peer.round_trip(path.link)
            {
                until = until.max(round_trip.overdue_at(path.left_at(sending)));
            }
        }
        match (sent, until > now) {
            (false, _) => Verdict::Pending,
            (true, true) => Verdict::UnderWay(until),
            (true, false) => Verdict::Lost,
        }
    }

    /// Judges the packets that an acknowledgement reports missing. Lost ones are to be sent again
    /// on all links: a link that has not sent them yet may come to them only much later.
    pub(super) fn judge_gaps(&mut self, ack: &Ack<'_>, peer: &Peer, now: Instant) {
        let Some(transfer) = self.transfer else {
            return;
        };
        let highest = ack.blocks().last().map_or(0, |(_, high)| high);
        let all_reported = ack.block_count() < MAX_ACK_BLOCKS;
        // Beyond the highest block, packets are under way as a rule. Something sent again may show
        // otherwise, and when everything has been sent no later packet will.
        let beyond = ack.retransmission || transfer.started == transfer.packets;
        let end = if all_reported && beyond {
            transfer.started
        } else {
            highest
        };
        let usable = self.usable(peer);
        let mut ask_at = None;
        let mut from = transfer.whole_below as usize;
        while let Some(at) = self.acknowledged.next_absent(from, end as usize) {
            from = at + 1;
            match self.judge(at as u32, usable, peer, now) {
                Verdict::Lost => self.put_back(at as u32),
                Verdict::UnderWay(until) if (at as u32) < highest => {
                    ask_at = Some(ask_at.map_or(until, |at: Instant| at.min(until)));
                }
                Verdict::UnderWay(_) | Verdict::Pending => {}
            }
        }
        if let Some(transfer) = &mut self.transfer {
            transfer.ask_at = ask_at;
        }
    }

    /// Puts back the packets that are not acknowledged and were last sent on a link that has failed.
    pub(super) fn strand(&mut self, failed: LinkId) {
        let (Some(transfer), Some(failed)) = (self.transfer, self.path_of(failed)) else {
            return;
        };
        let (mut from, end) = (transfer.whole_below as usize, transfer.started as usize);
        while let Some(at) = self.acknowledged.next_absent(from, end) {
            from = at + 1;
            let left = |path: &super::sent_record::ChannelPath| {
                path.sending(at as u32).map(|sending| path.left_at(sending))
            };
            let last = self.paths.iter().filter_map(left).max();
            if last.is_some() && left(&self.paths[failed]) == last {
                self.put_back(at as u32);
            }
        }
    }
}
