//! The control plane of a sender (iPRP, algorithm 3): what receivers advertise.

use super::liveness::Asking;
use super::peer_base::{Sealing, Session};
use super::standby::Standby;
use super::state::{State, network_event, push};
use crate::event::{EndCause, Origin, PeerId, SenderEvent, SessionId};
use crate::flow::Side;
use crate::ind::{MAX_NETWORKS, Network, Networks};
use crate::keys::Material;
use crate::message::{MAX_MESSAGE, Message, MessageError, Offer, Subject};
use crate::setup::Mode;
use bumpless_base::{Duration, Instant};
use bumpless_secure::Suite;
use core::net::IpAddr;

/// What an advertisement asks for.
struct Advertised<'a> {
    subject: Subject,
    ends: Instant,
    networks: &'a Networks,
}

/// The key that packets are to be sealed with.
struct Key {
    tag: u64,
    number: u32,
    group: bool,
    material: Material,
}

impl<S: Suite> State<S> {
    /// Takes what `from` says; the length of the answer that is to go back.
    pub(crate) fn handle_message(
        &mut self,
        now: Instant,
        from: Origin,
        message: &[u8],
        answer: &mut [u8; MAX_MESSAGE],
    ) -> Result<usize, MessageError> {
        match Message::decode(message)? {
            Message::Advertisement {
                subject,
                every_ms,
                offer,
                networks,
            } => {
                self.check_origin(&subject, from)?;
                let lifetime = Duration::from_millis(u64::from(every_ms)) * 3;
                let advertised = Advertised {
                    subject,
                    ends: now + lifetime,
                    networks: &networks,
                };
                if let Some(key) = self.key_for(&subject, offer)? {
                    self.advertised(now, from, &advertised, key)?;
                }
                Ok(self.acknowledgement(&subject).encode(answer))
            }
            Message::Withdrawal { subject } => {
                self.check_origin(&subject, from)?;
                // Other members of a group go on wanting it; without any, it ends by itself.
                let place = self.base.find(&subject.scope);
                if let Some(place) = place.filter(|_| !subject.scope.is_multicast()) {
                    self.end(place, EndCause::Withdrawn);
                }
                Ok(0)
            }
            Message::Acknowledgement { .. } => Err(MessageError::WrongKind),
        }
    }

    /// The sessions of `peer` end.
    pub(crate) fn disown(&mut self, peer: PeerId) {
        for place in 0..self.base.capacity() {
            let is_theirs = |session: &Session<S>| {
                session.peer == peer && !session.scope.destination.is_multicast()
            };
            if self.base.get(place).is_some_and(is_theirs) {
                self.end(place, EndCause::Disowned);
            }
        }
    }

    /// Nobody speaks for an address that is another's.
    fn check_origin(&self, subject: &Subject, from: Origin) -> Result<(), MessageError> {
        let scope = &subject.scope;
        if scope.is_multicast() {
            return match self.groups.contains(scope.destination) {
                true => Ok(()),
                false => Err(MessageError::NotTheirs),
            };
        }
        let session = self.base.find(scope).and_then(|place| self.base.get(place));
        let is_same = session.is_some_and(|session| session.peer == from.peer);
        match is_same || from.address == scope.destination {
            true => Ok(()),
            false => Err(MessageError::NotTheirs),
        }
    }

    /// The key to seal with, if the advertisement has brought one for this process, or the group has.
    fn key_for(
        &self,
        subject: &Subject,
        offer: Option<Offer>,
    ) -> Result<Option<Key>, MessageError> {
        let destination = subject.scope.destination;
        if subject.scope.is_multicast() {
            let sealing = self.groups.sealing(destination, self.process);
            let (tag, material) = sealing.ok_or(MessageError::NotTheirs)?;
            return Ok(Some(Key {
                tag,
                number: 0,
                group: true,
                material,
            }));
        }
        let offer = offer.filter(|offer| offer.process == self.process);
        Ok(offer.map(|offer| Key {
            tag: offer.tag,
            number: offer.number,
            group: false,
            material: offer.material,
        }))
    }

