//! Which application has which place on this node.

use std::collections::BTreeSet;

use bumpless_config::Config;

use crate::build::{Parts, ROOM};

/// An application's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The application.
    pub name: String,
    /// Position of its group among those of this node, and its own in the group.
    pub group: (usize, usize),
}

/// All places of a node of a pair.
#[derive(Clone, Debug)]
pub struct Places {
    seats: Vec<Option<Seat>>,
    /// Places in each group that nobody has.
    vacant: Vec<Vec<usize>>,
    /// Every channel that was in use since the node started: packets of one may be under way for ever.
    used: BTreeSet<u16>,
}

impl Places {
    /// The applications of `config`, as a node starts with them.
    pub fn new(config: &Config, parts: &Parts) -> Self {
        let count = parts.count();
        let mut seats: Vec<_> = (0..count).map(|at| Some(parts.seat(config, at))).collect();
        seats.resize(count + ROOM, None);
        let vacant = (0..parts.groups_here())
            .map(|group| {
                let members = seats.iter().flatten();
                let taken = members.filter(|seat: &&Seat| seat.group.0 == group).count();
                // The lowest is taken first.
                (taken..taken + ROOM).rev().collect()
            })
            .collect();
        let used = config.applications.iter().map(|app| app.channel.get());
        Self {
            seats,
            vacant,
            used: used.collect(),
        }
    }

    /// The place of the application named `name`.
    pub fn of(&self, name: &str) -> Option<usize> {
        let has = |seat: &Option<Seat>| seat.as_ref().is_some_and(|seat| seat.name == name);
        self.seats.iter().position(has)
    }

    /// Who has each place.
    pub fn seats(&self) -> &[Option<Seat>] {
        &self.seats
    }

    /// Whether a state of an earlier application may still be under way on `channel`.
    pub fn was_used(&self, channel: u16) -> bool {
        self.used.contains(&channel)
    }

    /// Gives the application named `name` a place, and one in the group at position `group`; `None` if
    /// all are taken.
    pub fn take(&mut self, name: &str, group: usize) -> Option<(usize, Seat)> {
        let place = self.seats.iter().position(Option::is_none)?;
        let member = self.vacant.get_mut(group)?.pop()?;
        let seat = Seat {
            name: name.to_owned(),
            group: (group, member),
        };
        self.seats[place] = Some(seat.clone());
        Some((place, seat))
    }

    /// A channel is in use from here on.
    pub fn use_channel(&mut self, channel: u16) {
        self.used.insert(channel);
    }

    /// Nobody has `place` any more.
    pub fn leave(&mut self, place: usize) {
        if let Some(Seat { group, .. }) = self.seats[place].take() {
            self.vacant[group.0].push(group.1);
        }
    }
}
