//! When an advertisement is due (iPRP, algorithm 2).

use crate::back_off::back_off;
use crate::setup::Timing;
use bumpless_base::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before the advertisement: an acknowledgement makes it superfluous.
    BackOff,
    /// Until the next cycle.
    Sleep,
}

/// The cycle of one sender: back off, advertise unless somebody has acknowledged meanwhile, sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    phase: Phase,
    /// When the phase ends.
    at: Instant,
    /// When the cycle began.
    began: Instant,
    /// After how long an advertisement that nobody acknowledges is repeated.
    retry: Duration,
}

/// What is to be done when a phase has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next phase has begun.
    Wait,
    /// Advertise.
    Advertise,
}

impl Cycle {
    /// A cycle that begins at `now`. `uniform` is random, for a group's back-off; without it there is none.
    pub(crate) fn new(now: Instant, timing: &Timing, uniform: Option<u64>) -> Self {
        let wait = uniform.map_or(Duration::ZERO, |uniform| back_off(timing.back_off, uniform));
        Self {
            phase: Phase::BackOff,
            at: now + wait,
            began: now,
            retry: timing.retry,
        }
    }

    /// When the next step is due.
    pub(crate) const fn at(&self) -> Instant {
        self.at
    }

    /// Takes the step that is due.
    pub(crate) fn step(&mut self, now: Instant, timing: &Timing, uniform: Option<u64>) -> Step {
        match self.phase {
            Phase::BackOff => {
                self.phase = Phase::Sleep;
                // Two hosts repeat what was lost between them; a group hears of another member's soon enough.
                let wait = match uniform {
                    None => self.retry.min(timing.advertise_every),
                    Some(_) => timing.advertise_every.saturating_sub(now.since(self.began)),
                };
                self.at = now + wait;
                self.retry = (self.retry * 2).min(timing.advertise_every);
                Step::Advertise
            }
            Phase::Sleep => {
                let retry = self.retry;
                *self = Self {
                    retry,
                    ..Self::new(now, timing, uniform)
                };
                Step::Wait
            }
        }
    }

    /// Somebody's advertisement was acknowledged. Whether this makes the one that was due superfluous.
    pub(crate) fn acknowledge(&mut self, now: Instant, timing: &Timing) -> bool {
        let suppressed = self.phase == Phase::BackOff;
        self.phase = Phase::Sleep;
        self.at = (self.began + timing.advertise_every).max(now);
        suppressed
    }

    /// Advertise at once.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.phase = Phase::BackOff;
        self.began = now;
        self.at = now;
    }

    /// A packet came that should have been sealed: its sender has lost the session. Advertise soon, but not more often than
    /// what is repeated.
    pub(crate) fn hasten(&mut self, now: Instant) {
        let at = (self.began + self.retry).max(now);
        if self.phase == Phase::Sleep && at < self.at {
            self.at = at;
        }
    }

    /// Sealed packets come: repeat quickly again when need be.
    pub(crate) const fn calm(&mut self, timing: &Timing) {
        self.retry = timing.retry;
    }
}
