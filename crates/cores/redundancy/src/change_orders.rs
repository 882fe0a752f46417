//! What a driver orders and asks of a change of the configuration (spec/apply.md).

use bumpless_base::Instant;

use crate::change::{Configurations, PrepareRefused, WithdrawRefused};
use crate::partner::Partner;
use crate::redundancy::Redundancy;

impl Redundancy {
    /// Prepares to change to the configuration with fingerprint `next`, which the driver has made last
    /// beside the one in force. [`Event::ConfigurationDue`](crate::Event::ConfigurationDue) follows when both nodes are ready. After a
    /// restart, `resumed` says that it was found prepared.
    ///
    /// # Errors
    /// [`PrepareRefused`] says why not.
    pub fn prepare_configuration(
        &mut self,
        next: u64,
        resumed: bool,
        now: Instant,
    ) -> Result<(), PrepareRefused> {
        let [partner] = &mut *self.partners else {
            return Err(PrepareRefused::NotAPair);
        };
        self.change
            .prepare(next, resumed, partner.configurations())?;
        partner.hurry();
        self.after(None, now);
        Ok(())
    }

    /// Gives up what was prepared. The driver may forget it from then on.
    ///
    /// # Errors
    /// [`WithdrawRefused`] says why not.
    pub fn withdraw_configuration(&mut self, now: Instant) -> Result<(), WithdrawRefused> {
        self.change.withdraw()?;
        self.partners.iter_mut().for_each(Partner::hurry);
        self.after(None, now);
        Ok(())
    }

    /// After [`Event::ConfigurationDue`](crate::Event::ConfigurationDue): a restart of this node begins with what was prepared.
    pub fn configuration_switched(&mut self, now: Instant) {
        self.change.switched();
        self.partners.iter_mut().for_each(Partner::hurry);
        self.after(None, now);
    }

    /// After [`Event::ConfigurationDue`](crate::Event::ConfigurationDue): what was prepared could not be made last. The event comes again.
    pub const fn configuration_not_made(&mut self) {
        self.change.not_made();
    }

    /// The configurations of this node.
    pub fn configurations(&self) -> Configurations {
        self.change.configurations()
    }

    /// Whether every reachable partner has this node's configuration in force; true if none is reachable.
    pub fn partners_follow(&self) -> bool {
        let current = self.change.configurations().current;
        self.partners.iter().all(|partner| {
            let same = |theirs: Configurations| theirs.current == current;
            !partner.is_reachable() || partner.configurations().is_some_and(same)
        })
    }
}
