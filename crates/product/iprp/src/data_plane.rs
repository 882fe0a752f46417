//! The thread on which packets pass: out of the host's output on all networks, and from all networks back to the host.
//!
//! One thread, so that no lock stands between a packet and the cores. Every call returns at once: a network that takes nothing costs one
//! failed call. Of each source a bounded number of packets is taken in a turn.

mod attaching;
mod due;
mod heard;
mod here;
mod incoming;
mod modes;
mod outgoing;
mod own;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use bumpless_base::{Duration, Instant};
use bumpless_capture::{Diverted, Injector, Parsed, Queue, Sightings};
use bumpless_iprp::{
    Copy, FEEDBACK_LEN, Flow, Mode, Monitored, Receiver, ReceiverEvent, Scope, Sender, SenderEvent,
};
use bumpless_net_linux::{Clock, Poller, Waker};
use bumpless_secure::RingSuite;
use rtrb::{Consumer, Producer};

use crate::exchange::{Attached, ToControl, ToData};
use crate::snapshot::Passed;
use crate::unanswered::Watch;
use crate::unheard;
use due::{Farewell, tell_due};
use modes::mode_of;
use outgoing::Turn;

pub use here::Here;
pub use outgoing::Outgoing;
pub use own::KnownMembers;

/// Packets of one source in one turn.
const BURST: usize = 64;
/// Longest IP packet.
const PACKET_MAX: usize = 65_535;
/// After a wait that failed for want of kernel memory.
const PAUSE: Duration = Duration::from_millis(10);
/// After so long it is tried again to tell what the other thread had no room for.
const AGAIN: Duration = Duration::from_millis(1);

/// How captured packets came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    ByQueue,
    ByRing,
}

/// What the thread owns.
pub struct DataPlane {
    pub sender: Sender<RingSuite>,
    pub receiver: Receiver<RingSuite>,
    pub queue: Queue,
    /// What comes by another way than the queue.
    pub diverted: Option<Diverted>,
    pub sightings: Sightings,
    pub injector: Injector,
    pub here: Here,
    pub attached: Box<Attached>,
    /// How packets leave, by what they are.
    pub modes: Vec<(Monitored, Mode)>,
    pub data_port: u16,
    pub inbox: Consumer<ToData>,
    pub outbox: Producer<ToControl>,
    /// Wakes this thread, and the other one.
    pub waker: Waker,
    pub control: Waker,
    pub buffers: Buffers,
    pub outgoing: Outgoing,
    pub passed: Passed,
    /// What is to be captured or not, for which the other thread had no room.
    pub backlog: VecDeque<(Scope, bool)>,
    pub members: KnownMembers,
    /// Networks of sessions that answer nothing.
    pub watch: Watch,
    /// Networks on which nothing of a group comes.
    pub unheard: unheard::Watch,
}

/// Room for one packet of each kind.
pub struct Buffers {
    copy: Box<[u8]>,
    datagram: Box<[u8]>,
    packet: Box<[u8]>,
}

impl Default for Buffers {
    fn default() -> Self {
        let room = || vec![0; PACKET_MAX].into_boxed_slice();
        Self {
            copy: room(),
            datagram: room(),
            packet: room(),
        }
    }
}

