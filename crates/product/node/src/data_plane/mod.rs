//! The data-plane thread: one loop that serves all links, drives the cores, and waits.
//!
//! One turn of the loop:
//!
//! 1. take what the links received (one batch each) and hand it to the cores;
//! 2. let the cores act on time, on published states and on orders;
//! 3. pass on what the cores report: to permits and mailboxes of the executors, to the log, to status;
//! 4. send: heartbeats, lease requests, acknowledgements, then states as far as pacing allows;
//! 5. wait for a datagram, a wake-up, or the next deadline.
//!
//! The clock is read once before step 1, once before step 2, and once at the end to tell a turn that took too long. What has arrived is always taken before
//! time is acted upon, so that a pause of this thread is not mistaken for silence of the partner.

pub mod addresses;
mod aggregate;
mod causes;
pub mod change;
pub mod drivers;
pub mod group;
pub mod inbound;
pub mod limits;
pub mod link_port;
pub mod members;
mod notices;
mod outbound;
pub mod protection;
pub mod reached;
mod resume;
mod snapshot;
mod strangers;
mod turn;
pub mod waiter;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use bumpless_base::{Duration, Instant, PeerId, ResumeFrom, Table};
use bumpless_config::{ApplicationKind, Config};
use bumpless_mailbox::ApplicationMailbox;
use bumpless_redundancy::{GroupId, MAX_MESSAGE_LEN, SwitchoverRefused};
use bumpless_secure::{Keyring, RingSuite, Suite};
use bumpless_transfer::ChannelPlace;
use bumpless_wire::{MAX_ACK_LEN, Role};
use rtrb::Consumer;

use self::addresses::Correspondent;
use self::change::{ChangeAnswer, ChangeBoard, ChangeOrder};
use self::drivers::{Drivers, Pingers, Ports, Sockets};
use self::group::GroupRuntime;
use self::inbound::Cores;
use self::limits::{AllLimits, Limits};
use self::protection::Use;
pub use self::resume::ResumeRefused;
use crate::counter_board::CounterBoard;
use crate::event::NodeEvent;
use crate::log::EventSink;
use crate::membership::{ApplicationNumber, GroupPlace, Membership};
use crate::persist::Found;
use crate::snapshot::{ApplicationSnapshot, LinkSnapshot, Snapshot};
use crate::wiring::Wiring;

/// An order from the control thread.
pub enum Command<S: Suite = RingSuite> {
    /// Hand over the primary role of a group.
    Switchover {
        /// The group.
        group: GroupId,
        /// Where the answer goes; has room for it.
        reply: SyncSender<Result<(), SwitchoverRefused>>,
    },
    /// Have this node take the role, primary or backup, by a switchover if it has the other one. A switchover to that
    /// role that is under way, or has been made, will do.
    TakeRole {
        /// The group.
        group: GroupId,
        /// The role.
        role: Role,
        /// Where the answer goes; has room for it.
        reply: SyncSender<Result<(), SwitchoverRefused>>,
    },
    /// Let the program of an application go on that has failed and is stopped here.
    Resume {
        /// The application.
        application: ApplicationNumber,
        /// From what.
        from: ResumeFrom,
        /// Where the answer goes; has room for it.
        reply: SyncSender<Result<(), ResumeRefused>>,
    },
    /// Open with other keys what is exchanged with somebody, on every network, and seal with them if so ordered.
    SetKeys {
        /// With whom.
        with: Correspondent,
        /// The keys. Whoever orders keeps those before until the answer, so that nothing is freed here.
        keys: Arc<Keyring<S>>,
        /// What they are for.
        way: Use,
        /// Takes `keys` back; has room for it.
        reply: SyncSender<Arc<Keyring<S>>>,
    },
    /// What a partner can take is this.
    SetLimits {
        /// The partner.
        peer: PeerId,
        /// What it has stated.
        limits: Limits,
    },
    /// Take a step in a change of the configuration.
    Change {
        /// The step.
        order: ChangeOrder,
        /// Where the answer goes; has room for it.
        reply: SyncSender<ChangeAnswer>,
    },
}

