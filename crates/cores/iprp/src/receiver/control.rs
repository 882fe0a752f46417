//! The control plane of a receiver (iPRP, algorithms 1 and 2): whom to advertise to, and who has answered.

use super::active::{Active, SPACES, Standing};
use super::cycle::{Cycle, Step};
use super::processes::{Owner, Process};
use super::state::State;
use crate::counters::PerNetwork;
use crate::event::{EndCause, Origin, PeerId, ReceiverEvent, SessionId};
use crate::flow::Flow;
use crate::ind::Networks;
use crate::message::{MAX_MESSAGE, Message, MessageError, Offer, Subject};
use bumpless_base::Instant;
use bumpless_secure::Suite;
use core::net::IpAddr;

/// A control message that is to leave on a secure channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The host for which it is.
    pub to: IpAddr,
    /// The session that it is about.
    pub session: SessionId,
    /// Its length.
    pub len: usize,
}

impl<S: Suite> State<S> {
    /// A plain packet of `flow` was seen (algorithm 1).
    pub(crate) fn handle_monitored(&mut self, now: Instant, flow: &Flow) {
        // Whoever has been told that packets are wanted as they are is not asked for copies again by one that does so.
        if self.stops {
            return;
        }
        let scopes = self.monitored.iter().filter_map(|it| it.scope(flow));
        let scope = scopes.into_iter().find(|scope| self.is_monitored(scope));
        let Some(scope) = scope.filter(|_| flow.is_sound() && !flow.source.is_multicast()) else {
            return;
        };
        let source = flow.source;
        let subject = Subject { source, scope };
        let Some(place) = self.active.find(&subject) else {
            return self.add_candidate(now, subject);
        };
        if self.active.get(place).is_some_and(|active| active.silent) {
            return self.wake(now, place);
        }
        if scope.is_multicast() && !self.active.is_scheduled(place) {
            self.begin_cycle(now, place);
        }
        if let Some(active) = self.active.get_mut(place) {
            active.last_seen = active.last_seen.max(now);
            active.cycle.hasten(now);
            self.active.reschedule(place);
        }
    }

    fn add_candidate(&mut self, now: Instant, subject: Subject) {
        let uniform = self.uniform(&subject.scope);
        let active = Active {
            subject,
            standing: Standing::Candidate,
            begun: false,
            silent: false,
            spaces: [None; SPACES],
            last_seen: now,
            advertised: None,
            cycle: Cycle::new(now, &self.timing, uniform),
            withdrawn: false,
            miswired: 0,
            arrivals: PerNetwork::default(),
        };
        let ends = self.end_of(&active);
        if self.active.add(active, ends).is_none() {
            self.totals.candidates_refused += 1;
        }
    }

    /// The next message that is due.
    pub(crate) fn poll_advertisement(
        &mut self,
        now: Instant,
        out: &mut [u8; MAX_MESSAGE],
    ) -> Option<Outgoing> {
        while let Some((at, place)) = self.active.next_due()
            && at <= now
        {
            let active = self.active.get(place)?;
            let Subject { source: to, scope } = active.subject;
            let session = SessionId(place as u32);
            if active.withdrawn {
                let subject = active.subject;
                let len = Message::Withdrawal { subject }.encode(out);
                match self.stops {
                    true => self.take_leave(place),
                    false => self.end(place, EndCause::NotMonitored),
                }
                return Some(Outgoing { to, session, len });
            }
            let is_inactive = now > active.last_seen + self.timing.inactivity;
            if active.silent || self.stops || is_inactive {
                self.active.rest(place);
                continue;
            }
            let uniform = self.uniform(&scope);
            let timing = self.timing;
            let active = self.active.get_mut(place)?;
            let step = active.cycle.step(now, &timing, uniform);
            self.active.reschedule(place);
            if step == Step::Advertise {
                let len = self.advertisement(now, place)?.encode(out);
                return Some(Outgoing { to, session, len });
            }
        }
        None
    }

