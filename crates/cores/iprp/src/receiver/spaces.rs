//! Sequence-number spaces of senders, from the first packet of each on (iPRP, algorithm 6).

use super::active::{Active, SPACES, Space, Standing};
use super::cycle::Cycle;
use super::processes::Owner;
use super::state::State;
use crate::counters::{Discard, PerNetwork};
use crate::event::{ReceiverEvent, SessionId};
use crate::flow::{Flow, Scope, Side};
use crate::header::Header;
use crate::message::Subject;
use bumpless_base::Instant;
use bumpless_secure::Suite;

/// On which side the port is that a session's number names by its lowest bit.
pub(crate) const fn side_of(space: u32) -> Side {
    match space & 1 {
        0 => Side::Destination,
        _ => Side::Source,
    }
}

impl<S: Suite> State<S> {
    /// Finds the sender of a sequence-number space that has not been seen, and gives the space a window.
    #[cold]
    pub(super) fn open_space(
        &mut self,
        now: Instant,
        header: &Header,
        process: usize,
        flow: &Flow,
    ) -> Result<(usize, usize), Discard> {
        let subject = Subject {
            source: flow.source,
            scope: Scope::of(flow, side_of(header.space)),
        };
        let known = self.processes.get(process).ok_or(Discard::UnknownKey)?;
        let (owner, floor, name, tag) = (known.owner, known.floor, known.name, known.tag);
        let is_theirs = match owner {
            Owner::Source(source) => source == flow.source,
            Owner::Group(group) => group == flow.destination,
        };
        if !is_theirs || !self.is_monitored(&subject.scope) {
            return Err(Discard::NotMonitored);
        }
        let place = match self.active.find(&subject) {
            Some(place) => place,
            // Of a process that has answered on a secure channel every sender is known that has not been forgotten.
            None if name != 0 || header.space < floor => return Err(Discard::VeryLate),
            None => self.add_known(now, subject)?,
        };
        let active = self.active.get(place).ok_or(Discard::TableFull)?;
        let mut same = active.spaces.iter().flatten().filter(|it| it.tag == tag);
        let is_last = match owner {
            Owner::Source(source) => self.processes.of(source) == Some(process),
            Owner::Group(_) => true,
        };
        let has_room = active.spaces.iter().any(Option::is_none);
        let is_next = same.all(|space| space.number < header.space) && header.space >= floor;
        if !is_next || !(is_last || has_room) {
            // A session that has ended, or one of a process before the last: both were heard to their end.
            return Err(Discard::VeryLate);
        }
        if !self.active.know(place, None) {
            return Err(Discard::TableFull);
        }
        if self.active.get(place).is_some_and(|active| active.silent) {
            self.wake(now, place);
        }
        let dropped = self.active.add_space(place, tag, header.space);
        // Where a later one of the process is known, that says enough, and other scopes' spaces are not concerned.
        let is_old = |dropped: &Space| {
            let spaces = self.active.get(place).map(|active| active.spaces);
            let mut tags = spaces.iter().flatten().flatten().map(|space| space.tag);
            header.group && tags.all(|tag| tag != dropped.tag)
        };
        if let Some(dropped) = dropped.filter(is_old) {
            self.raise_floor(&dropped);
        }
        self.begin(place);
        Ok((place, 0))
    }

    /// The sender at `place` has had a packet judged as the first: its session is told, once.
    pub(super) fn begin(&mut self, place: usize) {
        let Some(active) = self.active.get_mut(place) else {
            return;
        };
        if !self.stops && !core::mem::replace(&mut active.begun, true) {
            let Subject { source, scope } = active.subject;
            self.notify(ReceiverEvent::Begun {
                session: SessionId(place as u32),
                source,
                scope,
            });
        }
    }

    /// Adds a sender that has shown itself by a key.
    fn add_known(&mut self, now: Instant, subject: Subject) -> Result<usize, Discard> {
        let uniform = self.uniform(&subject.scope);
        let active = Active {
            subject,
            standing: Standing::Known(None),
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
        self.active.add(active, ends).ok_or(Discard::TableFull)
    }
}
