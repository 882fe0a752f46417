//! Which configuration is in force, and how two nodes change it together.
//!
//! One of the two decides: the one that comes first in the configuration. It changes once the partner has
//! said that it has the next configuration, too, and cannot forget it; the other follows when it hears
//! that it did. So there is no moment at which the loss of a node, or of everything between them, leaves
//! one with a configuration that the other does not have.

use core::fmt;

/// A configuration as its fingerprint, which is never 0 here.
type Fingerprint = u64;

/// What a node says of its configurations in a heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Configurations {
    /// Fingerprint of the one in force.
    pub current: u64,
    /// Fingerprint of the one that is prepared, 0 for none.
    pub next: u64,
}

/// Why a change of the configuration was not prepared. What is in force has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrepareRefused {
    /// The node has several partners, or none.
    NotAPair,
    /// It is in force already.
    InForce,
    /// Another one is prepared.
    AnotherPrepared,
    /// The partner has not followed the last change yet.
    PartnerBehind,
}

impl fmt::Display for PrepareRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAPair => {
                "only a pair of two nodes changes while it runs; restart the nodes of a pool"
            }
            Self::InForce => "this configuration is in force already",
            Self::AnotherPrepared => "another change is prepared; wait for its end, or withdraw it",
            Self::PartnerBehind => {
                "the partner has not followed the last change yet; wait until it has"
            }
        })
    }
}

impl core::error::Error for PrepareRefused {}

/// Why a prepared change was not withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WithdrawRefused {
    /// Nothing is prepared.
    NothingPrepared,
    /// It is being put into force.
    BeingMade,
    /// The partner decides, has heard that this node is ready, and may have put it into force.
    PartnerDecides,
}

impl fmt::Display for WithdrawRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingPrepared => "no change is prepared",
            Self::BeingMade => "the change is being made",
            Self::PartnerDecides => {
                "the partner may have made the change already; withdraw it there, then it ends here too"
            }
        })
    }
}

impl core::error::Error for WithdrawRefused {}

/// The configurations of this node, and what follows from the partner's.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Change {
    current: Fingerprint,
    next: Option<Fingerprint>,
    /// Whether this node decides.
    decides: bool,
    /// `sent_at` of the first round that said that `next` is prepared; 0 before it.
    announced: u64,
    /// The partner decides and may have heard that this node is ready: `next` must not be forgotten.
    bound: bool,
    /// The partner has said that it has prepared `next`.
    seen: bool,
    /// The driver was told to put `next` into force.
    due: bool,
}

/// What a heartbeat of the partner led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    Nothing,
    /// Both are ready: the driver is to put the prepared configuration into force.
    Due,
    /// The partner, which decides, has given the change up.
    Withdrawn,
}

impl Change {
    pub(crate) const fn new(current: u64, decides: bool) -> Self {
        Self {
            current,
            next: None,
            decides,
            announced: 0,
            bound: false,
            seen: false,
            due: false,
        }
    }

    /// What the next round says.
    pub(crate) fn configurations(&self) -> Configurations {
        Configurations {
            current: self.current,
            next: self.next.unwrap_or(0),
        }
    }

    /// Whether a node that says this may be talked to: one of the two configurations is in force there,
    /// and neither can have gone further.
    pub(crate) fn accepts(&self, partner: Configurations) -> bool {
        partner.current == self.current
            || self.next == Some(partner.current)
            || partner.next == self.current
    }

    /// Prepares `next`; `resumed` after a restart, before which this node may have said so already.
    pub(crate) fn prepare(
        &mut self,
        next: u64,
        resumed: bool,
        partner: Option<Configurations>,
    ) -> Result<(), PrepareRefused> {
        match self.next {
            Some(prepared) if prepared == next => return Ok(()),
            Some(_) => return Err(PrepareRefused::AnotherPrepared),
            None if next == self.current => return Err(PrepareRefused::InForce),
            None => {}
        }
        // A partner that was started with `next` is ahead; one that is to follow to here is not.
        let ahead = |p: Configurations| p.current == next && p.next != self.current;
        let behind = partner.is_some_and(|p| p.current != self.current && !ahead(p));
        if behind && !resumed {
            return Err(PrepareRefused::PartnerBehind);
        }
        self.next = Some(next);
        self.announced = 0;
        self.seen = partner.is_some_and(|partner| partner.next == next);
        self.bound = resumed && !self.decides;
        self.due = false;
        Ok(())
    }

    pub(crate) fn withdraw(&mut self) -> Result<(), WithdrawRefused> {
        if self.next.is_none() {
            return Err(WithdrawRefused::NothingPrepared);
        }
        if self.due {
            return Err(WithdrawRefused::BeingMade);
        }
        if self.bound {
            return Err(WithdrawRefused::PartnerDecides);
        }
        self.next = None;
        Ok(())
    }

    /// The prepared configuration is in force here.
    pub(crate) fn switched(&mut self) {
        if let Some(next) = self.next.take() {
            self.current = next;
        }
        self.bound = false;
        self.due = false;
    }

    /// The driver could not make what is prepared last; it is told again.
    pub(crate) const fn not_made(&mut self) {
        self.due = false;
    }

    /// A round is opened at `sent_at`; `partner` is what was heard last.
    pub(crate) fn announce(&mut self, sent_at: u64, partner: Option<Configurations>) {
        let Some(next) = self.next else {
            return;
        };
        if self.announced == 0 {
            self.announced = sent_at;
        }
        // The partner decides by this round, unless it says that it has heard of one of its own before it
        // was ready.
        let unready = partner.is_some_and(|p| p.current == self.current && p.next != next);
        self.bound |= !self.decides && !unready;
    }

    /// Takes what the partner says in a statement that is later than all before and made to this
    /// incarnation; it had heard our round of `echo`.
    pub(crate) fn hear(&mut self, partner: Configurations, echo: u64) -> Follows {
        let Some(next) = self.next else {
            return Follows::Nothing;
        };
        // Where each has prepared what the other has in force, the one that decides has gone on and back.
        let follows_us = self.decides && partner.next == self.current;
        let ahead = partner.current == next && !follows_us;
        let ready = partner.current == self.current && partner.next == next;
        // What the partner said before it heard of the change may be of an earlier, withdrawn one.
        let answers = self.announced != 0 && echo >= self.announced;
        let agreed = self.decides && ready && answers;
        if ahead || agreed {
            let told = core::mem::replace(&mut self.due, true);
            return if told { Follows::Nothing } else { Follows::Due };
        }
        if ready {
            self.seen = true;
        } else if partner.current == self.current && !self.decides {
            // Should it be ready again, it asks for an answer to a later statement than this.
            self.bound = false;
            if core::mem::take(&mut self.seen) {
                return Follows::Withdrawn;
            }
        }
        Follows::Nothing
    }
}

#[cfg(test)]
mod tests;