/// One application's channel, at the same position in sender and receiver.
pub struct ChannelRuntime {
    /// The application.
    pub application: ApplicationNumber,
    /// Its group, and its place there.
    pub membership: Membership,
    /// Where the executor learns what became of its states.
    pub mailbox: Arc<ApplicationMailbox>,
    /// What the executor has counted.
    pub board: Arc<CounterBoard>,
    /// What status shows.
    pub snapshot: ApplicationSnapshot,
}

/// The groups of which a node is a candidate, and its applications' channels.
pub(crate) type Applications = (Groups, Channels);

/// The groups of which a node is a candidate.
pub(crate) type Groups = Table<GroupPlace, GroupRuntime>;

/// The applications' channels; some places are vacant.
pub type Channels = Table<ChannelPlace, Option<ChannelRuntime>>;

/// What is shared with the control thread.
pub struct Surroundings<S: Suite = RingSuite> {
    /// Orders.
    pub commands: Consumer<Command<S>>,
    /// Way into the log.
    pub sink: EventSink,
    /// Where status is read.
    pub snapshot: Arc<Mutex<Snapshot>>,
    /// What a change of the configuration waits for.
    pub board: Arc<ChangeBoard>,
    /// Ends the node.
    pub stop: Arc<AtomicBool>,
    /// Whether to log every transfer.
    pub log_transfers: bool,
}

/// What a turn of the loop leaves to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Wait until then, or until something arrives, then [`DataPlane::resume`].
    Wait(Instant),
    /// The node was told to stop and has nothing left to hand over.
    Ended,
    /// A cycle of an application with this period does not end. The process must: it keeps this
    /// node from writing and the partner from taking over.
    WatchdogExpired(Duration),
}

/// Where messages are written before they are sent.
pub struct Scratch {
    message: [u8; MAX_MESSAGE_LEN],
    ack: [u8; MAX_ACK_LEN],
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            message: [0; MAX_MESSAGE_LEN],
            ack: [0; MAX_ACK_LEN],
        }
    }
}

/// Names for causes in words, by number.
struct Titles {
    links: Vec<String>,
    partners: Vec<String>,
    /// In configuration order.
    references: Vec<String>,
    /// Field devices of the applications at the start.
    fields: Table<ApplicationNumber, String>,
    /// Some application is a program of a user, which can fail.
    programs: bool,
}

impl Titles {
    fn new(config: &Config, wiring: &Wiring) -> Self {
        let references = config.references.iter();
        Self {
            links: wiring.names.links.clone(),
            partners: wiring.names.partners.clone(),
            references: references.map(|reference| reference.name.clone()).collect(),
            fields: config.applications.iter().map(field_name).collect(),
            programs: config
                .applications
                .iter()
                .any(|it| matches!(it.kind, ApplicationKind::Program(_))),
        }
    }
}

/// The field device of an application, in words.
fn field_name(settings: &bumpless_config::Application) -> String {
    match &settings.field {
        Some(field) => format!("field device {} of '{}'", field.places(), settings.name),
        None => format!("application '{}'", settings.name),
    }
}

/// How long this thread has stood still, and when.
struct Stalls {
    count: u64,
    longest: Duration,
    /// When the last one ended.
    ended_at: Instant,
    /// When the last wait ended; `None` before the first turn: until then programs are started, which is no stall.
    turn_began: Option<Instant>,
    /// What this turn takes from the links has come since then: long ago, if this thread stood still.
    arrived_since: Instant,
}

