//! One session with one node: TLS 1.3, then messages. No socket and no clock: bytes come in and go out.

use std::fmt;
use std::io::{Read, Write};

use bumpless_pki::rustls::pki_types::{CertificateDer, ServerName};
use bumpless_pki::rustls::{self, ClientConnection, Connection, ServerConnection};
use bumpless_pki::{Expected, Identity, NodeName, Refusal, admitted, explain};
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

/// Why a session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The other end is not believed, does not believe this one, or does not speak TLS.
    Refused(Refusal),
    /// It says something that it must not.
    Malformed,
    /// It says that it is another one than its certificate says, or of another pair. What it says.
    OtherName(String),
    /// It has ended the session.
    Closed,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Malformed => f.write_str(
                "the partner says what this version does not understand; run one version of bumpless on both nodes",
            ),
            Self::OtherName(said) => write!(
                f,
                "the partner says that it is {said}, and its certificate is another's; give each node its own certificate and name"
            ),
            Self::Closed => f.write_str("the partner has ended the session"),
        }
    }
}

impl std::error::Error for SessionError {}

impl From<rustls::Error> for SessionError {
    fn from(error: rustls::Error) -> Self {
        Self::Refused(explain(&error))
    }
}

impl From<Malformed> for SessionError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// A session with one of some nodes.
pub struct Session {
    tls: Connection,
    /// Who may be at the other end.
    expected: Expected,
    own: Profile,
    /// Said when the handshake is complete.
    greeted: bool,
    /// Who it is, once that is known.
    partner: Option<NodeName>,
    agreed: bool,
    /// What the other end has said, which it says once.
    ready: bool,
    sealing: bool,
    arrived: Vec<u8>,
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
        let expected = expected.into();
        // Not sent, and not what the certificate is compared with.
        let name = ServerName::try_from("partner.invalid").map_err(|_| SessionError::Malformed)?;
        let config = identity.client_config(expected.clone())?;
        let tls = ClientConnection::new(config, name)?.into();
        Ok(Self::new(tls, expected, own))
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
        let expected = expected.into();
        let tls = ServerConnection::new(identity.server_config(expected.clone())?)?.into();
        Ok(Self::new(tls, expected, own))
    }

    fn new(mut tls: Connection, expected: Expected, own: Profile) -> Self {
        tls.set_buffer_limit(Some(4 * LONGEST));
        Self {
            tls,
            expected,
            own,
            greeted: false,
            partner: None,
            agreed: false,
            ready: false,
            sealing: false,
            arrived: Vec::new(),
        }
    }

    /// Who is at the other end, once its certificate has been believed.
    pub const fn partner(&self) -> Option<&NodeName> {
        self.partner.as_ref()
    }

    /// The certificate of who is at the other end and those between it and its authority, once they have been believed.
    pub fn shown(&self) -> Option<&[CertificateDer<'static>]> {
        self.tls.peer_certificates()
    }

    /// Takes `bytes` that have come; what has happened by them goes to `events`.
    ///
    /// # Errors
    /// The session is over. What [`Session::transmit`] gives then tells the other end why.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), SessionError> {
        while !bytes.is_empty() {
            // Reading from memory cannot fail; a full buffer is emptied by what follows.
            let read = self.tls.read_tls(&mut bytes).unwrap_or(0);
            let closed = self.tls.process_new_packets()?.peer_has_closed();
            self.greet()?;
            self.hear(events)?;
            if closed {
                return Err(SessionError::Closed);
            }
            if read == 0 {
                return Err(SessionError::Malformed);
            }
        }
        Ok(())
    }

    /// Adds what is to be sent to `out`.
    pub fn transmit(&mut self, out: &mut Vec<u8>) {
        while self.tls.wants_write() && self.tls.write_tls(&mut *out).is_ok() {}
    }

    /// Says `message` once the handshake is complete.
    pub fn say(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        message::write(message, &mut bytes);
        // A full buffer, of messages that the other end does not take, ends the session for its silence.
        let _ = self.tls.writer().write_all(&bytes);
    }

    /// Ends the session; [`Session::transmit`] gives what tells so.
    pub fn close(&mut self) {
        self.tls.send_close_notify();
    }

    fn greet(&mut self) -> Result<(), SessionError> {
        if self.greeted || self.tls.is_handshaking() {
            return Ok(());
        }
        let partner = admitted(&self.tls, &self.expected).map_err(SessionError::Refused)?;
        self.partner = Some(partner);
        self.greeted = true;
        let hello = Message::Hello(self.own.clone());
        self.say(&hello);
        Ok(())
    }

    fn hear(&mut self, events: &mut Vec<Event>) -> Result<(), SessionError> {
        let mut chunk = [0; 4096];
        // The library keeps no more than some records for its reader.
        while let Ok(read @ 1..) = self.tls.reader().read(&mut chunk) {
            self.arrived.extend_from_slice(&chunk[..read]);
            while let Some(message) = message::take(&mut self.arrived)? {
                self.take(message, events)?;
            }
        }
        Ok(())
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
        let partner = self.partner.clone().ok_or(SessionError::Malformed)?;
        let called = format!("{}.{}", profile.node, profile.pair);
        if !called.eq_ignore_ascii_case(partner.short()) {
            return Err(SessionError::OtherName(called));
        }
        let mut secret = Zeroizing::new([0; 32]);
        self.tls
            .export_keying_material(&mut secret[..], EXPORTER, None)?;
        Ok(Event::Agreed {
            partner,
            profile,
            secret,
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("partner", &self.partner)
            .field("agreed", &self.agreed)
            .finish_non_exhaustive()
    }
}