impl DataPlane {
    /// Passes packets on until it is told to stop.
    pub fn run(mut self) {
        let networks = vec![None; self.attached.inds.len()];
        self.passed.renumber(&networks);
        let mut poller = self.poller();
        let mut farewell: Option<Farewell> = None;
        let mut is_all_told = true;
        loop {
            let until = self.next_turn(is_all_told);
            let until = farewell.as_ref().map_or(until, |it| until.min(it.until()));
            // Whatever is ready is found by asking: it is non-blocking, and a turn serves every source.
            let ready = poller.wait(until).inspect_err(|_| {
                std::thread::sleep(PAUSE.to_std());
            });
            let now = Clock.now();
            let ready = ready.unwrap_or_default();
            if ready.contains(0) {
                self.send_captured(now, Came::ByQueue);
            }
            // As the poller has them.
            let first = 2 + usize::from(self.diverted.is_some());
            if first > 2 && ready.contains(2) {
                self.send_captured(now, Came::ByRing);
            }
            for place in (0..self.attached.ports.len()).filter(|at| ready.contains(at + first)) {
                self.receive(now, place);
            }
            if ready.contains(1) {
                self.see(now);
            }
            while let Ok(told) = self.inbox.pop() {
                match told {
                    ToData::Stop => {
                        self.receiver.withdraw();
                        farewell = Some(Farewell::new(now));
                    }
                    ToData::Attached(attached) => {
                        self.attach(now, attached);
                        poller = self.poller();
                    }
                    other => self.hear(now, other),
                }
                // Each message can begin a session, or end many.
                self.pass_events();
            }
            is_all_told = self.keep_time(now);
            if let Some(farewell) = &mut farewell {
                if is_all_told {
                    farewell.all_told(now);
                }
                if now >= farewell.until() {
                    self.tell(ToControl::Ended);
                    return;
                }
            }
        }
    }

    /// When there is something to do even if nothing comes.
    fn next_turn(&self, is_all_told: bool) -> Instant {
        let again = Clock.now() + AGAIN;
        let receiver = match is_all_told {
            true => self.receiver.poll_timeout(),
            false => again,
        };
        let backlog = match self.backlog.is_empty() {
            true => Instant::FAR_FUTURE,
            false => again,
        };
        let watches = self.watch.due().min(self.unheard.due());
        let sender = self.sender.poll_timeout().min(watches);
        sender.min(receiver).min(backlog)
    }

    fn poller(&self) -> Poller {
        let own = [self.queue.as_raw_fd(), self.sightings.as_raw_fd()];
        let diverted = self.diverted.as_ref().map(AsRawFd::as_raw_fd);
        let ports = self.attached.ports.descriptors();
        let all: Vec<RawFd> = own.into_iter().chain(diverted).chain(ports).collect();
        Poller::new(&all, self.waker.clone())
    }

    fn tell(&mut self, it: ToControl) {
        match self.outbox.push(it) {
            Ok(()) => self.control.wake(),
            Err(_) => self.passed.untold += 1,
        }
    }

    /// Tells what is to be captured, in order and without a loss: a session without it would not replicate.
    fn tell_capture(&mut self, scope: Scope, begin: bool) {
        self.backlog.push_back((scope, begin));
        while let Some((scope, begin)) = self.backlog.pop_front() {
            if self.outbox.push(ToControl::Capture(scope, begin)).is_err() {
                self.backlog.push_front((scope, begin));
                return;
            }
            self.control.wake();
        }
    }

    /// Captured packets that came so leave as copies.
    fn send_captured(&mut self, now: Instant, came: Came) {
        let room = self.attached.room.min(self.buffers.copy.len());
        let turn = Turn {
            now,
            sender: &mut self.sender,
            attached: &mut self.attached,
            outgoing: &mut self.outgoing,
            passed: &mut self.passed,
            members: &self.members,
            data_port: self.data_port,
            copy: &mut self.buffers.copy[..room],
            packet: &mut self.buffers.packet,
        };
        match (came, &mut self.diverted) {
            (Came::ByRing, Some(diverted)) => {
                let count = diverted.drain_by(BURST, turn);
                self.passed.captured_by_ring += count as u64;
                self.passed.not_released = diverted.lost();
            }
            _ => match self.queue.drain_by(BURST, turn) {
                Ok(count) if count < BURST => self.members.drained(now),
                Ok(_) => {}
                Err(_) => self.passed.overrun += 1,
            },
        }
        self.pass_events();
    }

