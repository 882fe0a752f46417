//! An operator's order that a stopped program go on, from the data plane to the application's executor.

use bumpless_base::ResumeFrom;

use crate::sync::{AtomicU32, Ordering};

/// Room for one order; a later one replaces it.
#[derive(Debug, Default)]
pub struct ResumeOrder(AtomicU32);

const NONE: u32 = 0;
const FROM_STATE: u32 = 1;
const FROM_STATE_OR_INITIAL: u32 = 2;

impl ResumeOrder {
    /// Gives the order; the executor takes it in its next cycle as primary in which the program is stopped.
    pub fn give(&self, from: ResumeFrom) {
        let order = match from {
            ResumeFrom::State => FROM_STATE,
            ResumeFrom::StateOrInitial => FROM_STATE_OR_INITIAL,
        };
        self.0.store(order, Ordering::SeqCst);
    }

    /// Takes the order, if there is one.
    pub fn take(&self) -> Option<ResumeFrom> {
        // Hardly ever is there one: to look does not take the line from whoever else reads it.
        if self.0.load(Ordering::SeqCst) == NONE {
            return None;
        }
        match self.0.swap(NONE, Ordering::SeqCst) {
            FROM_STATE => Some(ResumeFrom::State),
            FROM_STATE_OR_INITIAL => Some(ResumeFrom::StateOrInitial),
            _ => None,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ApplicationMailbox;
    use bumpless_base::ProgramStanding;

    #[test]
    fn an_order_is_taken_once_and_the_later_of_two_counts() {
        let order = ResumeOrder::default();
        assert_eq!(order.take(), None);
        order.give(ResumeFrom::State);
        order.give(ResumeFrom::StateOrInitial);
        assert_eq!(order.take(), Some(ResumeFrom::StateOrInitial));
        assert_eq!(order.take(), None);
    }

    #[test]
    fn an_order_has_no_object_when_the_program_runs_again() {
        let mailbox = ApplicationMailbox::default();
        mailbox.resume_order().give(ResumeFrom::State);
        mailbox.set_program(ProgramStanding::Stopped);
        assert!(mailbox.resume_order().take().is_some());
        mailbox.resume_order().give(ResumeFrom::State);
        mailbox.set_program(ProgramStanding::Runs);
        assert_eq!(mailbox.resume_order().take(), None);
    }
}
