//! What must hold, judged in true time from outside.

use super::{End, GROUP, PEER, World};
use bumpless_base::Epoch;
use bumpless_redundancy::RoleCause;
use bumpless_wire::{GroupFlags, Packet, Role, parse};
use std::collections::{BTreeMap, BTreeSet};

/// What has been seen so far.
#[derive(Default)]
pub(super) struct Account {
    /// Whether the setup excludes two writers at all.
    pub judged: bool,
    /// The highest epoch that was written in, since when, and who wrote in which.
    written: Epoch,
    written_at: u64,
    writers: BTreeMap<u32, End>,
    /// A node or a witness has lost its memory since `written` was first written in.
    restarted: bool,
    pub primary_since: [u64; 2],
    /// Tags of transfer of each node's present start: the one in use, and all.
    tags: [(Option<u32>, BTreeSet<u32>); 2],
}

impl Account {
    pub fn memory_lost(&mut self, node: Option<End>) {
        self.restarted = true;
        if let Some(node) = node {
            self.tags[node] = Default::default();
        }
    }

    pub const fn highest_written(&self) -> Epoch {
        self.written
    }
}

impl World {
    /// The epoch in which the node may write at present.
    pub(super) fn writes(&self, node: End) -> Option<Epoch> {
        let permit = self.nodes[node].core.as_ref()?.output_permit(GROUP)?;
        let now = self.nodes[node].clock.local(self.now);
        (now < permit.until).then_some(permit.epoch)
    }

    pub(super) fn check(&mut self) {
        let writing = [self.writes(0), self.writes(1)];
        if let [Some(a), Some(b)] = writing {
            assert!(
                !self.account.judged,
                "one writer: epochs {a} and {b} at once"
            );
        }
        for (node, epoch) in writing.into_iter().enumerate() {
            if let Some(epoch) = epoch {
                self.check_epoch(node, epoch);
            }
            self.check_tag(node);
        }
    }

    /// An epoch belongs to one node, and who writes later writes in a higher one.
    fn check_epoch(&mut self, node: End, epoch: Epoch) {
        let forgotten = self.was_forgotten(node);
        let account = &mut self.account;
        let owner = *account.writers.entry(epoch.0).or_insert(node);
        assert_eq!(owner, node, "one writer: both nodes wrote in epoch {epoch}");
        if epoch > account.written || forgotten && epoch < account.written {
            account.restarted &= epoch < account.written;
            (account.written, account.written_at) = (epoch, self.now);
        }
        let grown = epoch >= account.written || !account.judged;
        assert!(
            grown,
            "epochs grow: node {node} in {epoch} after {}",
            account.written
        );
    }

    /// Who starts without any memory may not know what is remembered nowhere it can look.
    fn was_forgotten(&self, node: End) -> bool {
        let now = self.nodes[node].clock.local(self.now);
        let core = self.nodes[node].core.as_ref();
        let cause = core.and_then(|core| core.status(GROUP, now)?.cause);
        let fresh = matches!(cause, Some(RoleCause::Start | RoleCause::LoneStart));
        let since = self.account.primary_since[node];
        self.account.restarted && fresh && since >= self.account.written_at
    }

    /// A tag that was replaced never returns: what was sent under it may still be on its way.
    fn check_tag(&mut self, node: End) {
        let Some(core) = &self.nodes[node].core else {
            return;
        };
        let tag = core.transfer_tag(PEER);
        let (present, all) = &mut self.account.tags[node];
        if *present != tag {
            *present = tag;
            let new = tag.is_none_or(|tag| all.insert(tag));
            assert!(new, "forward: tag {tag:?} returns at node {node}");
        }
    }

    /// A primary promises nothing, nor does a node that may be bound by what it forgot.
    pub(super) fn check_promise(&self, node: End, bytes: &[u8]) {
        let Ok(Packet::Heartbeat(heartbeat)) = parse(bytes) else {
            panic!("a heartbeat that nobody can read: {bytes:02x?}");
        };
        let young = self.now < self.nodes[node].started + self.timing.lease.as_nanos();
        for entry in heartbeat.groups() {
            let granting = entry.flags.contains(GroupFlags::GRANTING);
            let wrong = granting && (young || entry.role == Role::Primary);
            assert!(
                !wrong,
                "promises: node {node}, {:?}, young: {young}",
                entry.role
            );
        }
    }

    /// Ends all faults: within a second one node writes and the other is a backup, and so it stays.
    pub(super) fn heal(&mut self) {
        for at in 0..self.references.len() {
            if self.references[at].witness.is_none() {
                self.start_witness(at);
            }
        }
        for node in 0..2 {
            self.nodes[node].obliging = true;
            if self.nodes[node].core.is_none() {
                self.start(node);
            }
        }
        for _ in 0..50 {
            self.live(20, super::MS, 0);
            if self.is_healed() {
                break;
            }
        }
        assert!(self.is_healed(), "heals: {:?}", self.roles());
    }

    fn roles(&self) -> [Option<Role>; 2] {
        [0, 1].map(|node: End| {
            self.nodes[node]
                .core
                .as_ref()
                .and_then(|core| core.role(GROUP))
        })
    }

    fn is_healed(&self) -> bool {
        let writing = [self.writes(0), self.writes(1)];
        let backup = self.roles().contains(&Some(Role::Backup));
        backup && writing.iter().flatten().count() == 1
    }
}