    /// Plain packets that came to monitored ports.
    fn see(&mut self, now: Instant) {
        let (receiver, passed) = (&mut self.receiver, &mut self.passed);
        let (members, own) = (&self.members, &self.attached.networks);
        let result = self.sightings.drain(BURST, |head| {
            // What this host sends to a group comes back to its own members as well.
            let is_own = || own.iter().any(|it| it.address == head.source);
            let to_group = head.destination.is_multicast();
            if !to_group || members.of(head.destination).is_some() && !is_own() {
                receiver.handle_monitored(now, &flow(head));
            }
        });
        if result.is_err() {
            passed.overrun += 1;
        }
    }

    /// What is due by time, and what has happened. Whether other hosts have been told all that is due for them.
    fn keep_time(&mut self, now: Instant) -> bool {
        if let Some((scope, begin)) = self.backlog.pop_back() {
            self.tell_capture(scope, begin);
        }
        self.sender.handle_timeout(now);
        let room = self.attached.room.min(self.buffers.copy.len());
        while let Some(copy) = self
            .sender
            .poll_transmit(now, &mut self.buffers.copy[..room])
        {
            send(&self.attached, &mut self.passed, self.data_port, &copy);
        }
        let mut feedback = [0; FEEDBACK_LEN];
        while let Some(answer) = self.receiver.poll_feedback(&mut feedback) {
            let card = answer.on.and_then(|ind| self.attached.card(ind));
            if let Some(card) = card {
                let bytes = &feedback[..answer.len];
                let sent = self.attached.ports.send(card, bytes, answer.to);
                count(&mut self.passed, card, &sent);
            }
        }
        self.receiver.handle_timeout(now);
        self.pass_events();
        self.watch_networks(now);
        let untold = &mut self.passed.untold;
        let told = tell_due(now, &mut self.receiver, &mut self.outbox, untold);
        if told.is_any {
            self.control.wake();
        }
        told.is_all
    }

    /// Tells which networks of sessions have stopped answering, on which nothing of a group comes, and which have begun again.
    fn watch_networks(&mut self, now: Instant) {
        let (outbox, passed, control) = (&mut self.outbox, &mut self.passed, &self.control);
        let mut tell = |it| match outbox.push(it) {
            Ok(()) => control.wake(),
            Err(_) => passed.untold += 1,
        };
        self.watch
            .look(now, &self.sender, |it| tell(ToControl::Unanswered(it)));
        self.unheard
            .look(now, &self.receiver, |it| tell(ToControl::Unheard(it)));
    }

    /// Tells what has happened in the cores. Each source of a turn can tell of many sessions, so this comes after each: all of the
    /// cores' room is there for the next one.
    fn pass_events(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::Begun { session, scope, .. } => {
                    self.sender.set_mode(session, mode_of(&self.modes, &scope));
                    self.tell_capture(scope, true);
                }
                SenderEvent::Ended { scope, .. } => self.tell_capture(scope, false),
                _ => {}
            }
            self.tell(ToControl::Sender(event));
        }
        // What the other thread has no room for waits in the core, which does not lose the number of its key.
        while !self.outbox.is_full()
            && let Some(event) = self.receiver.poll_event()
        {
            if let ReceiverEvent::Networks { session, networks } = &event
                && let Some(session) = self.receiver.session(*session)
            {
                self.unheard.named(&session, networks);
            }
            self.tell(ToControl::Receiver(event));
        }
    }
}

/// Sends a copy on its network; whether the network has taken it.
fn send(attached: &Attached, passed: &mut Passed, port: u16, copy: &Copy<'_>) -> bool {
    let Some(card) = attached.card(copy.ind) else {
        return false;
    };
    let to = SocketAddr::new(copy.to, port);
    let sent = attached.ports.send(card, copy.bytes, to);
    count(passed, card, &sent);
    sent.is_ok()
}

fn count(passed: &mut Passed, card: usize, sent: &io::Result<()>) {
    if let (Err(_), Some(not_taken)) = (sent, passed.not_taken.get_mut(card)) {
        *not_taken += 1;
    }
}

fn flow(packet: &Parsed<'_>) -> Flow {
    Flow {
        protocol: packet.protocol,
        source: packet.source,
        destination: packet.destination,
        source_port: packet.source_port,
        destination_port: packet.destination_port,
    }
}
