//! The witness: leases the primary role of each group to one node at a time.
//!
//! It keeps nothing on disk. After its own start it grants nobody a role for the longest lease
//! that it may have promised before, but believes who renews: only a node that holds a right
//! renews, and while one does, no other node can.

use crate::setup::SetupError;
use alloc::vec::Vec;
use bumpless_base::{Counter, Counters, Duration, Epoch, Instant, NodeId, Random};
use bumpless_wire::{NO_HOLDER, WitnessKind, WitnessReply, WitnessRequest};
use core::hash::{Hash, Hasher};

/// What a witness is told at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WitnessSetup {
    /// Longest lease that a node may be configured with; longer requests are refused. A node asks
    /// for its lease stretched by the drift that it reckons with, so this is stretched by
    /// `drift_ppm` before it is compared. It grants no role for somewhat more than this after its
    /// start.
    pub max_lease: Duration,
    /// Most that its clock and a node's may differ in rate, parts per million.
    pub drift_ppm: u32,
    /// Most groups of all pairs that it serves.
    pub capacity: usize,
}

impl WitnessSetup {
    /// A node asks for its lease and the drift that it reckons with, in whole microseconds.
    fn longest_request(&self) -> Duration {
        let longest = self.max_lease.stretched(self.drift_ppm);
        Duration::from_micros(longest.as_nanos().div_ceil(1000))
    }
}

impl Default for WitnessSetup {
    /// Leases up to 1 s, 500 ppm, 256 groups.
    fn default() -> Self {
        Self {
            max_lease: Duration::from_secs(1),
            drift_ppm: 500,
            capacity: 256,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Holder {
    node: NodeId,
    session: u64,
}

#[derive(Clone, Copy, Debug, Hash)]
struct Entry {
    pair: u32,
    group: u16,
    /// Who was granted the role last, unless it gave it back.
    holder: Option<Holder>,
    /// The highest epoch that was granted; 0 for none.
    epoch: Epoch,
    /// The promise to `holder` runs until this.
    promised_until: Instant,
    /// When the holder renewed last.
    renewed_at: Instant,
    mark: Mark,
    /// Send time of the holder's latest request that was granted, on its clock.
    asked_at: u64,
}

/// What is known about the state of a candidate that is not the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mark {
    /// The holder has said nothing to this incarnation of the witness.
    Unknown,
    /// It is as fresh as the holder's last output.
    Fresh,
    /// It is old: the holder goes on in simplex, or began without a fresh state.
    Old,
}

impl Entry {
    fn is_promised(&self, now: Instant) -> bool {
        self.holder.is_some() && now < self.promised_until
    }
    fn is_held_by(&self, holder: Holder) -> bool {
        self.holder == Some(holder)
    }

    /// Whether what the asking node has is not known to be the newest. What the holder has is, as far as is known
    /// here; its own mark is about others, and is confirmed to it.
    fn is_old_for(&self, request: &WitnessRequest) -> bool {
        let asking = Holder {
            node: request.node,
            session: request.session,
        };
        let about_others = matches!(
            request.kind,
            WitnessKind::RenewSimplex | WitnessKind::AcquireLone
        );
        self.mark != Mark::Fresh && (about_others || !self.is_held_by(asking))
    }

    /// Takes what a granted request of `asking` says about others' states, unless a later one of
    /// the same holder was taken. `session` is the witness's own: only what was sent to this
    /// incarnation is sure not to be overtaken by what an earlier one was told.
    fn note(&mut self, request: &WitnessRequest, asking: Holder, session: u64) {
        if self.is_held_by(asking) && request.sent_at <= self.asked_at {
            return;
        }
        self.asked_at = request.sent_at;
        let to_us = request.witness_session == session;
        self.mark = match request.kind {
            WitnessKind::RenewSimplex | WitnessKind::AcquireLone => Mark::Old,
            WitnessKind::Renew | WitnessKind::Release | WitnessKind::Yield if to_us => Mark::Fresh,
            _ => self.mark,
        };
    }
}

/// A witness for any number of pairs.
///
/// **Driving contract**: one call of [`handle_request`](Self::handle_request) for each request
/// that arrives, at most one answer each, sent back to where the request came from. It has no
/// timers. It never panics and never allocates after [`new`](Self::new).
#[derive(Clone, Debug)]
pub struct Witness {
    setup: WitnessSetup,
    session: u64,
    quiet_until: Instant,
    entries: Vec<Entry>,
    counters: Counters,
}

/// Everything that decides what this witness answers next; what is counted is left out.
impl Hash for Witness {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            setup,
            session,
            quiet_until,
            entries,
            counters: _,
        } = self;
        (setup, session, quiet_until, entries).hash(state);
    }
}

