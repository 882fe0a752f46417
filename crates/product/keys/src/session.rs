//! One session of a member with a server.

use bumpless_pki::rustls::pki_types::CertificateDer;
use bumpless_pki::{Expected, Identity, NodeName};
use bumpless_sessions::{Conversation, SessionError, Tls};
use zeroize::Zeroizing;

use crate::message::{self, LONGEST, Malformed, Message};

/// The protocol over TLS, as ALPN names it (RFC 7301). Its number is the version.
pub const PROTOCOL: &[u8] = b"bumpless-keys/1";

impl From<Malformed> for SessionError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// A session.
#[derive(Debug)]
pub struct Session {
    tls: Tls,
}

impl Session {
    /// A session that this end begins with who is `expected`.
    ///
    /// # Errors
    /// The library refuses its setup.
    pub fn call(identity: &Identity, expected: impl Into<Expected>) -> Result<Self, SessionError> {
        Tls::call(identity, expected, (PROTOCOL, LONGEST)).map(|tls| Self { tls })
    }

    /// A session that one of those `expected` begins.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn answer(
        identity: &Identity,
        expected: impl Into<Expected>,
    ) -> Result<Self, SessionError> {
        Tls::answer(identity, expected, (PROTOCOL, LONGEST)).map(|tls| Self { tls })
    }

    /// Who is at the other end, once its certificate has been believed.
    pub const fn other(&self) -> Option<&NodeName> {
        self.tls.other()
    }

    /// The certificate of who is at the other end and those between it and its authority, once they have been believed.
    pub fn shown(&self) -> &[CertificateDer<'static>] {
        self.tls.shown()
    }
}

impl Conversation for Session {
    type Message = Message;
    type Event = Message;
    const LONGEST: usize = LONGEST;

    fn receive(
        &mut self,
        mut bytes: &[u8],
        heard: &mut Vec<Message>,
    ) -> Result<bool, SessionError> {
        let before = heard.len();
        while !bytes.is_empty() {
            let step = self.tls.feed(&mut bytes)?;
            while self.tls.read() {
                while let Some(message) = message::take(self.tls.arrived())? {
                    heard.push(message);
                }
            }
            step.end()?;
        }
        Ok(heard.len() > before)
    }

    fn say(&mut self, message: &Message) -> bool {
        let mut bytes = Zeroizing::new(Vec::new());
        message::write(message, &mut bytes);
        self.tls.say(&bytes)
    }

    /// Questions come every second, and answers follow them.
    fn alive(&self) -> Option<Message> {
        None
    }

    fn transmit(&mut self, out: &mut Vec<u8>) {
        self.tls.transmit(out);
    }

    fn close(&mut self) {
        self.tls.close();
    }
}
