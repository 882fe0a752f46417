//! One group on this node: its gate, its channels, and an ordered hand-over in progress.

use std::sync::Arc;

use bumpless_base::{Duration, Epoch, IndexedHeap, Instant, PeerId};
use bumpless_redundancy::{GroupId, Redundancy};
use bumpless_wire::Role;

use crate::shared::{ApplicationPort, GroupGate};
use crate::status::GroupSnapshot;

/// How long an application may be unable to run before the backup is asked to take over, and how
/// long to wait between two such requests.
const UNFIT_PATIENCE: Duration = Duration::from_millis(500);
const RELIEF_INTERVAL: Duration = Duration::from_secs(2);

/// A group of which this node is a candidate.
pub struct GroupRuntime {
    /// Its identity in the redundancy core: the position in the configuration.
    pub id: GroupId,
    /// Where executors see role and right.
    pub gate: Arc<GroupGate>,
    /// The partner of this group.
    pub peer: PeerId,
    /// The applications' ports, in the order of `channels`.
    pub ports: Vec<Arc<ApplicationPort>>,
    /// What status shows.
    pub snapshot: GroupSnapshot,
    handing_over: bool,
    /// Since when some application cannot run here, and when that was last acted upon.
    unfit_since: Option<Instant>,
    relieved_at: Option<Instant>,
    /// Until when the newest state of each application may be used.
    freshness: IndexedHeap<Instant>,
    epoch_seen: Epoch,
}

impl GroupRuntime {
    /// The group `id` with the applications behind `ports`.
    pub fn new(
        id: GroupId,
        peer: PeerId,
        gate: Arc<GroupGate>,
        ports: Vec<Arc<ApplicationPort>>,
    ) -> Self {
        let freshness = IndexedHeap::new(ports.len());
        Self {
            id,
            gate,
            peer,
            ports,
            snapshot: GroupSnapshot {
                member: true,
                ..GroupSnapshot::default()
            },
            handing_over: false,
            unfit_since: None,
            relieved_at: None,
            freshness,
            epoch_seen: Epoch::default(),
        }
    }

    /// Notes that the newest state of the group's application `member` is good until `until`, and
    /// tells the core until when this node could take over.
    pub fn note_fresh(
        &mut self,
        member: usize,
        until: Instant,
        redundancy: &mut Redundancy,
        now: Instant,
    ) {
        self.freshness.set(member, until);
        self.tell_synced(redundancy, now);
    }

    /// A node whose applications cannot reach their field devices is not ready to take over.
    fn tell_synced(&self, redundancy: &mut Redundancy, now: Instant) {
        let whole = self.freshness.len() == self.ports.len() && self.unfit_since.is_none();
        let until = self
            .freshness
            .first()
            .map(|(until, _)| until)
            .filter(|_| whole);
        redundancy.set_synced_until(self.id, until, now);
    }

    /// Follows a change of role.
    pub fn role_changed(&mut self, to: Role) {
        self.handing_over = false;
        self.gate.set_role(to);
        self.gate.set_paused(false);
        self.wake();
    }

    /// Starts an ordered hand-over: executors finish their cycle and pause.
    pub fn begin_hand_over(&mut self) {
        self.handing_over = true;
        self.gate.set_paused(true);
        self.wake();
    }

    /// The hand-over was abandoned: executors go on.
    pub fn abort_hand_over(&mut self) {
        self.handing_over = false;
        self.gate.set_paused(false);
        self.wake();
    }

    /// Tells the core once every executor has paused and every last state is at the backup.
    pub fn drive_hand_over(&mut self, redundancy: &mut Redundancy, now: Instant) {
        let ready = self.handing_over
            && self
                .ports
                .iter()
                .all(|port| !port.in_cycle() && port.newest_is_safe());
        if ready {
            self.handing_over = false;
            redundancy.hand_over_ready(self.id, now);
        }
    }

    /// Passes on what the executors have learned since the last call: epochs that devices hold, and
    /// whether the applications can run here.
    pub fn collect(&mut self, redundancy: &mut Redundancy, now: Instant) {
        let seen = self
            .ports
            .iter()
            .map(|port| port.epoch_seen())
            .max()
            .unwrap_or_default();
        if seen > self.epoch_seen {
            self.epoch_seen = seen;
            redundancy.observe_epoch(self.id, seen, now);
        }
        let fit = self.ports.iter().all(|port| port.is_fit());
        if fit == self.unfit_since.is_some() {
            self.unfit_since = (!fit).then_some(now);
            self.tell_synced(redundancy, now);
        }
        self.seek_relief(redundancy, now);
    }

    /// A primary that cannot run its applications asks a backup that can to take over. Refused if
    /// the backup is no better off.
    fn seek_relief(&mut self, redundancy: &mut Redundancy, now: Instant) {
        let Some(since) = self.unfit_since.filter(|_| self.gate.is_primary()) else {
            return;
        };
        let waited = self
            .relieved_at
            .is_none_or(|at| now.since(at) > RELIEF_INTERVAL);
        if now.since(since) > UNFIT_PATIENCE && waited {
            self.relieved_at = Some(now);
            let _ = redundancy.command_switchover(self.id, now);
        }
    }

    /// Publishes the right to write, whether a backup is there to acknowledge, and status.
    pub fn publish(&mut self, redundancy: &Redundancy, now: Instant) {
        let Some(status) = redundancy.status(self.id, now) else {
            return;
        };
        let permit = redundancy
            .output_permit(self.id)
            .map(|permit| (permit.epoch, permit.until));
        let expected = status.partner_reachable && redundancy.transfer_tag(self.peer).is_some();
        let changed = self.gate.permit().is_some() != permit.is_some()
            || self.gate.backup_expected() != expected;
        self.gate.set_permit(permit);
        self.gate.set_backup_expected(expected);
        if changed {
            self.wake();
        }
        let snapshot = &mut self.snapshot;
        snapshot.role = status.role;
        snapshot.epoch = status.epoch;
        snapshot.permit_until = permit.map(|(_, until)| until);
        snapshot.synced = status.synced;
        snapshot.partner_heard = status.partner_reachable;
        snapshot.reference = status.reference.map(|reference| reference.0);
    }

    /// Whether an ordered hand-over is still to come to its end.
    pub fn is_handing_over(&self) -> bool {
        self.gate.is_primary() && self.gate.paused()
    }

    /// Takes back the right to write for good: the node ends.
    pub fn release(&self) {
        self.gate.set_permit(None);
        self.gate.set_role(Role::Stopped);
        self.wake();
    }

    fn wake(&self) {
        self.ports.iter().for_each(|port| port.wake());
    }
}
