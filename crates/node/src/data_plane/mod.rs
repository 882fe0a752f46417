//! The data-plane thread: one loop that serves all links, drives the cores, and waits.
//!
//! One turn of the loop:
//!
//! 1. take what the links received (one batch each) and hand it to the cores;
//! 2. let the cores act on time, on published states and on orders;
//! 3. pass on what the cores say: to gates and ports of the executors, to the log, to status;
//! 4. send: heartbeats, lease requests, acknowledgements, then states as far as pacing allows;
//! 5. wait for a datagram, a wake-up, or the next deadline.
//!
//! The clock is read once before step 1 and once before step 2. What has arrived is always taken before
//! time is acted upon, so that a pause of this thread is not mistaken for silence of the partner.

pub mod change;
pub mod drivers;
pub mod group;
pub mod inbound;
pub mod link_port;
pub mod members;
mod notices;
mod outbound;
pub mod waiter;
mod words;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use bumpless_base::fault::{Fault, deliberate};
use bumpless_base::{Counter, Counters, Duration, Instant, LinkId, PeerId};
use bumpless_meeting::ApplicationPort;
use bumpless_net_linux::Echo;
use bumpless_redundancy::{GroupId, MAX_MESSAGE_LEN, ReferenceId, SwitchoverRefused};
use bumpless_wire::{MAX_ACK_LEN, Role};
use rtrb::Consumer;

use self::change::{ChangeAnswer, ChangeBoard, ChangeOrder};
use self::drivers::{Drivers, Pingers, Ports, Sockets};
use self::group::GroupRuntime;
use self::inbound::Cores;
use crate::applications::CounterBoard;
use crate::event::NodeEvent;
use crate::log::EventSink;
use crate::persist::Found;
use crate::status::{ApplicationSnapshot, LinkSnapshot, Snapshot};

/// A wake-up later than this, or a turn longer than this, is a stall worth telling.
const STALL: Duration = Duration::from_millis(2);
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(20);

/// An order from the control thread.
pub enum Command {
    /// Hand over the primary role of a group.
    Switchover {
        /// The group.
        group: GroupId,
        /// Where the answer goes; has room for it.
        reply: SyncSender<Result<(), SwitchoverRefused>>,
    },
    /// Have this node take the role, primary or backup, by a switchover if it has the other one. One that is under way
    /// to there, or was made, is what is wanted.
    TakeRole {
        /// The group.
        group: GroupId,
        /// The role.
        role: Role,
        /// Where the answer goes; has room for it.
        reply: SyncSender<Result<(), SwitchoverRefused>>,
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
    /// The application's number: its position in the configuration with which the node started, or the place
    /// to which it came.
    pub application: u16,
    /// Position of its group in [`DataPlane::groups`], and its own among the group's applications.
    pub group: (usize, usize),
    /// Where outcomes are told.
    pub port: Arc<ApplicationPort>,
    /// What the executor has counted.
    pub board: Arc<CounterBoard>,
    /// What status shows.
    pub snapshot: ApplicationSnapshot,
}

/// What is shared with the control thread.
pub struct Surroundings {
    /// Orders.
    pub commands: Consumer<Command>,
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
    Hung(Duration),
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

/// Everything on the data-plane thread. All memory is taken before the first [`DataPlane::turn`].
pub struct DataPlane<D: Drivers = Sockets> {
    /// The cores.
    pub cores: Cores,
    /// The networks; `None` where this node has no address.
    pub ports: Ports<D>,
    /// ICMP echo, by reference point.
    pub pingers: Pingers<D>,
    /// The network of each reference point.
    pub reference_links: Vec<usize>,
    /// The groups of which this node is a candidate.
    pub groups: Vec<GroupRuntime>,
    /// The applications' channels, by place; some are vacant.
    pub channels: Vec<Option<ChannelRuntime>>,
    /// Names for causes in words: networks, partners, reference points.
    pub link_names: Vec<String>,
    /// Partners by [`bumpless_base::PeerId`].
    pub partner_names: Vec<String>,
    /// Reference points in configuration order.
    pub reference_names: Vec<String>,
    /// Field devices, by number of their applications at the start.
    pub field_names: Vec<String>,
    /// Links, partner by partner, as status shows them.
    pub link_snapshots: Vec<LinkSnapshot>,
    /// Orders, log, status, end.
    pub surroundings: Surroundings,
    /// How long an orderly stop waits for the backup to take over.
    pub hand_over_patience: Duration,
    /// When an orderly stop gives up waiting.
    pub leaving_until: Option<Instant>,
    /// Not made anew for each message: it is two kilobytes.
    pub scratch: Box<Scratch>,
    /// A change was made here, and the partner has not been heard to follow.
    pub awaits_partner: bool,
    /// When the redundancy core is to look after itself.
    pub redundancy_due: Instant,
    /// When the last wait ended.
    pub turn_began: Instant,
    /// What this turn takes from the links has come since then: this thread may have stood still.
    pub arrived_since: Instant,
    /// Stalls seen and the longest.
    pub stalls: (u64, Duration),
    /// When the last stall ended.
    pub stalled_at: Instant,
    /// When status was last refreshed.
    pub refreshed: Instant,
}

impl<D: Drivers> DataPlane<D> {
    /// Before the first turn: an earlier process of this node has left these states on disk.
    pub fn restore(&mut self, found: &[Found], now: Instant) {
        for found in found {
            let channel = self.channels.get(found.place).and_then(Option::as_ref);
            let group = channel.and_then(|channel| self.groups.get_mut(channel.group.0));
            if let Some(group) = group {
                let redundancy = &mut self.cores.redundancy;
                group.restore(found.epoch, found.usable_until, redundancy, now);
            }
        }
    }

