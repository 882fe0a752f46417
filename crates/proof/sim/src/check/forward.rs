//! forward: per channel, delivered transfer cycles only grow; nothing of an earlier session counts.

use super::{Delivered, Published, Verdict};

#[derive(Clone, Copy)]
struct Last {
    session: u32,
    transfer_cycle: u32,
    /// Node and life of the process that published it.
    publisher: (usize, u32),
}

/// The checker.
pub struct Forward {
    nodes: usize,
    /// By application, then node.
    last: Vec<Option<Last>>,
}

impl Forward {
    /// A checker that has seen nothing.
    pub fn new(applications: usize, nodes: usize) -> Self {
        Self {
            nodes,
            last: vec![None; applications * nodes],
        }
    }

    /// The process of `node` is a new one, with sessions of its own.
    pub fn started(&mut self, node: usize) {
        self.last
            .iter_mut()
            .skip(node)
            .step_by(self.nodes)
            .for_each(|last| *last = None);
    }

    /// A state lies ready.
    pub fn delivered(&mut self, delivered: &Delivered, origin: &Published) -> Verdict {
        let slot = &mut self.last[delivered.application * self.nodes + delivered.node];
        let publisher = (origin.node, origin.incarnation);
        let last = slot.replace(Last {
            session: delivered.session,
            transfer_cycle: delivered.transfer_cycle,
            publisher,
        });
        let Some(last) = last else { return Ok(()) };
        if last.publisher.0 == publisher.0 && publisher.1 < last.publisher.1 {
            return Err(format!(
                "application {} of node {} received cycle {} from a process of its partner's that had \
                 ended before the sender of the state before it began",
                delivered.application, delivered.node, origin.cycle
            ));
        }
        let step = delivered.transfer_cycle.wrapping_sub(last.transfer_cycle);
        if last.session == delivered.session && (step == 0 || step > 1 << 31) {
            return Err(format!(
                "application {} of node {} received transfer cycle {} after {} in one session",
                delivered.application,
                delivered.node,
                delivered.transfer_cycle,
                last.transfer_cycle
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(session: u32, transfer_cycle: u32) -> Delivered {
        Delivered {
            session,
            transfer_cycle,
            node: 1,
            ..Delivered::default()
        }
    }

    fn from(incarnation: u32) -> Published {
        Published {
            incarnation,
            ..Published::default()
        }
    }

    #[test]
    fn cycles_that_do_not_grow_are_found_within_a_session_only() {
        let mut forward = Forward::new(1, 2);
        assert!(forward.delivered(&seen(1, u32::MAX), &from(1)).is_ok());
        assert!(forward.delivered(&seen(1, 3), &from(1)).is_ok());
        assert!(forward.delivered(&seen(1, 3), &from(1)).is_err());
        assert!(forward.delivered(&seen(1, 2), &from(1)).is_err());
        assert!(forward.delivered(&seen(2, 1), &from(1)).is_ok());
    }

    #[test]
    fn a_state_of_an_ended_process_is_found_unless_the_reader_is_new_too() {
        let mut forward = Forward::new(1, 2);
        assert!(forward.delivered(&seen(1, 5), &from(2)).is_ok());
        assert!(forward.delivered(&seen(2, 6), &from(1)).is_err());
        assert!(forward.delivered(&seen(3, 7), &from(2)).is_ok());
        forward.started(1);
        assert!(forward.delivered(&seen(4, 1), &from(1)).is_ok());
    }
}