impl Witness {
    /// Takes memory for the whole table. `session_seed` must be random for each start.
    ///
    /// # Errors
    /// [`SetupError::Timing`] if the longest lease is zero or above 60 s or the drift is above
    /// 100,000 ppm.
    pub fn new(setup: WitnessSetup, session_seed: u64, now: Instant) -> Result<Self, SetupError> {
        if setup.max_lease == Duration::ZERO || setup.max_lease > Duration::from_secs(60) {
            return Err(SetupError::Timing(
                "max_lease must be above 0 and at most 60 s",
            ));
        }
        if setup.drift_ppm > 100_000 {
            return Err(SetupError::Timing("drift must be at most 100,000 ppm"));
        }
        Ok(Self {
            session: crate::session::nonzero(&mut Random::new(session_seed)),
            quiet_until: now + setup.longest_request().stretched(setup.drift_ppm),
            entries: Vec::with_capacity(setup.capacity),
            setup,
            counters: Counters::default(),
        })
    }

    /// Takes a request; the answer, if there is one, goes to the sender.
    pub fn handle_request(
        &mut self,
        request: &WitnessRequest,
        now: Instant,
    ) -> Option<WitnessReply> {
        self.counters.count(Counter::WitnessRequests);
        let asking = Holder {
            node: request.node,
            session: request.session,
        };
        if request.kind.is_lease() && !self.is_lease_allowed(request) {
            self.counters.count(Counter::WitnessLeaseRefused);
        }
        let Some(at) = self.find(request) else {
            return Some(self.reply(request, None, self.observes(request), now));
        };
        let granted = match request.kind {
            WitnessKind::Observe => true,
            WitnessKind::Release => self.give_back(at, request, asking).is_some_and(|entry| {
                entry.holder = None;
                true
            }),
            WitnessKind::Yield => self.give_back(at, request, asking).is_some(),
            WitnessKind::Renew | WitnessKind::RenewSimplex => {
                self.may_renew(at, request, asking, now)
            }
            WitnessKind::Acquire | WitnessKind::AcquireLone => {
                self.may_acquire(at, request, asking, now)
            }
        };
        if granted && request.kind.is_lease() {
            let promise = Duration::from_micros(request.lease_us.into());
            let entry = &mut self.entries[at];
            entry.note(request, asking, self.session);
            entry.holder = Some(asking);
            entry.epoch = entry.epoch.max(request.epoch);
            entry.promised_until = now + promise.stretched(self.setup.drift_ppm);
            entry.renewed_at = now;
        }
        Some(self.reply(request, Some(at), granted, now))
    }

    /// What is counted: requests, those that found the table full, and those for a lease that is refused to everybody.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
    /// The session of this start.
    pub const fn session(&self) -> u64 {
        self.session
    }
    /// Groups in the table.
    pub fn groups(&self) -> usize {
        self.entries.len()
    }

    fn observes(&self, request: &WitnessRequest) -> bool {
        request.kind == WitnessKind::Observe
    }