    /// One turn: takes what has come, acts, sends. `clock` is read before receiving, before acting,
    /// and at the end.
    pub fn turn(&mut self, clock: impl Fn() -> Instant) -> Turn {
        let received = clock();
        let more = self.receive(received);
        let now = clock();
        self.act(now);
        if self.surroundings.stop.load(Ordering::Acquire) && self.has_left(now) {
            self.transmit(now);
            return Turn::Ended;
        }
        let paced = self.transmit(now);
        let hung = self.publish(now);
        self.note_stall(self.turn_began, clock());
        if !more {
            self.arrived_since = received;
        }
        if let Some(period) = hung {
            return Turn::Hung(period);
        }
        let next = self.next_deadline(now).min(paced);
        Turn::Wait(if more { now } else { next })
    }

    /// Hands over what this node is primary of; returns whether it may end.
    #[cold]
    fn has_left(&mut self, now: Instant) -> bool {
        for group in &mut self.groups {
            group.leave(&mut self.cores.redundancy, now);
        }
        self.drain_events(now);
        let deadline = *self
            .leaving_until
            .get_or_insert(now + self.hand_over_patience);
        now >= deadline || self.groups.iter().all(GroupRuntime::may_leave)
    }

    /// Goes on after a wait until `due` that ended at `now`.
    pub fn resume(&mut self, due: Instant, now: Instant) {
        for port in self.ports.iter_mut().flatten() {
            port.full = false;
        }
        self.note_stall(due, now);
        self.turn_began = now;
    }

    fn receive(&mut self, now: Instant) -> bool {
        let mut more = false;
        for port in self.ports.iter_mut().flatten() {
            if port.id().0 == 1 && deliberate(Fault::SecondLinkNotRead) {
                continue;
            }
            more |= self.cores.receive(port, now);
        }
        for (index, pinger) in self.pingers.iter_mut().enumerate() {
            while let Some(reply) = pinger.as_mut().and_then(Echo::receive) {
                let reference = ReferenceId(index as u8);
                self.cores
                    .redundancy
                    .handle_ping_reply(reference, reply.sequence, now);
            }
        }
        more
    }

    fn act(&mut self, now: Instant) {
        let cores = &mut self.cores;
        // Whatever arrives is decided upon at once: what is left to do is due at a known time.
        if now >= self.redundancy_due {
            cores.redundancy.handle_timeout(now);
        }
        cores.sender.handle_timeout(now);
        cores.receiver.handle_timeout(now);
        cores.sender.handle_published(now);
        while let Ok(command) = self.surroundings.commands.pop() {
            self.obey(command, now);
        }
        for group in &mut self.groups {
            group.collect(&mut self.cores.redundancy, now);
        }
        self.drain_events(now);
        let mut handing_over = false;
        for group in &mut self.groups {
            handing_over |= group.drive_hand_over(&mut self.cores.redundancy, now);
        }
        if handing_over {
            self.drain_events(now);
        }
    }

    #[cold]
    fn obey(&mut self, command: Command, now: Instant) {
        match command {
            Command::Switchover { group, reply } => {
                let answer = self.cores.redundancy.command_switchover(group, now);
                let _ = reply.try_send(answer);
            }
            Command::TakeRole { group, role, reply } => {
                let redundancy = &mut self.cores.redundancy;
                let answer = match redundancy.role(group) == Some(role) {
                    true => Ok(()),
                    false => redundancy.command_switchover(group, now),
                };
                let wanted = answer == Err(SwitchoverRefused::InProgress);
                let _ = reply.try_send(if wanted { Ok(()) } else { answer });
            }
            Command::Change { mut order, reply } => {
                // What has happened until here is of those who are there until here.
                self.drain_events(now);
                let result = self.change(&mut order, now);
                let _ = reply.try_send(ChangeAnswer { order, result });
            }
        }
    }

