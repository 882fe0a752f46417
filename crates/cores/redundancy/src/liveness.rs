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
    /// Smoothed round trip.
    round_trip: Option<Duration>,
    /// The last round trip, not smoothed, and when it was measured.
    latest: Option<(Duration, Instant)>,
    width: Width,
}

/// Whether packets of full length pass, as far as heartbeats of full length show.
#[derive(Clone, Copy, Debug, Default)]
struct Width {
    /// Latest `sent_at` of a full-length heartbeat heard on this link, the partner's clock; 0 for none.
    heard: u64,
    /// Send time of our latest full-length heartbeat that the partner echoed.
    echoed: Instant,
    /// Full-length heartbeats of ours that were sent since that one while the link was up.
    unanswered: u8,
    /// Heartbeats of any length that were sent on this link since then while it was up.
    sent: u16,
    /// Heartbeats that have come meanwhile and echo one of ours.
    answers: u16,
    /// What was reported last: only short packets pass.
    narrow: bool,
}

impl Width {
    /// So many in a row do not get lost by chance on a link that half of all heartbeats pass.
    const UNANSWERED: u8 = 6;

    fn sent(&mut self, full: bool) {
        self.unanswered = self.unanswered.saturating_add(u8::from(full));
        self.sent = self.sent.saturating_add(1);
    }

    /// Takes a heartbeat; `answers`: it echoes a later one of ours than all before.
    fn hear(&mut self, heartbeat: &HeartbeatHeader, answers: bool, now: Instant) {
        self.answers = self.answers.saturating_add(answers.into());
        if heartbeat.padded {
            self.heard = heartbeat.sent_at;
        }
        let echo = Instant::from_nanos(heartbeat.full_echo);
        if echo <= now && echo > self.echoed {
            *self = Self {
                heard: self.heard,
                echoed: echo,
                narrow: self.narrow,
                ..Self::default()
            };
        }
    }

    /// What is known to be narrow is so until a heartbeat of full length has come through: that short ones are lost, too,
    /// shows nothing of long ones.
    fn is_narrow(&self) -> bool {
        let short_pass = u32::from(self.answers) * 2 >= u32::from(self.sent);
        self.unanswered > Self::UNANSWERED && (self.narrow || short_pass)
    }

    /// Counts anew, as what was sent to a process that has ended is not answered; what is known stays known.
    const fn count_anew(&mut self) {
        self.unanswered = if self.narrow { Self::UNANSWERED + 1 } else { 0 };
        self.sent = 0;
        self.answers = 0;
    }
}

/// Round trip and width are for people and for the transfer, and decide nothing here, so they are left out.
impl Hash for LinkState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            heard_sent_at,
            heard_at,
            echoed,
            up,
            round_trip: _,
            latest: _,
            width: _,
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
        let answers = addressed && heartbeat.echo_sent_at != 0 && echo <= now && echo > self.echoed;
        if answers {
            self.echoed = echo;
            let held = Duration::from_micros(heartbeat.echo_delay.into());
            let sample = now.since(echo).saturating_sub(held);
            self.latest = Some((sample, now));
            self.measure(sample);
        }
        if addressed {
            self.width.hear(heartbeat, answers && self.up, now);
        }
        true
    }

    /// A heartbeat leaves on this link. While that is down, nothing is answered, which shows nothing of what it passes.
    pub(crate) fn sent(&mut self, full: bool) {
        if self.up {
            self.width.sent(full);
        }
    }

    /// What to echo of full-length heartbeats.
    pub(crate) const fn full_echo(&self) -> u64 {
        self.width.heard
    }

    /// Whether short packets alone pass; `Some` if that has changed since the last call. Of a link that is down
    /// nothing is known.
    pub(crate) fn narrow_changed(&mut self) -> Option<bool> {
        if !self.up {
            return None;
        }
        let narrow = self.width.is_narrow();
        (core::mem::replace(&mut self.width.narrow, narrow) != narrow).then_some(narrow)
    }

    /// Whether short packets alone pass.
    pub(crate) const fn is_narrow(&self) -> bool {
        self.width.narrow
    }

    /// The round trip of a link on which the partner answers, and too late for the link to be up.
    pub(crate) fn late(&self, timing: &Timing, now: Instant) -> Option<Duration> {
        let (round_trip, at) = self.latest?;
        let answers = now <= at + timing.peer_timeout;
        (answers && !self.works(timing, now)).then_some(round_trip)
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
        self.latest = None;
        self.width.heard = 0;
        self.width.echoed = Instant::ZERO;
        self.width.count_anew();
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
