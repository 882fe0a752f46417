//! What a process has for changing its configuration, and what its computer keeps of that.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use bumpless_config::Config;
use bumpless_node::change::Changer;
use bumpless_node::change::Step;
use bumpless_node::data_plane::change::{ChangeAnswer, ChangeBoard};
use bumpless_node::log::LogRegistry;

use crate::host::position;

/// A computer's disk: the numbers of the configuration and of the one beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// A restart begins with it.
    pub current: usize,
    /// Beside it.
    pub next: Option<usize>,
}

/// A process's way to another configuration.
pub struct Changing {
    /// The shipped order of the steps.
    pub changer: Changer,
    /// What the data plane says.
    pub board: Arc<ChangeBoard>,
    /// The log's names.
    pub registry: LogRegistry,
    /// Which application, among all that there ever are, has each place.
    pub applications: Vec<Option<usize>>,
    /// The answer to an order that was given.
    pub answer: Option<Receiver<ChangeAnswer>>,
    /// A step that waits until an executor has ended its cycle.
    pub pending: Option<Step>,
    /// The number of the configuration that is being prepared.
    pub number: usize,
    /// When it goes on.
    pub runs_at: u64,
    /// Steps until the process dies.
    pub dies_after: Option<u32>,
}

impl Changing {
    /// With nothing to change.
    pub const fn new(changer: Changer, board: Arc<ChangeBoard>, registry: LogRegistry) -> Self {
        Self {
            changer,
            board,
            registry,
            applications: Vec::new(),
            answer: None,
            pending: None,
            number: 0,
            runs_at: u64::MAX,
            dies_after: None,
        }
    }

    /// Looks up who has which place; `all` has all that there ever are.
    pub fn follow(&mut self, all: &Config) {
        let (_, _, places) = self.changer.in_force();
        let slots = places.slots().iter();
        let application = |slot: &Option<_>| {
            slot.as_ref()
                .and_then(|s: &bumpless_node::build::MemberSlot| position(all, &s.name))
        };
        self.applications = slots.map(application).collect();
    }
}
