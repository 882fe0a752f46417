//! A driver goes on when the settings of its application change and its own do not: another link leads to it from then on.

use bumpless_base::Instant;

use super::Device;
use super::conversation::Conversation;
use crate::TimeSource;
use crate::driver_link::{DriverNumber, HandedOver};

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
