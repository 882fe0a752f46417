//! A driver goes on when the settings of its application change and its own do not: another link leads to it from then on.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use bumpless_base::Instant;

use super::conversation::Conversation;
use super::{Device, DriverLink};
use crate::TimeSource;

/// A driver, among all that this process has ever begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DriverNumber(pub u64);

/// Failures of a driver's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFailures {
    /// How many.
    pub count: u64,
    /// Why it failed last.
    pub why: Arc<str>,
}

/// A driver, and how far the conversation with it has come.
pub struct HandedOver {
    pub(super) link: Box<dyn DriverLink>,
    pub(super) socket: Option<OwnedFd>,
    /// Number of the order that is not answered yet, and when it was sent.
    pub(super) pending: Option<(u32, Instant)>,
    /// Number of the last order.
    pub(super) number: u32,
}

impl<T: TimeSource> Device<T> {
    /// The driver that this one is to go on with.
    pub(crate) fn heir_to(&self) -> Option<DriverNumber> {
        self.conversation.heir_to()
    }

    /// Gives the driver away, if it is this one.
    pub(crate) fn hand_over(&mut self, driver: DriverNumber) -> Option<HandedOver> {
        let own = self.conversation.heir_to().is_none() && self.conversation.leads_to() == driver;
        own.then(|| self.conversation.hand_over())
    }

    /// Goes on with a driver. All inputs are read anew.
    pub(crate) fn take_over(&mut self, driver: HandedOver) {
        self.conversation = Conversation::taken_over(driver);
    }

    /// Has a driver of its own probe the device; returns whether it answers. One that another link leads to at present
    /// is left alone.
    pub(crate) async fn warm_up(&mut self, until: Instant) -> bool {
        if self.heir_to().is_none() {
            self.keep_warm(until).await;
        }
        self.failure.is_none()
    }
}

impl<T> Device<T> {
    /// The driver is to end.
    pub(crate) fn end(&mut self) {
        self.conversation.end();
    }
}