    /// The group's entry; made for a request that may fill it, if there is room.
    fn find(&mut self, request: &WitnessRequest) -> Option<usize> {
        let known = |e: &Entry| e.pair == request.pair && e.group == request.group;
        let found = self.entries.iter().position(known);
        if found.is_some() || !request.kind.is_lease() || !self.is_lease_allowed(request) {
            return found;
        }
        if self.entries.len() == self.setup.capacity {
            self.counters.count(Counter::WitnessTableFull);
            return None;
        }
        self.entries.push(Entry {
            pair: request.pair,
            group: request.group,
            holder: None,
            epoch: Epoch(0),
            promised_until: Instant::ZERO,
            renewed_at: Instant::ZERO,
            mark: Mark::Unknown,
            asked_at: 0,
        });
        Some(self.entries.len() - 1)
    }

    fn is_lease_allowed(&self, request: &WitnessRequest) -> bool {
        let lease = Duration::from_micros(request.lease_us.into());
        lease > Duration::ZERO && lease <= self.setup.longest_request()
    }

    /// The promise ends at once, so that a switchover need not wait, nor a backup for a primary that has lost its
    /// right. The offered epoch is not put on record: its owner does that.
    /// One that was overtaken by a request for a lease belongs to an earlier tenure of the holder.
    fn give_back(
        &mut self,
        at: usize,
        request: &WitnessRequest,
        asking: Holder,
    ) -> Option<&mut Entry> {
        let entry = &mut self.entries[at];
        if !entry.is_held_by(asking) || request.sent_at <= entry.asked_at {
            return None;
        }
        entry.note(request, asking, self.session);
        entry.promised_until = Instant::ZERO;
        Some(entry)
    }

    /// A right holder extends its right. Also into an entry that has lost its memory, and over
    /// one whose promise has run out, if its epoch is above all on record.
    fn may_renew(&self, at: usize, request: &WitnessRequest, asking: Holder, now: Instant) -> bool {
        let entry = &self.entries[at];
        let same = entry.is_held_by(asking) && request.epoch >= entry.epoch;
        let above = !entry.is_promised(now) && request.epoch > entry.epoch;
        self.is_lease_allowed(request) && (same || above)
    }

    /// A candidate takes the role when nobody's promise is running. Its epoch must be above all on
    /// record, so that no epoch is ever granted twice.
    fn may_acquire(
        &self,
        at: usize,
        request: &WitnessRequest,
        asking: Holder,
        now: Instant,
    ) -> bool {
        let entry = &self.entries[at];
        if !self.is_lease_allowed(request) {
            return false;
        }
        if entry.is_held_by(asking) {
            return request.epoch >= entry.epoch;
        }
        let lone = request.kind == WitnessKind::AcquireLone;
        now >= self.quiet_until
            && !entry.is_promised(now)
            && request.epoch > entry.epoch
            && (lone || entry.mark == Mark::Fresh)
    }

    fn reply(
        &self,
        request: &WitnessRequest,
        at: Option<usize>,
        granted: bool,
        now: Instant,
    ) -> WitnessReply {
        let entry = at.map(|at| &self.entries[at]);
        let holder = entry.and_then(|e| e.holder.filter(|_| e.is_promised(now)));
        let silent = entry.map_or(Duration::MAX, |e| now.since(e.renewed_at));
        let promised = entry.map_or(Instant::ZERO, |e| e.promised_until);
        let free_at = promised.max(self.quiet_until);
        WitnessReply {
            pair: request.pair,
            group: request.group,
            node: request.node,
            kind: request.kind,
            granted,
            old: entry.is_none_or(|e| e.is_old_for(request)),
            holder: holder.map_or(NO_HOLDER, |h| h.node.0),
            epoch: entry.map_or(Epoch(0), |e| e.epoch),
            echo_sent_at: request.sent_at,
            holder_silent_us: micros(silent),
            // Rounded up: asking a microsecond early would be refused.
            retry_after_us: match request.kind {
                // Who asks for no lease wants to know when a takeover could be granted.
                kind if !kind.is_lease() => micros(self.quiet_until.since(now)),
                _ if granted => 0,
                _ => micros(free_at.since(now)).saturating_add(1),
            },
            witness_session: self.session,
            token: request.token,
        }
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
