//! Which application has which place on this node.

use std::collections::BTreeSet;

use bumpless_config::Config;

use crate::build::{MemberSlot, Parts};
use crate::wiring::ROOM;

/// All places of a node of a pair.
#[derive(Clone, Debug)]
pub struct Places {
    slots: Vec<Option<MemberSlot>>,
    /// Places in each group that nobody has.
    vacant: Vec<Vec<usize>>,
    /// Every channel that was in use since the node started: packets of one may be under way for ever.
    used: BTreeSet<u16>,
}

impl Places {
    /// The applications of `config`, as a node starts with them.
    pub fn new(config: &Config, parts: &Parts) -> Self {
        let count = parts.count();
        let mut slots: Vec<_> = (0..count).map(|at| Some(parts.slot(config, at))).collect();
        slots.resize(count + ROOM, None);
        let vacant = (0..parts.groups_here())
            .map(|group| {
                let members = slots.iter().flatten();
                let taken = members
                    .filter(|slot: &&MemberSlot| slot.group.0 == group)
                    .count();
                // The lowest is taken first.
                (taken..taken + ROOM).rev().collect()
            })
            .collect();
        let used = config.applications.iter().map(|app| app.channel.get());
        Self {
            slots,
            vacant,
            used: used.collect(),
        }
    }

    /// The place of the application named `name`.
    pub fn of(&self, name: &str) -> Option<usize> {
        let has = |slot: &Option<MemberSlot>| slot.as_ref().is_some_and(|slot| slot.name == name);
        self.slots.iter().position(has)
    }

    /// Who has each place.
    pub fn slots(&self) -> &[Option<MemberSlot>] {
        &self.slots
    }

    /// Whether a state of an earlier application may still be under way on `channel`.
    pub fn was_used(&self, channel: u16) -> bool {
        self.used.contains(&channel)
    }

    /// Gives the application named `name` a place, and one in the group at position `group`; `None` if
    /// all are taken.
    pub fn take(&mut self, name: &str, group: usize) -> Option<(usize, MemberSlot)> {
        let place = self.slots.iter().position(Option::is_none)?;
        let member = self.vacant.get_mut(group)?.pop()?;
        let slot = MemberSlot {
            name: name.to_owned(),
            group: (group, member),
        };
        self.slots[place] = Some(slot.clone());
        Some((place, slot))
    }

    /// A channel is in use from here on.
    pub fn use_channel(&mut self, channel: u16) {
        self.used.insert(channel);
    }

    /// Nobody has `place` any more.
    pub fn leave(&mut self, place: usize) {
        if let Some(MemberSlot { group, .. }) = self.slots[place].take() {
            self.vacant[group.0].push(group.1);
        }
    }
}
