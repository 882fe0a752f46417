//! A partner with another configuration.

use super::Partner;
use crate::event::{Event, InForce, Outbox};
use crate::role::Conflict;
use crate::setup::Timing;
use bumpless_base::{Counter, Duration, Instant};
use bumpless_wire::{GroupEntry, Heartbeat, Role};

impl Partner {
    /// Takes what a process with another configuration says.
    pub(super) fn hear_other_configuration(
        &mut self,
        heartbeat: &Heartbeat<'_>,
        (timing, established): (&Timing, bool),
        now: Instant,
        out: &mut Outbox,
    ) {
        // A straggler from before a change says nothing about the present.
        if heartbeat.session == self.session.adopted() && heartbeat.sent_at <= self.latest {
            out.count(Counter::DiscardDuplicate);
        } else {
            self.hear_conflict(heartbeat, (timing, established), now, out);
        }
    }

    /// A differing configuration counts only from who proves to be there at present; a stray or
    /// replayed heartbeat must not stop a controller. `established`: this node has a role.
    #[cold]
    fn hear_conflict(
        &mut self,
        heartbeat: &Heartbeat<'_>,
        (timing, established): (&Timing, bool),
        now: Instant,
        out: &mut Outbox,
    ) {
        self.session.hear_challenge(heartbeat);
        if !self.session.is_answered(heartbeat) {
            out.count(Counter::DiscardWrongSession);
            return;
        }
        let has_role = |entry: GroupEntry| matches!(entry.role, Role::Backup | Role::Primary);
        let theirs = heartbeat.groups().any(has_role);
        if self.conflict.is_none() {
            let in_force = match (established, theirs) {
                (true, false) => InForce::Ours,
                (false, true) => InForce::Theirs,
                _ => InForce::Neither,
            };
            let peer = self.peer;
            out.event(Event::ConfigurationDiffers { peer, in_force });
        }
        // Its own process still counts as gone: what it says is not of this pair.
        self.configurations = None;
        let until = match theirs && !established {
            // Only a restart of one of the two ends it: a silent partner may still be there.
            true => Instant::FAR_FUTURE,
            false => now + conflict_hold(timing),
        };
        let conflict = Conflict {
            established: theirs,
        };
        self.conflict = Some((until, conflict));
    }
}

/// For how long a differing configuration or a duplicate name bars this node after it was heard.
pub(crate) fn conflict_hold(timing: &Timing) -> Duration {
    timing.start_wait.max(Duration::from_secs(1))
}