/// Everything on the data-plane thread. All memory is taken before the first [`DataPlane::turn`].
pub struct DataPlane<D: Drivers = Sockets> {
    cores: Cores,
    /// `None` where this node has no address.
    ports: Ports<D>,
    /// By reference point.
    pingers: Pingers<D>,
    /// The network of each reference point.
    reference_links: Vec<usize>,
    /// The groups of which this node is a candidate.
    groups: Groups,
    channels: Channels,
    limits: AllLimits,
    titles: Titles,
    /// Partner by partner, as status shows them.
    link_snapshots: Vec<LinkSnapshot>,
    surroundings: Surroundings<D::Suite>,
    /// How long an orderly stop waits for the backup to take over.
    hand_over_timeout: Duration,
    /// When an orderly stop gives up waiting.
    leaving_until: Option<Instant>,
    /// Not made anew for each message: it is two kilobytes.
    scratch: Box<Scratch>,
    /// A change was made here, and the partner has not reported yet that it has made it, too.
    awaits_partner: bool,
    /// When the redundancy core has something to do though nothing arrives.
    redundancy_due: Instant,
    stalls: Stalls,
    /// When status was last refreshed.
    refreshed: Instant,
    /// When causes in words were looked at last.
    causes_renewed: Instant,
}

impl<D: Drivers> DataPlane<D> {
    /// The data plane of the node of `wiring`, with its cores, groups and channels.
    pub(crate) fn new(
        (config, wiring): (&Config, &Wiring),
        (cores, (mut groups, channels)): (Cores, Applications),
        (ports, pingers): (Ports<D>, Pingers<D>),
        surroundings: Surroundings<D::Suite>,
        now: Instant,
    ) -> Self {
        for group in &mut groups {
            group.snapshot.changed_at = now;
        }
        let links = wiring.names.partners.len() * ports.len();
        let references = config.references.iter();
        let plane = Self {
            cores,
            reference_links: references.map(|r| usize::from(r.network.0)).collect(),
            ports,
            pingers,
            groups,
            channels,
            limits: AllLimits::new(config, wiring),
            titles: Titles::new(config, wiring),
            link_snapshots: vec![LinkSnapshot::default(); links],
            surroundings,
            hand_over_timeout: config.hand_over_time(),
            leaving_until: None,
            scratch: Box::default(),
            awaits_partner: false,
            redundancy_due: now,
            stalls: Stalls {
                count: 0,
                longest: Duration::ZERO,
                ended_at: now,
                turn_began: None,
                arrived_since: now,
            },
            refreshed: now,
            causes_renewed: now,
        };
        // Whoever asks before the first turn hears of groups that start.
        plane.show(now);
        plane
    }

    /// The cores, for whoever watches them.
    pub const fn cores(&self) -> &Cores {
        &self.cores
    }

    /// The groups of which this node is a candidate.
    pub fn groups(&self) -> &Table<GroupPlace, GroupRuntime> {
        &self.groups
    }

    /// The applications' channels.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// The links as status shows them: partner by partner, those of all networks.
    pub fn links(&self) -> &[LinkSnapshot] {
        &self.link_snapshots
    }

    /// How many networks there are.
    pub fn networks(&self) -> usize {
        self.ports.len()
    }

    /// When status was last refreshed.
    pub const fn refreshed(&self) -> Instant {
        self.refreshed
    }

    /// Logs that this process begins.
    pub fn tell_started(&mut self, now: Instant) {
        let session = self.cores.redundancy.session();
        self.surroundings
            .sink
            .record(now, NodeEvent::Started { session });
    }

    /// The channel at `place` begins with the cycle after this.
    pub fn set_last_cycle(&mut self, place: ChannelPlace, cycle: u32) {
        self.cores.sender.set_last_cycle(place, cycle);
    }

    /// Takes back every right to write, for good.
    pub fn release(&self) {
        self.groups.iter().for_each(GroupRuntime::release);
    }

    /// Before the first turn: an earlier process of this node has left these states on disk.
    pub fn restore(&mut self, found: &[Found], now: Instant) {
        for found in found {
            let channel = self.channels.get(found.place).and_then(Option::as_ref);
            let group = channel.and_then(|channel| self.groups.get_mut(channel.membership.group));
            if let Some(group) = group {
                let redundancy = &mut self.cores.redundancy;
                group.restore(found.epoch, found.usable_until, redundancy, now);
            }
        }
    }
}
