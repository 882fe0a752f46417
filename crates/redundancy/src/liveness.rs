//! Which links to a partner work, in both directions, and how long a round trip takes.

use crate::setup::Timing;
use bumpless_base::{Duration, Instant};
use bumpless_wire::HeartbeatHeader;
use core::hash::{Hash, Hasher};

/// What is known of one link to one partner.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkState {
    /// Latest `sent_at` heard on this link, the partner's clock; 0 for none.
    heard_sent_at: u64,
    heard_at: Instant,
    /// Latest of our own send times that the partner echoed on this link.
    echoed: Instant,
    up: bool,
    round_trip: Option<Duration>,
}

/// The round trip is for people and decides nothing, so it is left out.
impl Hash for LinkState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            heard_sent_at,
            heard_at,
            echoed,
            up,
            round_trip: _,
        } = self;
        (heard_sent_at, heard_at, echoed, up).hash(state);
    }
}

impl LinkState {
    /// Takes a heartbeat of the adopted session; returns whether it is newer than all before on
    /// this link. A copy or a straggler is not a sign of life.
    pub(crate) fn hear(
        &mut self,
        heartbeat: &HeartbeatHeader,
        addressed: bool,
        now: Instant,
    ) -> bool {
        if heartbeat.sent_at <= self.heard_sent_at {
            return false;
        }
        self.heard_sent_at = heartbeat.sent_at;
        self.heard_at = now;
        let echo = Instant::from_nanos(heartbeat.echo_sent_at);
        // An echo from the future is a lie or of another incarnation's clock.
        if addressed && heartbeat.echo_sent_at != 0 && echo <= now && echo > self.echoed {
            self.echoed = echo;
            let held = Duration::from_micros(heartbeat.echo_delay.into());
            self.measure(now.since(echo).saturating_sub(held));
        }
        true
    }

    /// Smooths by an eighth, as RFC 6298 does.
    fn measure(&mut self, sample: Duration) {
        self.round_trip = Some(match self.round_trip {
            None => sample,
            Some(smoothed) => (smoothed * 7 + sample) / 8,
        });
    }

    /// When the link is to be called down if nothing more is heard.
    pub(crate) fn deadline(&self, timing: &Timing) -> Instant {
        let heard = self.heard_at + timing.peer_timeout;
        // One lease is the longest round trip with which the pair works at all.
        heard.min(self.echoed + timing.peer_timeout + timing.lease)
    }

    /// Whether both directions work at `now`.
    pub(crate) fn works(&self, timing: &Timing, now: Instant) -> bool {
        self.heard_sent_at != 0 && self.echoed != Instant::ZERO && now <= self.deadline(timing)
    }

    /// Forgets what belongs to a session of the partner that has ended. The round trip stays.
    pub(crate) fn forget_session(&mut self) {
        self.heard_sent_at = 0;
        self.echoed = Instant::ZERO;
    }

    pub(crate) const fn is_up(&self) -> bool {
        self.up
    }
    pub(crate) const fn set_up(&mut self, up: bool) {
        self.up = up;
    }
    pub(crate) const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }
    /// What to echo on this link: the partner's send time (0 for none) and when it was heard.
    pub(crate) const fn echo(&self) -> (u64, Instant) {
        (self.heard_sent_at, self.heard_at)
    }
}

#[cfg(test)]
mod tests;
