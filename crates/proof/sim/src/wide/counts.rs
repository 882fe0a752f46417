//! What became of packets.

use serde::Serialize;

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its link was dead, or died under it.
    DeadLink,
    /// A router at its link was dead, or died with it.
    DeadRouter,
    /// The node knew of no link that leads nearer.
    NoWay,
    /// Too much waited already for a link that carries so much a second.
    QueueFull,
    /// Its link loses some at random.
    Loss,
}

/// How many packets there were, each copy and each repetition by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Put on the way.
    pub entered: u64,
    /// At their end.
    pub delivered: u64,
    /// Links that they have passed.
    pub hops: u64,
    /// See [`Cause::DeadLink`].
    pub dead_link: u64,
    /// See [`Cause::DeadRouter`].
    pub dead_router: u64,
    /// See [`Cause::NoWay`].
    pub no_way: u64,
    /// See [`Cause::QueueFull`].
    pub queue_full: u64,
    /// See [`Cause::Loss`].
    pub loss: u64,
    /// How often routing daemons have found other ways.
    pub converged: u64,
}

impl Counts {
    /// One was lost.
    pub fn lose(&mut self, cause: Cause) {
        *match cause {
            Cause::DeadLink => &mut self.dead_link,
            Cause::DeadRouter => &mut self.dead_router,
            Cause::NoWay => &mut self.no_way,
            Cause::QueueFull => &mut self.queue_full,
            Cause::Loss => &mut self.loss,
        } += 1;
    }

    /// All that were lost.
    pub fn lost(&self) -> u64 {
        self.dead_link + self.dead_router + self.no_way + self.queue_full + self.loss
    }

    /// Those of another world, too.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            entered,
            delivered,
            hops,
            dead_link,
            dead_router,
            no_way,
            queue_full,
            loss,
            converged,
        } = other;
        self.entered += entered;
        self.delivered += delivered;
        self.hops += hops;
        self.dead_link += dead_link;
        self.dead_router += dead_router;
        self.no_way += no_way;
        self.queue_full += queue_full;
        self.loss += loss;
        self.converged += converged;
    }
}