    /// The advertisement for the sender at `place`, which leaves at `now`.
    fn advertisement(&mut self, now: Instant, place: usize) -> Option<Message> {
        let grace = self.grace();
        let active = self.active.get_mut(place)?;
        active.advertised = Some(now);
        let subject = active.subject;
        // Who has not answered gets no key: what its sender would seal with it could come when the candidate is forgotten.
        let is_offered = !subject.scope.is_multicast() && active.standing != Standing::Candidate;
        let process = self.processes.of(subject.source).filter(|_| is_offered);
        let offer = process.and_then(|place| {
            self.processes.keep(place, now + grace);
            let process = self.processes.get(place).filter(|it| it.name != 0)?;
            let number = self.numbers.present();
            Some(Offer {
                process: process.name,
                tag: process.tag,
                number,
                material: self.root.material(number, process.tag),
            })
        });
        let every_ms = self.timing.advertise_every.as_millis().max(1);
        self.totals.advertised += 1;
        Some(Message::Advertisement {
            subject,
            every_ms: u32::try_from(every_ms).unwrap_or(u32::MAX),
            offer,
            networks: self.networks,
        })
    }

    /// What a sender answers on a secure channel.
    pub(crate) fn handle_message(
        &mut self,
        now: Instant,
        from: Origin,
        message: &[u8],
    ) -> Result<(), MessageError> {
        let Message::Acknowledgement {
            subject,
            process,
            space,
            networks,
        } = Message::decode(message)?
        else {
            return Err(MessageError::WrongKind);
        };
        let place = self.active.find(&subject).ok_or(MessageError::Unknown)?;
        let active = self.active.get(place).ok_or(MessageError::Unknown)?;
        if active.withdrawn || active.silent || self.stops {
            return Err(MessageError::Unknown);
        }
        let is_theirs = from.address == subject.source || self.is_known(subject.source, from.peer);
        if !is_theirs {
            return Err(MessageError::NotTheirs);
        }
        let is_unicast = !subject.scope.is_multicast();
        let was_candidate = active.standing == Standing::Candidate;
        let is_new = is_unicast && !self.is_last_process(subject.source, process);
        if is_new {
            self.add_process(now, &subject, process)?;
        }
        if !self.active.know(place, Some(from.peer)) {
            return Err(MessageError::TableFull);
        }
        self.note_peer(&subject, from.peer);
        self.acknowledged(now, place, is_new || is_unicast && was_candidate);
        self.tell_networks(place, subject, space, networks);
        Ok(())
    }

    /// Whether `peer` has shown before that it is the sender at `source`.
    fn is_known(&self, source: IpAddr, peer: PeerId) -> bool {
        let last = self.processes.of(source);
        let last = last.and_then(|place| self.processes.get(place));
        last.is_some_and(|process| process.peer == Some(peer))
    }

    fn is_last_process(&self, source: IpAddr, name: u64) -> bool {
        let last = self.processes.of(source);
        let last = last.and_then(|place| self.processes.get(place));
        last.is_some_and(|process| process.name == name)
    }

    /// A process of a sender has told its name: it gets a tag and keys of its own, so that nothing that another process has
    /// sealed opens as if it were of this one.
    fn add_process(
        &mut self,
        now: Instant,
        subject: &Subject,
        name: u64,
    ) -> Result<(), MessageError> {
        let mut drawn = (0..4).map(|_| self.root.tag(subject.source, self.random.next_u64()));
        let tag = drawn.find(|tag| self.processes.find(*tag).is_none());
        let tag = tag.ok_or(MessageError::TableFull)?;
        let mut process = Process::new(tag, Owner::Source(subject.source), now + self.grace());
        process.name = name;
        self.processes
            .add(process)
            .map(|_| ())
            .ok_or(MessageError::TableFull)
    }

    fn note_peer(&mut self, subject: &Subject, peer: PeerId) {
        // Who speaks for a group is one of its members, and need not be the sender itself.
        let place = self.processes.of(subject.source);
        if let Some(place) = place.filter(|_| !subject.scope.is_multicast())
            && let Some(process) = self.processes.get_mut(place)
        {
            process.peer = Some(peer);
        }
    }

