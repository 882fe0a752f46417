//! What executors and data plane share.

use std::sync::Arc;

use bumpless_atomic_box::DirtySet;
use bumpless_base::{NodeId, Table};
use bumpless_config::Config;
use bumpless_mailbox::{ApplicationMailbox, PublishedPermit};
use bumpless_redundancy::GroupId;
use bumpless_transfer::ChannelPlace;

use crate::counter_board::CounterBoard;
use crate::data_plane::group::GroupRuntime;
use crate::data_plane::members::{Counts, Member, MemberTimes};
use crate::data_plane::{ChannelRuntime, Channels};
use crate::snapshot::ApplicationSnapshot;
use crate::wiring::{ROOM, Wiring};

/// What one application's executor shares with the data plane.
pub struct Shared {
    /// The application's number: its position in the configuration with which the node started, or the place
    /// to which it came.
    pub index: usize,
    /// Role and right to write.
    pub gate: Arc<PublishedPermit>,
    /// Outcomes of states, pauses, what the executor has learned.
    pub mailbox: Arc<ApplicationMailbox>,
    /// What the executor counts.
    pub board: Arc<CounterBoard>,
}

/// An application's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSlot {
    /// The application.
    pub name: String,
    /// Position of its group among those of this node, and its own in the group.
    pub group: (usize, usize),
}

/// What executors and data plane share, by position in the wiring.
#[derive(Clone)]
pub struct Parts {
    wiring: Wiring,
    gates: Vec<Arc<PublishedPermit>>,
    /// By group: which applications have something to say.
    dirty: Vec<Arc<DirtySet>>,
    mailboxes: Table<ChannelPlace, Arc<ApplicationMailbox>>,
    boards: Table<ChannelPlace, Arc<CounterBoard>>,
    /// Position of each application's group in `gates`, and its own in that group.
    places: Table<ChannelPlace, (usize, usize)>,
}

impl Parts {
    /// Everything that the applications of `wiring` share with the data plane.
    pub fn new(config: &Config, wiring: &Wiring) -> Self {
        let mut members = vec![0; wiring.groups.len()];
        let places: Table<_, _> = wiring
            .applications
            .iter()
            .map(|&app| {
                let group = config.applications[app].group;
                let at = wiring
                    .groups
                    .iter()
                    .position(|&g| g == group)
                    .unwrap_or_default();
                members[at] += 1;
                (at, members[at] - 1)
            })
            .collect();
        let dirty = members
            .iter()
            .map(|&count| Arc::new(DirtySet::new(count + ROOM)));
        let dirty: Vec<_> = dirty.collect();
        let mailbox = |&(group, member): &(usize, usize)| {
            Arc::new(ApplicationMailbox::marking(
                Arc::clone(&dirty[group]),
                member,
            ))
        };
        Self {
            wiring: wiring.clone(),
            gates: wiring.groups.iter().map(|_| Arc::default()).collect(),
            mailboxes: places.iter().map(mailbox).collect(),
            dirty,
            boards: wiring.applications.iter().map(|_| Arc::default()).collect(),
            places,
        }
    }

    /// What the application at the place `at` shares with the data plane.
    pub fn shared(&self, at: ChannelPlace) -> Shared {
        Shared {
            index: self.wiring.applications[at],
            gate: Arc::clone(&self.gates[self.places[at].0]),
            mailbox: Arc::clone(&self.mailboxes[at]),
            board: Arc::clone(&self.boards[at]),
        }
    }

    pub(super) fn groups(&self, config: &Config) -> Vec<GroupRuntime> {
        let groups = self.wiring.groups.iter().enumerate();
        groups
            .filter_map(|(at, &group)| {
                let peer = self.wiring.partner_in(config, group)?;
                let places = self.places.indices();
                let members: Vec<_> = places
                    .filter(|&place| self.places[place].0 == at)
                    .map(|place| {
                        let application = self.wiring.applications[place];
                        Member {
                            mailbox: Arc::clone(&self.mailboxes[place]),
                            times: (&config.applications[application]).into(),
                            counts: Counts::Yes,
                        }
                    })
                    .collect();
                let places = members.len() + ROOM;
                Some(GroupRuntime::new(
                    GroupId(group as u16),
                    peer,
                    Arc::clone(&self.gates[at]),
                    Arc::clone(&self.dirty[at]),
                    (members, places),
                ))
            })
            .collect()
    }

    pub(super) fn channels(&self) -> Channels {
        let taken = self.places.indices().map(|place| {
            let of = (self.wiring.applications[place] as u16, self.places[place]);
            Some(channel(of, &self.mailboxes[place], &self.boards[place]))
        });
        let vacant = std::iter::repeat_with(|| None).take(ROOM);
        taken.chain(vacant).collect()
    }

    /// What the application number `application` shares with the data plane when it comes to the place
    /// `member` of the group at position `group`, and what the data plane gets.
    pub fn newcomer(
        &self,
        application: u16,
        (group, member): (usize, usize),
        times: MemberTimes,
    ) -> (Shared, ChannelRuntime, Member) {
        let mailbox = ApplicationMailbox::marking(Arc::clone(&self.dirty[group]), member);
        let shared = Shared {
            index: application.into(),
            gate: Arc::clone(&self.gates[group]),
            mailbox: Arc::new(mailbox),
            board: Arc::default(),
        };
        let runtime = channel(
            (application, (group, member)),
            &shared.mailbox,
            &shared.board,
        );
        let member = Member {
            mailbox: Arc::clone(&shared.mailbox),
            times,
            counts: Counts::OnceThere,
        };
        (shared, runtime, member)
    }

    /// The position of the configuration's group `group` among those of this node.
    pub fn group(&self, group: usize) -> Option<usize> {
        self.wiring.groups.iter().position(|&g| g == group)
    }

    /// Whether this node is primary of the group at position `group`, at this moment.
    pub fn is_primary(&self, group: usize) -> bool {
        self.gates.get(group).is_some_and(|gate| gate.is_primary())
    }

    /// How many groups this node has.
    pub fn groups_here(&self) -> usize {
        self.gates.len()
    }

    /// This node.
    pub fn node(&self) -> NodeId {
        self.wiring.node
    }

    /// Who has the place `at` from the start.
    pub fn slot(&self, config: &Config, at: ChannelPlace) -> MemberSlot {
        MemberSlot {
            name: config.applications[self.wiring.applications[at]]
                .name
                .clone(),
            group: self.places[at],
        }
    }

    /// How many applications the node has at the start.
    pub fn count(&self) -> usize {
        self.places.len()
    }
}

fn channel(
    (application, group): (u16, (usize, usize)),
    mailbox: &Arc<ApplicationMailbox>,
    board: &Arc<CounterBoard>,
) -> ChannelRuntime {
    ChannelRuntime {
        application,
        group,
        mailbox: Arc::clone(mailbox),
        board: Arc::clone(board),
        snapshot: ApplicationSnapshot::default(),
    }
}
