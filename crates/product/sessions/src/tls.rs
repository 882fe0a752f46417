//! TLS 1.3 and who is at the other end. No socket and no clock: bytes come in and go out.

use std::fmt;
use std::io::{Read, Write};

use bumpless_pki::rustls::pki_types::{CertificateDer, ServerName};
use bumpless_pki::rustls::{ClientConnection, Connection, ServerConnection};
use bumpless_pki::{Expected, Identity, NodeName, admitted_by};
use zeroize::Zeroizing;

use crate::ended::SessionError;

/// Read at a time of what was said.
const CHUNK: usize = 4096;
/// Room from the start for what was said and is no whole message yet: where short messages have keys in them, growing would
/// leave these where they were.
const ROOM: usize = 32 * 1024;

/// TLS at one end of a session.
pub struct Tls {
    connection: Connection,
    /// Who may be at the other end.
    expected: Expected,
    /// What is spoken, as ALPN names it (RFC 7301).
    protocol: &'static [u8],
    /// Who it is, once that is known.
    other: Option<NodeName>,
    arrived: Zeroizing<Vec<u8>>,
}

/// What bytes that have come have brought about.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Step {
    /// It is known from here on who is at the other end.
    pub recognised: bool,
    closed: bool,
    stuck: bool,
}

impl Step {
    /// To be asked when what was said has been read.
    ///
    /// # Errors
    /// The other end has ended the session, or says what is neither TLS nor taken.
    pub const fn end(self) -> Result<(), SessionError> {
        match (self.closed, self.stuck) {
            (true, _) => Err(SessionError::Closed),
            (false, true) => Err(SessionError::Malformed),
            (false, false) => Ok(()),
        }
    }
}

impl Tls {
    /// Of a session that this end begins with who is `expected`, in which `protocol` is spoken. No message has more than
    /// `longest` bytes.
    ///
    /// # Errors
    /// The library refuses its setup.
    pub fn call(
        identity: &Identity,
        expected: impl Into<Expected>,
        (protocol, longest): (&'static [u8], usize),
    ) -> Result<Self, SessionError> {
        let expected = expected.into();
        // Not sent, and not what the certificate is compared with.
        let name = ServerName::try_from("other.invalid").map_err(|_| SessionError::Malformed)?;
        let config = identity.client_config_of(expected.clone(), protocol)?;
        let connection = ClientConnection::new(config, name)?.into();
        Ok(Self::new(connection, expected, (protocol, longest)))
    }

    /// Of a session that one of those `expected` begins with this end.
    ///
    /// # Errors
    /// As [`Tls::call`].
    pub fn answer(
        identity: &Identity,
        expected: impl Into<Expected>,
        (protocol, longest): (&'static [u8], usize),
    ) -> Result<Self, SessionError> {
        let expected = expected.into();
        let config = identity.server_config_of(expected.clone(), protocol)?;
        let connection = ServerConnection::new(config)?.into();
        Ok(Self::new(connection, expected, (protocol, longest)))
    }

    fn new(
        mut connection: Connection,
        expected: Expected,
        (protocol, longest): (&'static [u8], usize),
    ) -> Self {
        connection.set_buffer_limit(Some(4 * longest));
        Self {
            connection,
            expected,
            protocol,
            other: None,
            arrived: Zeroizing::new(Vec::with_capacity(ROOM)),
        }
    }

    /// Who is at the other end, once its certificate has been believed.
    pub const fn other(&self) -> Option<&NodeName> {
        self.other.as_ref()
    }

    /// The certificate of who is at the other end and those between it and its authority, once they have been believed.
    pub fn shown(&self) -> &[CertificateDer<'static>] {
        let shown = self.other.as_ref().and(self.connection.peer_certificates());
        shown.unwrap_or_default()
    }

    /// Takes some of `bytes` that have come.
    ///
    /// # Errors
    /// The session is over. What [`Tls::transmit`] gives then tells the other end why.
    pub fn feed(&mut self, bytes: &mut &[u8]) -> Result<Step, SessionError> {
        // Reading from memory cannot fail; a full buffer is emptied by what follows.
        let read = self.connection.read_tls(bytes).unwrap_or(0);
        let closed = self.connection.process_new_packets()?.peer_has_closed();
        let recognised = self.other.is_none() && !self.connection.is_handshaking();
        if recognised {
            let other = admitted_by(&self.connection, &self.expected, self.protocol);
            self.other = Some(other.map_err(SessionError::Refused)?);
        }
        Ok(Step {
            recognised,
            closed,
            stuck: read == 0,
        })
    }

    /// Adds some of what was said to [`Tls::arrived`]; `false`: there is no more. Nothing is there before it is known who says
    /// it.
    pub fn read(&mut self) -> bool {
        let mut chunk = Zeroizing::new([0; CHUNK]);
        match self.connection.reader().read(&mut chunk[..]) {
            Ok(read @ 1..) => {
                self.arrived.extend_from_slice(&chunk[..read]);
                true
            }
            _ => false,
        }
    }

    /// What was said and has not been taken from here.
    pub fn arrived(&mut self) -> &mut Zeroizing<Vec<u8>> {
        &mut self.arrived
    }

    /// Adds what is to be sent to `out`.
    pub fn transmit(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() && self.connection.write_tls(&mut *out).is_ok() {}
    }

    /// Says `bytes` once the handshake is complete. Returns whether there was room for them: who does not take what is said
    /// is not waited for.
    #[must_use]
    pub fn say(&mut self, bytes: &[u8]) -> bool {
        matches!(self.connection.writer().write(bytes), Ok(written) if written == bytes.len())
    }

    /// Fills `secret` with what both ends of the session know, and nobody else, for the use that `label` names (RFC 8446, 7.5).
    ///
    /// # Errors
    /// The handshake is not complete.
    pub fn export(&self, secret: &mut [u8], label: &[u8]) -> Result<(), SessionError> {
        self.connection
            .export_keying_material(secret, label, None)?;
        Ok(())
    }

    /// Ends the session; [`Tls::transmit`] gives what tells so.
    pub fn close(&mut self) {
        self.connection.send_close_notify();
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("other", &self.other)
            .finish_non_exhaustive()
    }
}