    /// The advertisement of `place` has been acknowledged; `again` if the sender waits for another one with its key.
    fn acknowledged(&mut self, now: Instant, place: usize, again: bool) {
        let timing = self.timing;
        let Some(active) = self.active.get_mut(place) else {
            return;
        };
        if again {
            active.cycle.hurry(now);
        } else if active.cycle.acknowledge(now, &timing) {
            self.totals.suppressed += 1;
        }
        // For a group somebody else's was acknowledged: to the sender it is as if this one had advertised.
        active.advertised = active.advertised.max(Some(now));
        self.active.reschedule(place);
    }

    fn tell_networks(&mut self, place: usize, subject: Subject, space: u32, networks: Networks) {
        let Subject { source, scope } = subject;
        let session = SessionId(place as u32);
        let is_common = networks
            .iter()
            .any(|it| self.networks.get(it.ind).is_some());
        if !is_common {
            return self.notify(ReceiverEvent::NoCommonNetwork { source, scope });
        }
        let Some(active) = self.active.get_mut(place).filter(|_| space != 0) else {
            return;
        };
        let is_new = !core::mem::replace(&mut active.begun, true);
        if is_new {
            self.notify(ReceiverEvent::Begun {
                session,
                source,
                scope,
            });
        }
        // A member that has joined late has begun with a packet, and knows one of the sender's addresses only.
        if is_new || scope.is_multicast() {
            self.notify(ReceiverEvent::Networks { session, networks });
        }
    }

    /// What `peer` sends, or who is at `addresses`, is not opened any more.
    pub(crate) fn disown(&mut self, peer: PeerId, addresses: &[IpAddr]) {
        let mut from = 0;
        while let Some(place) = self.active.next_with_scope(from, |it| !it.is_multicast()) {
            from = place + 1;
            let is_theirs = |active: &Active| {
                active.standing == Standing::Known(Some(peer))
                    || addresses.contains(&active.subject.source)
            };
            if self.active.get(place).is_some_and(is_theirs) {
                self.end(place, EndCause::Disowned);
            }
        }
        self.processes.disown(peer, addresses);
        // It may have keys of an earlier process, too.
        self.recovers_until = Instant::ZERO;
    }

    /// Its sender knows that the driver stops, or was never asked for copies. What was on its way to this process still counts.
    fn take_leave(&mut self, place: usize) {
        self.active.rest(place);
        let Some(active) = self.active.get_mut(place) else {
            return;
        };
        active.withdrawn = false;
        let Subject { source, scope } = active.subject;
        if core::mem::take(&mut active.begun) {
            self.notify(ReceiverEvent::Ended {
                session: SessionId(place as u32),
                source,
                scope,
                cause: EndCause::NotMonitored,
            });
        }
    }

    /// Those that are not monitored any more, or all, are told that their packets are wanted as they are.
    pub(crate) fn withdraw(&mut self, all: bool) {
        self.stops |= all;
        let mut from = 0;
        while let Some(place) = self.active.next_with_scope(from, |_| true) {
            from = place + 1;
            let Some(active) = self.active.get_mut(place) else {
                continue;
            };
            let scope = active.subject.scope;
            if !all && self.is_monitored(&scope) {
                continue;
            }
            match self.active.get_mut(place) {
                Some(active) if active.advertised.is_some() => {
                    active.withdrawn = true;
                    self.active.reschedule(place);
                }
                // Nobody has to be told, but copies may be on their way all the same.
                _ if self.stops => self.take_leave(place),
                _ => self.end(place, EndCause::NotMonitored),
            }
        }
    }

    /// Every sender is advertised to at once, but groups with their back-off.
    pub(crate) fn advertise_all(&mut self, now: Instant) {
        let mut from = 0;
        while let Some(place) = self.active.next_with_scope(from, |_| true) {
            from = place + 1;
            self.begin_cycle(now, place);
        }
    }
}
