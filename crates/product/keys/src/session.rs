//! One session of a member with a server: TLS 1.3, then messages. No socket and no clock: bytes come in and go out.

use std::fmt;
use std::io::{Read, Write};

use bumpless_pki::rustls::pki_types::{CertificateDer, ServerName};
use bumpless_pki::rustls::{self, ClientConnection, Connection, ServerConnection};
use bumpless_pki::{Expected, Identity, NodeName, Refusal, admitted_by, explain};
use zeroize::Zeroizing;

use crate::message::{self, LONGEST, Malformed, Message};

/// The protocol over TLS, as ALPN names it (RFC 7301). Its number is the version.
pub const PROTOCOL: &[u8] = b"bumpless-keys/1";

/// Most that waits to be enciphered, or to be understood.
const ROOM: usize = 4 * LONGEST;

/// Why a session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The other end is not believed, does not believe this one, or does not speak TLS.
    Refused(Refusal),
    /// It says something that it must not.
    Malformed,
    /// It has ended the session.
    Closed,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Malformed => f.write_str(
                "it says what this version does not understand; run one version of bumpless on servers and members",
            ),
            Self::Closed => f.write_str("it has ended the session"),
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

/// A session.
pub struct Session {
    tls: Connection,
    expected: Expected,
    /// Who is at the other end, once that is known.
    other: Option<NodeName>,
    arrived: Zeroizing<Vec<u8>>,
}

impl Session {
    /// A session that this end begins with who is `expected`.
    ///
    /// # Errors
    /// The library refuses its setup.
    pub fn call(identity: &Identity, expected: impl Into<Expected>) -> Result<Self, SessionError> {
        let expected = expected.into();
        // Not sent, and not what the certificate is compared with.
        let name = ServerName::try_from("server.invalid").map_err(|_| SessionError::Malformed)?;
        let config = identity.client_config_of(expected.clone(), PROTOCOL)?;
        let tls = ClientConnection::new(config, name)?.into();
        Ok(Self::new(tls, expected))
    }

    /// A session that one of those `expected` begins.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn answer(
        identity: &Identity,
        expected: impl Into<Expected>,
    ) -> Result<Self, SessionError> {
        let expected = expected.into();
        let config = identity.server_config_of(expected.clone(), PROTOCOL)?;
        Ok(Self::new(ServerConnection::new(config)?.into(), expected))
    }

    fn new(mut tls: Connection, expected: Expected) -> Self {
        tls.set_buffer_limit(Some(ROOM));
        Self {
            tls,
            expected,
            other: None,
            // It never grows: growing would leave keys where they were.
            arrived: Zeroizing::new(Vec::with_capacity(ROOM)),
        }
    }

    /// Who is at the other end, once its certificate has been believed.
    pub const fn other(&self) -> Option<&NodeName> {
        self.other.as_ref()
    }

    /// The certificate of who is at the other end and those between it and its authority, once they have been believed.
    pub fn shown(&self) -> &[CertificateDer<'static>] {
        let shown = self.other.as_ref().and(self.tls.peer_certificates());
        shown.unwrap_or_default()
    }

    /// Takes `bytes` that have come; what was said by them goes to `heard`.
    ///
    /// # Errors
    /// The session is over. What [`Session::transmit`] gives then tells the other end why.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        heard: &mut Vec<Message>,
    ) -> Result<(), SessionError> {
        while !bytes.is_empty() {
            // Reading from memory cannot fail; a full buffer is emptied by what follows.
            let read = self.tls.read_tls(&mut bytes).unwrap_or(0);
            let closed = self.tls.process_new_packets()?.peer_has_closed();
            self.recognise()?;
            self.hear(heard)?;
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

    /// Says `message`. Returns whether there was room for it: who does not take what is said is not waited for.
    pub fn say(&mut self, message: &Message) -> bool {
        let mut bytes = Zeroizing::new(Vec::new());
        message::write(message, &mut bytes);
        matches!(self.tls.writer().write(&bytes), Ok(written) if written == bytes.len())
    }

    /// Ends the session; [`Session::transmit`] gives what tells so.
    pub fn close(&mut self) {
        self.tls.send_close_notify();
    }

    fn recognise(&mut self) -> Result<(), SessionError> {
        if self.other.is_none() && !self.tls.is_handshaking() {
            let other = admitted_by(&self.tls, &self.expected, PROTOCOL);
            self.other = Some(other.map_err(SessionError::Refused)?);
        }
        Ok(())
    }

    fn hear(&mut self, heard: &mut Vec<Message>) -> Result<(), SessionError> {
        let mut chunk = Zeroizing::new([0; LONGEST]);
        // Nothing is read before it is known who says it: the library gives nothing before its handshake is complete.
        while let Ok(read @ 1..) = self.tls.reader().read(&mut chunk[..]) {
            self.arrived.extend_from_slice(&chunk[..read]);
            while let Some(message) = message::take(&mut self.arrived)? {
                heard.push(message);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("other", &self.other)
            .finish_non_exhaustive()
    }
}
