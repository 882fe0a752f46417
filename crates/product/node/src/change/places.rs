//! Which application has which place on this node.

use std::collections::BTreeSet;
use std::iter;

use bumpless_base::{Table, TableIndex};
use bumpless_config::Config;
use bumpless_transfer::ChannelPlace;

use crate::build::{MemberSlot, Parts};
use crate::membership::{ApplicationNumber, GroupPlace, MemberPlace, Membership};
use crate::wiring::ROOM;

/// Who has each place.
pub type Slots = Table<ChannelPlace, Option<MemberSlot>>;

/// All places of a node of a pair.
#[derive(Clone, Debug)]
pub struct Places {
    slots: Slots,
    /// Places in each group that nobody has.
    vacant: Table<GroupPlace, Vec<MemberPlace>>,
    /// Every channel that was in use since the node started: packets of one may be under way for ever.
    used: BTreeSet<u16>,
}

impl Places {
    /// The applications of `config`, as a node starts with them.
    pub fn new(config: &Config, parts: &Parts) -> Self {
        let count = parts.count();
        let taken = (0..count).map(|at| Some(parts.slot(config, ChannelPlace(at))));
        let slots: Slots = taken.chain(iter::repeat_n(None, ROOM)).collect();
        let vacant = parts
            .groups_here()
            .map(|group| {
                let members = slots.iter().flatten();
                let taken = members
                    .filter(|slot: &&MemberSlot| slot.membership.group == group)
                    .count();
                // The lowest is taken first.
                (taken..taken + ROOM).rev().map(MemberPlace).collect()
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
    pub fn of(&self, name: &str) -> Option<ChannelPlace> {
        let has = |slot: &Option<MemberSlot>| slot.as_ref().is_some_and(|slot| slot.name == name);
        self.slots.iter().position(has).map(ChannelPlace)
    }

    /// Who has each place.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Whether a state of an earlier application may still be under way on `channel`.
    pub fn was_used(&self, channel: u16) -> bool {
        self.used.contains(&channel)
    }

    /// Gives the application named `name` a place, and one in `group`; `None` if all are taken.
    pub fn take(&mut self, name: &str, group: GroupPlace) -> Option<(ChannelPlace, MemberSlot)> {
        let place = ChannelPlace(self.slots.iter().position(Option::is_none)?);
        let member = self.vacant.get_mut(group)?.pop()?;
        let slot = MemberSlot {
            name: name.to_owned(),
            // Only a pair changes, of which each node runs all applications.
            number: ApplicationNumber::from_index(place.0),
            membership: Membership { group, member },
        };
        self.slots[place] = Some(slot.clone());
        Some((place, slot))
    }

    /// A channel is in use from here on.
    pub fn use_channel(&mut self, channel: u16) {
        self.used.insert(channel);
    }

    /// Nobody has `place` any more.
    pub fn leave(&mut self, place: ChannelPlace) {
        if let Some(MemberSlot { membership, .. }) = self.slots[place].take() {
            self.vacant[membership.group].push(membership.member);
        }
    }
}