    fn next_deadline(&mut self, now: Instant) -> Instant {
        let cores = &self.cores;
        self.redundancy_due = cores.redundancy.poll_timeout();
        let sender = cores.sender.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        let receiver = cores.receiver.poll_timeout();
        sender
            .min(receiver.unwrap_or(Instant::FAR_FUTURE))
            .min(self.redundancy_due)
            .min(now + SNAPSHOT_INTERVAL)
    }

    /// Tells when this thread went on later than `due`, whatever ended its wait.
    fn note_stall(&mut self, due: Instant, now: Instant) {
        let length = now.since(due);
        if length > STALL {
            self.tell_stall(length, now);
        }
    }

    #[cold]
    fn tell_stall(&mut self, length: Duration, now: Instant) {
        self.stalls = (self.stalls.0 + 1, self.stalls.1.max(length));
        self.stalled_at = now;
        for group in &mut self.groups {
            group.void_comparisons(&mut self.cores.redundancy, now);
        }
        self.surroundings
            .sink
            .record(now, NodeEvent::Stall { length });
    }

    /// Publishes rights to the executors and, now and then, the status; returns the period of an
    /// application that hangs.
    fn publish(&mut self, now: Instant) -> Option<Duration> {
        for group in &mut self.groups {
            group.publish(&self.cores.redundancy, now);
        }
        self.await_partner();
        if now.since(self.refreshed) < SNAPSHOT_INTERVAL {
            return None;
        }
        self.refresh(now)
    }

    #[inline(never)] // Only now and then.
    fn refresh(&mut self, now: Instant) -> Option<Duration> {
        self.refreshed = now;
        self.measure_round_trips();
        self.measure_drops();
        self.show(now);
        self.groups
            .iter()
            .find_map(|group| group.hung(self.stalled_at, now))
    }

    /// Shows status how things are, unless it is just being read: the next turn will do.
    pub fn show(&self, now: Instant) {
        if let Ok(mut snapshot) = self.surroundings.snapshot.try_lock() {
            self.fill(&mut snapshot, now);
        }
    }

    /// Heartbeats measure the round trip of links that carry no states.
    fn measure_round_trips(&mut self) {
        let links = self.ports.len().max(1);
        for (at, snapshot) in self.link_snapshots.iter_mut().enumerate() {
            let (peer, link) = (PeerId((at / links) as u8), LinkId((at % links) as u8));
            snapshot.round_trip = self.cores.redundancy.round_trip(peer, link);
            // A primary's own packets measure better.
            let sends = self
                .groups
                .iter()
                .any(|group| group.peer == peer && group.gate.is_primary());
            if let Some(measured) = snapshot.round_trip.filter(|_| !sends) {
                self.cores.sender.set_link_round_trip(peer, link, measured);
            }
        }
    }

    fn measure_drops(&mut self) {
        let links = self.ports.len().max(1);
        for (at, port) in self.ports.iter_mut().enumerate() {
            let Some(port) = port else { continue };
            port.measure_drops();
            for snapshot in self.link_snapshots.iter_mut().skip(at).step_by(links) {
                snapshot.receive_drops = port.receive_drops();
                snapshot.send_failures = port.send_failures();
            }
        }
    }

    /// What the drivers below have lost or left out.
    fn add_drivers(&self, counters: &mut Counters) {
        for port in self.ports.iter().flatten() {
            counters.add(
                Counter::DiscardSocketFull,
                port.receive_drops().unwrap_or(0),
            );
        }
        for pinger in self.pingers.iter().flatten() {
            let passed_over = pinger.passed_over();
            counters.add(Counter::DiscardForeignIcmp, passed_over.foreign);
            counters.add(Counter::ReceiveFailures, passed_over.failures);
        }
    }

    fn fill(&self, snapshot: &mut Snapshot, now: Instant) {
        snapshot.at = now;
        let mut counters = self.cores.counters.clone();
        counters.merge(self.cores.sender.counters());
        counters.merge(self.cores.receiver.counters());
        counters.merge(self.cores.redundancy.counters());
        self.add_drivers(&mut counters);
        snapshot.applications.fill(ApplicationSnapshot::default());
        for channel in self.channels.iter().flatten() {
            channel.board.add_to(&mut counters);
            snapshot.applications[usize::from(channel.application)] = ApplicationSnapshot {
                field_silent: !channel.port.word().fit,
                ..channel.snapshot
            };
        }
        snapshot.configurations = self.cores.redundancy.configurations();
        snapshot.counters = counters;
        for group in &self.groups {
            snapshot.groups[usize::from(group.id.0)] = group.snapshot;
        }
        snapshot.links.copy_from_slice(&self.link_snapshots);
        (snapshot.stalls, snapshot.longest_stall) = self.stalls;
    }

    /// The role of this node in the group at `position`.
    fn role_of(&self, position: usize) -> Role {
        self.groups[position].snapshot.role
    }
}
