//! A configuration on its way to a partner, and what comes of it (`spec/management.md`, M-14).

use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// What came of carrying a configuration to a partner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// The partner has prepared the change.
    Prepared,
    /// It refuses; why.
    Refused(String),
    /// There is no session, or it has ended before the answer: the partner may have prepared it or not.
    Unanswered,
}

/// Something to be carried to a partner.
pub enum Order {
    /// Ask for the change to a configuration.
    Propose {
        /// The partner's position.
        partner: usize,
        /// The configuration's file.
        text: String,
        /// Where the outcome goes.
        reply: SyncSender<Carried>,
        /// How long somebody waits for it.
        until: Instant,
    },
    /// Ask to give up what is prepared.
    Withdraw {
        /// The partner's position.
        partner: usize,
    },
}

impl Order {
    pub const fn partner(&self) -> usize {
        match self {
            Self::Propose { partner, .. } | Self::Withdraw { partner } => *partner,
        }
    }
}

/// Way to have something carried to partners, for any thread.
#[derive(Clone, Debug)]
pub struct Errand(Sender<Order>);

impl Errand {
    pub(super) const fn new(orders: Sender<Order>) -> Self {
        Self(orders)
    }

    /// Asks the partner at this position for the change to the configuration `text`, and waits for the answer, at most this
    /// long.
    pub fn propose(&self, partner: usize, text: String, patience: Duration) -> Carried {
        let (reply, answer) = sync_channel(1);
        let order = Order::Propose {
            partner,
            text,
            reply,
            until: Instant::now() + patience,
        };
        // Without the thread there is no session.
        let _ = self.0.send(order);
        answer.recv_timeout(patience).unwrap_or(Carried::Unanswered)
    }

    /// Asks the partner at this position to give up what is prepared, if there is a session.
    pub fn withdraw(&self, partner: usize) {
        let _ = self.0.send(Order::Withdraw { partner });
    }
}
