//! What is known of the links to peers, and who is served otherwise when that changes.

use super::Sender;
use crate::place::ChannelPlace;
use bumpless_base::{Distribution, Duration, Instant, LinkId, LinkSet, PeerId, pacing};

impl Sender {
    /// Says whether `link` reaches `peer`. State packets go on healthy links only, and nothing
    /// waits for the others; if no link of a channel is healthy, all are tried.
    pub fn set_link_healthy(&mut self, peer: PeerId, link: LinkId, healthy: bool, _now: Instant) {
        let known = usize::from(link.0) < self.links.len();
        let at = usize::from(peer.0);
        if let Some(peer) = self.peers.get_mut(at).filter(|_| known)
            && put(&mut peer.healthy, link, healthy)
        {
            self.peer_links_changed(at, (!healthy).then_some(link));
        }
    }

    /// Says whether `link` passes short packets only to `peer`. A channel that has another healthy link, which passes full ones,
    /// goes without it. A state whose links all are narrow is cut into short pieces (T-55), from the next one that is
    /// taken over.
    pub fn set_link_narrow(&mut self, peer: PeerId, link: LinkId, narrow: bool) {
        let known = usize::from(link.0) < self.links.len();
        let at = usize::from(peer.0);
        if let Some(peer) = self.peers.get_mut(at).filter(|_| known)
            && put(&mut peer.narrow, link, narrow)
        {
            self.peer_links_changed(at, narrow.then_some(link));
        }
    }

    /// Whether states of any channel go to `peer` on `link` at present.
    pub fn carries(&self, peer: PeerId, link: LinkId) -> bool {
        let Some(peer) = self.peers.get(usize::from(peer.0)) else {
            return false;
        };
        let ranks = peer.channels.indices();
        let mut channels = ranks.filter_map(|rank| self.channels.get(peer.channel_at(rank)?));
        channels.any(|channel| channel.usable(peer).contains(link))
    }

    /// The lower of both ends' bandwidths of `link` is this, bit/s; 0 = not limited (T-51). It counts for what is sent, and
    /// for states that are published, from here on.
    pub fn set_link_bandwidth(&mut self, link: LinkId, bandwidth: u64) {
        let at = usize::from(link.0);
        let (Some(known), Some(wire)) = (self.links.get_mut(at), self.wires.get_mut(at)) else {
            return;
        };
        known.bandwidth = bandwidth;
        wire.set_bandwidth(bandwidth);
        let links = self
            .peers
            .iter_mut()
            .filter_map(|peer| peer.links.get_mut(at));
        links.for_each(|link| link.round_trip.set_blocking(pacing::blocking(bandwidth)));
    }

    /// Takes a round trip that was measured otherwise, by heartbeats, into account.
    pub fn set_link_round_trip(&mut self, peer: PeerId, link: LinkId, measured: Duration) {
        if let Some(peer) = self.peers.get_mut(usize::from(peer.0))
            && let Some(link) = peer.links.get_mut(usize::from(link.0))
        {
            link.round_trip.sample(measured);
        }
    }

    /// One link to the peer at `at` is there for more of its channels, or one, `failed`, for fewer of them.
    fn peer_links_changed(&mut self, at: usize, failed: Option<LinkId>) {
        for rank in self.peers[at].channels.indices() {
            if let Some(index) = self.peers[at].channel_at(rank) {
                self.links_changed(index, failed);
            }
        }
    }

    /// Whoever relied on a link that has failed is served on the others.
    fn links_changed(&mut self, index: ChannelPlace, failed: Option<LinkId>) {
        let channel = &mut self.channels[index];
        let peer = &self.peers[usize::from(channel.setup.peer.0)];
        let shares = channel.setup.distribution == Distribution::Spread;
        if let Some(failed) = failed
            && shares
            && !channel.usable(peer).contains(failed)
        {
            channel.strand(failed);
        }
        channel.request_report(peer);
        if let Some(mut transfer) = channel.transfer {
            transfer.packet_time = channel.packet_time(&self.links, peer, &transfer);
            channel.transfer = Some(transfer);
        }
        self.settle(index);
    }
}

/// Has `link` in the set, or not; returns whether that is a change.
fn put(set: &mut LinkSet, link: LinkId, is_in: bool) -> bool {
    let changes = set.contains(link) != is_in;
    match is_in {
        true => set.insert(link),
        false => set.remove(link),
    }
    changes
}