    fn advertised(
        &mut self,
        now: Instant,
        from: Origin,
        advertised: &Advertised<'_>,
        key: Key,
    ) -> Result<(), MessageError> {
        match self.base.find(&advertised.subject.scope) {
            Some(place) => self.refresh(place, from, advertised, key),
            None => self.begin(now, from, advertised, key),
        }
    }

    /// A session for what was not replicated, if there is a network that both have.
    fn begin(
        &mut self,
        now: Instant,
        from: Origin,
        advertised: &Advertised<'_>,
        key: Key,
    ) -> Result<(), MessageError> {
        let own = self.networks;
        let scope = advertised.subject.scope;
        let group = group_of(&scope.destination);
        let reaches = |it: &Network| own.reaches(it.ind, group.unwrap_or(it.address));
        if !advertised.networks.iter().any(|it| reaches(&it)) {
            return Ok(());
        }
        if self.base.is_full() {
            self.totals.sessions_refused += 1;
            return Err(MessageError::TableFull);
        }
        let space = self.space_for(scope.side)?;
        let mut session = Session {
            scope,
            peer: from.peer,
            sealing: Sealing::new(key.tag, key.number, key.group, key.material),
            space,
            next: 0,
            paths: [None; MAX_NETWORKS],
            mode: Mode::Redundant,
            standby: Standby::default(),
            asking: Asking::default(),
            last_flow: None,
            ends: advertised.ends.max(now),
        };
        session.update(advertised.networks, &own, group, |_, _| {});
        let place = self.base.add(session).ok_or(MessageError::TableFull)?;
        let id = SessionId(place as u32);
        self.notify(SenderEvent::Begun {
            session: id,
            scope,
            peer: from.peer,
        });
        for network in advertised.networks.iter().filter(reaches) {
            self.notify(network_event(place, network.ind, true));
        }
        Ok(())
    }

    fn refresh(
        &mut self,
        place: usize,
        from: Origin,
        advertised: &Advertised<'_>,
        key: Key,
    ) -> Result<(), MessageError> {
        let scope = advertised.subject.scope;
        let own = self.networks;
        let is_other_tag = self
            .base
            .get(place)
            .is_some_and(|session| session.sealing.tag != key.tag);
        let space = match is_other_tag {
            true => Some(self.space_for(scope.side)?),
            false => None,
        };
        let (events, totals) = (&mut self.events, &mut self.totals);
        let Some(session) = self.base.get_mut(place) else {
            return Ok(());
        };
        session.peer = from.peer;
        session.ends = session.ends.max(advertised.ends);
        let before = session.space;
        if is_other_tag || session.sealing.number != key.number {
            let sealing = Sealing::new(key.tag, key.number, key.group, key.material);
            session.reseal(sealing, space);
        }
        if is_other_tag {
            // What was kept has numbers of the space before; its receiver has forgotten them.
            totals.kept_at_end += self.keep.drop_all(&mut session.standby.kept);
        }
        let group = group_of(&scope.destination);
        session.update(advertised.networks, &own, group, |ind, is_there| {
            push(events, totals, network_event(place, ind, is_there));
        });
        let is_left = session.paths.iter().any(Option::is_some);
        let is_resumed = session.asking.heard();
        let space = session.space;
        if space != before {
            self.base.move_space(place, before, space);
        }
        if !is_left {
            self.end(place, EndCause::NoNetwork);
        } else if is_resumed {
            self.notify(SenderEvent::Resumed {
                session: SessionId(place as u32),
            });
        }
        Ok(())
    }

    fn space_for(&mut self, side: Side) -> Result<u32, MessageError> {
        let side = u32::from(side == Side::Source);
        self.next_space(side).ok_or(MessageError::TableFull)
    }

    fn acknowledgement(&self, subject: &Subject) -> Message {
        let session = self.base.find(&subject.scope);
        let session = session.and_then(|place| self.base.get(place));
        Message::Acknowledgement {
            subject: *subject,
            process: self.process,
            space: session.map_or(0, |session| session.space),
            networks: self.networks,
        }
    }
}

/// Where all copies go, if it is a group.
fn group_of(destination: &IpAddr) -> Option<IpAddr> {
    Some(*destination).filter(IpAddr::is_multicast)
}
