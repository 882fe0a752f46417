//! One session with one node: TLS 1.3, then messages. No socket and no clock: bytes come in and go out.

use bumpless_pki::rustls::pki_types::CertificateDer;
use bumpless_pki::{Expected, Identity, NodeName, PROTOCOL};
use bumpless_sessions::{Conversation, SessionError, Tls};
use zeroize::Zeroizing;

use crate::message::{self, LONGEST, Malformed, Message, Profile};

/// What both ends derive the packets' secret from the session with (RFC 8446, 7.5).
const EXPORTER: &[u8] = b"EXPORTER-bumpless-packets";

/// 32 bytes that both ends of a session know, and nobody else. Overwritten when dropped.
pub type SessionSecret = Zeroizing<[u8; 32]>;

/// What has happened in a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Both ends are who they say.
    Agreed {
        /// Who is at the other end, as its certificate says.
        partner: NodeName,
        /// What it says of itself.
        profile: Profile,
        /// For packets between both.
        secret: SessionSecret,
    },
    /// The other end opens with the session's secret.
    Ready,
    /// The other end seals with the session's secret.
    Sealing,
    /// The other end asks for the change to this configuration.
    Proposed(String),
    /// What came of this end's proposal.
    Answered(Result<(), String>),
    /// The other end asks to give up what is prepared.
    Withdrawn,
}

/// A session with one of some nodes.
#[derive(Debug)]
pub struct Session {
    tls: Tls,
    own: Profile,
    agreed: bool,
    /// What the other end has said, which it says once.
    ready: bool,
    sealing: bool,
}

impl From<Malformed> for SessionError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl Session {
    /// A session that this node begins with who is `expected`.
    ///
    /// # Errors
    /// The library refuses its setup.
    pub fn call(
        identity: &Identity,
        expected: impl Into<Expected>,
        own: Profile,
    ) -> Result<Self, SessionError> {
        Tls::call(identity, expected, (PROTOCOL, LONGEST)).map(|tls| Self::new(tls, own))
    }

    /// A session that one of those `expected` begins with this node.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn answer(
        identity: &Identity,
        expected: impl Into<Expected>,
        own: Profile,
    ) -> Result<Self, SessionError> {
        Tls::answer(identity, expected, (PROTOCOL, LONGEST)).map(|tls| Self::new(tls, own))
    }

    fn new(tls: Tls, own: Profile) -> Self {
        Self {
            tls,
            own,
            agreed: false,
            ready: false,
            sealing: false,
        }
    }

    /// Who is at the other end, once its certificate has been believed.
    pub const fn partner(&self) -> Option<&NodeName> {
        self.tls.other()
    }

    /// The certificate of who is at the other end and those between it and its authority, once they have been believed.
    pub fn shown(&self) -> &[CertificateDer<'static>] {
        self.tls.shown()
    }

    fn take(&mut self, message: Message, events: &mut Vec<Event>) -> Result<(), SessionError> {
        match (message, self.agreed) {
            (Message::Hello(profile), false) => {
                self.agreed = true;
                events.push(self.agree(profile)?);
            }
            (Message::Ready, true) if !self.ready => {
                self.ready = true;
                events.push(Event::Ready);
            }
            (Message::Sealing, true) if self.ready && !self.sealing => {
                self.sealing = true;
                events.push(Event::Sealing);
            }
            (Message::Alive, true) => {}
            (Message::Propose { text }, true) => events.push(Event::Proposed(text)),
            (Message::Proposed { refused }, true) => {
                events.push(Event::Answered(refused.map_or(Ok(()), Err)));
            }
            (Message::Withdraw, true) => events.push(Event::Withdrawn),
            _ => return Err(SessionError::Malformed),
        }
        Ok(())
    }

    fn agree(&self, profile: Profile) -> Result<Event, SessionError> {
        let partner = self.partner().cloned().ok_or(SessionError::Malformed)?;
        let called = format!("{}.{}", profile.node, profile.pair);
        if !called.eq_ignore_ascii_case(partner.short()) {
            return Err(SessionError::OtherName(called));
        }
        let mut secret = Zeroizing::new([0; 32]);
        self.tls.export(&mut secret[..], EXPORTER)?;
        Ok(Event::Agreed {
            partner,
            profile,
            secret,
        })
    }
}

impl Conversation for Session {
    type Message = Message;
    type Event = Event;
    const LONGEST: usize = LONGEST;

    fn receive(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<bool, SessionError> {
        while !bytes.is_empty() {
            let step = self.tls.feed(&mut bytes)?;
            if step.recognised {
                let hello = Message::Hello(self.own.clone());
                self.say(&hello);
            }
            while self.tls.read() {
                while let Some(message) = message::take(self.tls.arrived())? {
                    self.take(message, events)?;
                }
            }
            step.end()?;
        }
        Ok(self.agreed)
    }

    fn say(&mut self, message: &Message) -> bool {
        let mut bytes = Vec::new();
        message::write(message, &mut bytes);
        self.tls.say(&bytes)
    }

    fn alive(&self) -> Option<Message> {
        self.agreed.then_some(Message::Alive)
    }

    fn transmit(&mut self, out: &mut Vec<u8>) {
        self.tls.transmit(out);
    }

    fn close(&mut self) {
        self.tls.close();
    }
}
