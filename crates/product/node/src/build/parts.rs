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
use crate::data_plane::{ChannelRuntime, Channels, Groups};
use crate::membership::{ApplicationNumber, GroupPlace, MemberPlace, Membership};
use crate::snapshot::ApplicationSnapshot;
use crate::wiring::{ROOM, Wiring};

/// What one application's executor shares with the data plane.
pub struct Shared {
    /// The application.
    pub application: ApplicationNumber,
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
    /// Its number.
    pub number: ApplicationNumber,
    /// Its group, and its place there.
    pub membership: Membership,
}

/// What executors and data plane share, by position in the wiring.
#[derive(Clone)]
pub struct Parts {
    wiring: Wiring,
    gates: Table<GroupPlace, Arc<PublishedPermit>>,
    /// Which applications have something to say.
    dirty: Table<GroupPlace, Arc<DirtySet>>,
    mailboxes: Table<ChannelPlace, Arc<ApplicationMailbox>>,
    boards: Table<ChannelPlace, Arc<CounterBoard>>,
    places: Table<ChannelPlace, Membership>,
}

impl Parts {
    /// Everything that the applications of `wiring` share with the data plane.
    pub fn new(config: &Config, wiring: &Wiring) -> Self {
        let mut members: Table<_, _> = wiring.groups.iter().map(|_| 0).collect();
        let places: Table<_, _> = wiring
            .applications
            .iter()
            .map(|&app| {
                let group = config.applications[app].group;
                let group = wiring.group(group).unwrap_or(GroupPlace(0));
                members[group] += 1;
                Membership {
                    group,
                    member: MemberPlace(members[group] - 1),
                }
            })
            .collect();
        let dirty = members
            .iter()
            .map(|&count| Arc::new(DirtySet::new(count + ROOM)));
        let dirty: Table<_, _> = dirty.collect();
        let mailbox = |at: &Membership| Arc::new(marking(&dirty, *at));
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
            application: self.wiring.number(at),
            gate: Arc::clone(&self.gates[self.places[at].group]),
            mailbox: Arc::clone(&self.mailboxes[at]),
            board: Arc::clone(&self.boards[at]),
        }
    }

    pub(super) fn groups(&self, config: &Config) -> Groups {
        let groups = self.wiring.groups.indices();
        groups
            .filter_map(|at| {
                let group = self.wiring.groups[at];
                let peer = self.wiring.partner_in(config, group)?;
                let places = self.places.indices();
                let members: Vec<_> = places
                    .filter(|&place| self.places[place].group == at)
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
            let of = (self.wiring.number(place), self.places[place]);
            Some(channel(of, &self.mailboxes[place], &self.boards[place]))
        });
        let vacant = std::iter::repeat_with(|| None).take(ROOM);
        taken.chain(vacant).collect()
    }

    /// What `application` shares with the data plane when it comes to its place in its group,
    /// and what the data plane gets.
    pub fn newcomer(
        &self,
        application: ApplicationNumber,
        membership: Membership,
        times: MemberTimes,
    ) -> (Shared, ChannelRuntime, Member) {
        let shared = Shared {
            application,
            gate: Arc::clone(&self.gates[membership.group]),
            mailbox: Arc::new(marking(&self.dirty, membership)),
            board: Arc::default(),
        };
        let runtime = channel((application, membership), &shared.mailbox, &shared.board);
        let member = Member {
            mailbox: Arc::clone(&shared.mailbox),
            times,
            counts: Counts::OnceThere,
        };
        (shared, runtime, member)
    }

    /// The place of the configuration's group `group` among those of this node.
    pub fn group(&self, group: usize) -> Option<GroupPlace> {
        self.wiring.group(group)
    }

    /// Whether this node is primary of `group`, at this moment.
    pub fn is_primary(&self, group: GroupPlace) -> bool {
        self.gates.get(group).is_some_and(|gate| gate.is_primary())
    }

    /// The groups of this node.
    pub fn groups_here(&self) -> impl Iterator<Item = GroupPlace> {
        self.gates.indices()
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
            number: self.wiring.number(at),
            membership: self.places[at],
        }
    }

    /// How many applications the node has at the start.
    pub fn count(&self) -> usize {
        self.places.len()
    }
}

/// The mailbox of the application at `at`, which marks it in its group's set.
fn marking(dirty: &Table<GroupPlace, Arc<DirtySet>>, at: Membership) -> ApplicationMailbox {
    ApplicationMailbox::marking(Arc::clone(&dirty[at.group]), at.member.0)
}

fn channel(
    (application, membership): (ApplicationNumber, Membership),
    mailbox: &Arc<ApplicationMailbox>,
    board: &Arc<CounterBoard>,
) -> ChannelRuntime {
    ChannelRuntime {
        application,
        membership,
        mailbox: Arc::clone(mailbox),
        board: Arc::clone(board),
        snapshot: ApplicationSnapshot::default(),
    }
}
