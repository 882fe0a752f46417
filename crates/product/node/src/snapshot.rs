//! What the data plane shows of a node; it refreshes it in place, and status is rendered from a copy.

use std::iter;

use bumpless_base::{Counters, Duration, Epoch, Instant, Role, Table};
use bumpless_config::Config;
use bumpless_net_linux::SendFailure;
use bumpless_redundancy::Configurations;

use crate::counter_board::{ProgramNote, RetainedNote};
use crate::event::Redundancy;
use crate::log::Names;
use crate::membership::ApplicationNumber;
use crate::short_text::ShortText;
use crate::wiring::ROOM;

/// One group on this node.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupSnapshot {
    /// Whether this node is a candidate of the group; else the rest means nothing.
    pub member: bool,
    /// This node's role.
    pub role: Role,
    /// Highest epoch known.
    pub epoch: Epoch,
    /// End of the right to write.
    pub permit_until: Option<Instant>,
    /// State of the redundancy and why.
    pub redundancy: Redundancy,
    /// Why the redundancy is not whole.
    pub cause: ShortText,
    /// As backup: whether a fresh state of every application is here.
    pub synced: bool,
    /// Whether the partner is heard on any link.
    pub partner_heard: bool,
    /// Position of the agreed reference point in the configuration.
    pub reference: Option<u8>,
    /// When the role last changed, and why.
    pub changed_at: Instant,
    /// Why the role last changed.
    pub change_cause: ShortText,
}

/// One application on this node.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApplicationSnapshot {
    /// States that were safe at the partner in time.
    pub safe: u64,
    /// States given up.
    pub failed: u64,
    /// How long the last safe transfer took.
    pub last_transfer: Option<Duration>,
    /// How long the slowest took.
    pub slowest_transfer: Duration,
    /// Transfer cycle of the newest state received.
    pub received_cycle: Option<u32>,
    /// When the newest received state came.
    pub received_at: Option<Instant>,
    /// Its field device did not answer this node last, or its state could not be loaded.
    pub field_silent: bool,
    /// Its field devices that did not answer last, a bit for each by position.
    pub silent_devices: u64,
    /// Its program has failed and is stopped here.
    pub program_stopped: bool,
    /// Executions of its program that failed here.
    pub program_faults: u64,
    /// The last of them.
    pub program_fault: Option<ProgramNote>,
    /// What its program kept when it last began from its initial state.
    pub retained: Option<RetainedNote>,
}

impl ApplicationSnapshot {
    /// Whether the device at position `at` answered this node last.
    pub fn answers(&self, at: usize) -> bool {
        self.silent_devices
            .checked_shr(at as u32)
            .is_none_or(|rest| rest & 1 == 0)
    }
}

/// One link to one partner.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkSnapshot {
    /// Whether both can hear each other on it.
    pub up: bool,
    /// Whether short packets pass and none as long as those of states.
    pub narrow: bool,
    /// Whether states of some application go over it at present.
    pub carries: bool,
    /// Whether they ever could, since the start.
    pub came_up: bool,
    /// Smoothed round trip.
    pub round_trip: Option<Duration>,
    /// Datagrams of the network, whoever sent them, that the kernel dropped for want of room.
    pub receive_drops: Option<u64>,
    /// Whether most of what strangers send on the network is dropped before this process sees it.
    pub screened: bool,
    /// Datagrams of the network, whoever they were for, that the kernel did not take.
    pub send_failures: SendFailures,
}

/// What the kernel did not take of a network's datagrams, whoever they were for.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendFailures {
    /// How many, since the start.
    pub count: u64,
    /// When and why last.
    pub last: Option<(Instant, SendFailure)>,
}

/// Everything, sized once.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was taken.
    pub at: Instant,
    /// When the node started.
    pub started_at: Instant,
    /// By which partners and witnesses know this start of the process (R-5, W-21).
    pub session: u64,
    /// The catalogue's figures.
    pub counters: Counters,
    /// Groups in configuration order.
    pub groups: Vec<GroupSnapshot>,
    /// The applications.
    pub applications: Table<ApplicationNumber, ApplicationSnapshot>,
    /// The configuration in force and the one that is prepared.
    pub configurations: Configurations,
    /// Links, partner by partner.
    pub links: Vec<LinkSnapshot>,
    /// Data-plane wake-ups that came later than 2 ms, and turns that took longer.
    pub stalls: u64,
    /// The worst of them.
    pub longest_stall: Duration,
}

impl Snapshot {
    /// An empty snapshot for what `config` and `names` describe.
    pub fn new(config: &Config, names: &Names, session: u64, now: Instant) -> Self {
        Self {
            at: now,
            started_at: now,
            session,
            counters: Counters::default(),
            groups: vec![GroupSnapshot::default(); config.groups.len()],
            applications: iter::repeat_n(
                ApplicationSnapshot::default(),
                config.applications.len() + ROOM,
            )
            .collect(),
            configurations: Configurations::default(),
            links: vec![LinkSnapshot::default(); names.partners.len() * config.networks.len()],
            stalls: 0,
            longest_stall: Duration::ZERO,
        }
    }
}
