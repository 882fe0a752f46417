//! Which state is sent next: the one that was published last (T-3), or the oldest that is kept (T-54).

use bumpless_base::{Duration, Instant};

use super::super::State;
use super::Sending;

impl Sending {
    /// States whose transfer has not begun, oldest first.
    pub(super) fn unbegun(&self) -> impl Iterator<Item = &State> {
        let begun = self.last_begun;
        self.states.iter().filter(move |it| Some(it.ticket) > begun)
    }

    /// What is kept and may have been replaced or given up was, if a later state begins: each says another expiry.
    pub(super) fn skip_replaced(&mut self, expiry: Duration, now: Instant) {
        while let Some(state) = self.waiting().filter(|_| self.terms.keeps)
            && self.doubted.contains(&state.ticket)
            && self.stamp(state.at + self.terms.expiry, now) != expiry
        {
            self.last_begun = Some(state.ticket);
        }
        let begun = self.last_begun;
        self.doubted.retain(|&ticket| Some(ticket) > begun);
    }

    /// The state that is sent next, if its transfer has not begun: the one that was published last, or the oldest that is kept.
    pub(super) fn waiting(&self) -> Option<State> {
        if self.terms.keeps {
            return self.unbegun().next().copied();
        }
        let newest = self.states.back()?;
        (Some(newest.ticket) > self.last_begun).then_some(*newest)
    }
}
