//! Who is at the other end: sessions without stable storage (clauses ).
//!
//! A process draws a session when it starts. It adopts a session of its partner only from a
//! heartbeat that echoes its own latest challenge, and then draws another challenge. So whatever
//! an earlier incarnation sent, however late it arrives or is replayed, is never taken again. A
//! session that was replaced and is adopted again belongs to a process that is still alive: two
//! use the partner's name.

use bumpless_base::Random;
use bumpless_base::random::mix64;
use bumpless_wire::HeartbeatHeader;

/// What a heartbeat means for the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Of the adopted session.
    Known,
    /// Its session was adopted just now.
    Adopted,
    /// As adopted, and it had been replaced by another one before: both their processes live.
    Returned,
    /// Of another session, with nothing to prove that it is not an old one.
    Foreign,
}

/// How many replaced sessions are remembered.
const REMEMBERED: usize = 4;

/// The session with one partner.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Session {
    own: u64,
    challenge: u64,
    random: Random,
    /// The partner's session that counts, 0 for none.
    adopted: u64,
    /// Sessions that were adopted before this one, latest first; 0 for none.
    replaced: [u64; REMEMBERED],
    /// The partner said in the adopted session that it has adopted ours.
    mutual: bool,
    /// The tag of state transfer, kept because it is asked for far more often than the sessions change.
    tag: Option<u32>,
    /// The partner's challenge that this node echoes, 0 for none.
    heard_challenge: u64,
}

impl Session {
    pub(crate) fn new(own: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            own,
            challenge: nonzero(&mut random),
            random,
            adopted: 0,
            replaced: [0; REMEMBERED],
            mutual: false,
            tag: None,
            heard_challenge: 0,
        }
    }

    /// Judges a heartbeat of this partner with the right pair and configuration.
    pub(crate) fn admit(&mut self, heartbeat: &HeartbeatHeader) -> Admission {
        self.hear_challenge(heartbeat);
        let admission = if heartbeat.session == self.adopted {
            Admission::Known
        } else if self.is_fresh(heartbeat) {
            self.adopt(heartbeat.session)
        } else {
            return Admission::Foreign;
        };
        let mutual = self.mutual || heartbeat.echo_session == self.own;
        if mutual != self.mutual || admission != Admission::Known {
            self.mutual = mutual;
            self.tag = mutual.then(|| self.mixed());
        }
        admission
    }

    fn adopt(&mut self, session: u64) -> Admission {
        let returned = self.replaced.contains(&session);
        self.replaced.rotate_right(1);
        self.replaced[0] = core::mem::replace(&mut self.adopted, session);
        self.mutual = false;
        self.challenge = nonzero(&mut self.random);
        if returned {
            Admission::Returned
        } else {
            Admission::Adopted
        }
    }

    /// Remembers what to echo, whoever sent it: only its author can use the echo.
    pub(crate) fn hear_challenge(&mut self, heartbeat: &HeartbeatHeader) {
        self.heard_challenge = heartbeat.challenge;
    }

    /// Whether the heartbeat was provably sent after our latest challenge was drawn.
    pub(crate) fn is_fresh(&self, heartbeat: &HeartbeatHeader) -> bool {
        self.is_answered(heartbeat)
            && (heartbeat.echo_session == 0 || heartbeat.echo_session == self.own)
    }

    /// Whether the heartbeat is an answer to this process: it was sent after our latest challenge was drawn, by who
    /// may still take us for an earlier process.
    pub(crate) fn is_answered(&self, heartbeat: &HeartbeatHeader) -> bool {
        heartbeat.session != 0 && heartbeat.echo_challenge == self.challenge
    }

    /// Whether the partner, in its adopted session, speaks to this incarnation.
    pub(crate) fn addresses_us(&self, heartbeat: &HeartbeatHeader) -> bool {
        heartbeat.session == self.adopted && heartbeat.echo_session == self.own
    }

    /// The partner's adopted session, 0 for none.
    pub(crate) const fn adopted(&self) -> u64 {
        self.adopted
    }
    /// Whether both have adopted each other.
    pub(crate) const fn is_mutual(&self) -> bool {
        self.mutual
    }
    /// This process's session.
    pub(crate) const fn own(&self) -> u64 {
        self.own
    }
    /// What the partner must echo to have a new session adopted.
    pub(crate) const fn challenge(&self) -> u64 {
        self.challenge
    }
    /// The last challenge heard, 0 for none.
    pub(crate) const fn heard_challenge(&self) -> u64 {
        self.heard_challenge
    }

    /// The tag of state transfer: the same on both nodes and in both directions, different after
    /// a restart of either. `None` until both have adopted each other.
    pub(crate) const fn transfer_tag(&self) -> Option<u32> {
        self.tag
    }

    fn mixed(&self) -> u32 {
        let (low, high) = (self.own.min(self.adopted), self.own.max(self.adopted));
        let mixed = mix64(low ^ mix64(high));
        ((mixed >> 32) as u32 ^ mixed as u32).max(1)
    }
}

/// A random number that is not 0, which means "none" on the wire.
pub(crate) fn nonzero(random: &mut Random) -> u64 {
    random.next_u64().max(1)
}

#[cfg(test)]
mod tests;
