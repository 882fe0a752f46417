//! bears floods: a flood that the plan says a node bears moves no role, makes no deadline missed and costs the pair none of its own packets;
//! of each flow no more is let in than its budget, and nobody's packets go before those that came earlier.

use std::collections::{BTreeMap, VecDeque};

use bumpless_guard::{FlowId, Rate};

use super::Verdict;

/// After the end of a flood, what it has delayed is still due to it.
const ECHO: u64 = 100_000_000;

/// A flow of an interface: node, network, flow.
pub type Place = (usize, usize, FlowId);

/// The checker.
pub struct BearsFloods {
    heal_within: u64,
    /// When the last fault ends that is no flood which must be borne.
    last_fault: u64,
    flood: (u64, u64),
    /// By node: deadlines missed so far.
    missed: Vec<u64>,
    /// By node: when reception was done with the last packet, and when that came.
    through: Vec<(u64, u64)>,
    /// What was let in of a flow during the last period.
    let_in: BTreeMap<Place, VecDeque<u64>>,
}

impl BearsFloods {
    /// For so many nodes; healing takes at most `heal_within`.
    pub fn new(nodes: usize, heal_within: u64) -> Self {
        Self {
            heal_within,
            last_fault: 0,
            flood: (u64::MAX, 0),
            missed: vec![0; nodes],
            through: vec![(0, 0); nodes],
            let_in: BTreeMap::new(),
        }
    }

    /// A flood begins.
    pub fn flood(&mut self, from: u64, until: u64) {
        self.flood = match self.flood.1 + ECHO < from {
            true => (from, until),
            false => (self.flood.0, self.flood.1.max(until)),
        };
    }

    /// Another fault ends at `at`.
    pub fn faults_end(&mut self, at: u64) {
        self.last_fault = self.last_fault.max(at);
    }

    /// Whether nothing but floods can be the reason for what happens at `at`.
    fn only_floods(&self, at: u64) -> bool {
        self.flood.0 <= at
            && at <= self.flood.1.saturating_add(ECHO)
            && at > self.last_fault.saturating_add(self.heal_within)
    }

    /// A node becomes primary, and nobody has ordered it.
    pub fn takes_role(&self, node: usize, at: u64) -> Verdict {
        if self.only_floods(at) {
            return Err(format!("node {node} takes the role because of a flood"));
        }
        Ok(())
    }

    /// The process of a node has missed so many deadlines: cycles, states and leases.
    pub fn missed(&mut self, node: usize, missed: u64, at: u64) -> Verdict {
        let before = std::mem::replace(&mut self.missed[node], missed);
        if missed > before && self.only_floods(at) {
            let more = missed - before;
            return Err(format!(
                "node {node} has missed {more} deadlines because of a flood"
            ));
        }
        Ok(())
    }

    /// A node's reception has discarded a packet that one of the pair, or a witness, has sent.
    pub fn own_lost(&self, node: usize, at: u64) -> Verdict {
        if self.only_floods(at) {
            return Err(format!(
                "node {node} has lost a packet of the pair's own because of a flood"
            ));
        }
        Ok(())
    }

    /// A packet of a flow is let in. A budget may be used up at the end of one period and again at the beginning of the next.
    pub fn let_in(&mut self, place: Place, rate: Rate, at: u64) -> Verdict {
        let seen = self.let_in.entry(place).or_default();
        while seen
            .pop_front_if(|it| at - *it >= rate.period.as_nanos())
            .is_some()
        {}
        seen.push_back(at);
        if seen.len() > 2 * rate.capacity as usize {
            let (node, _, flow) = place;
            return Err(format!(
                "node {node} has let in {} packets of {flow:?} within {} ms, its budget is {}",
                seen.len(),
                rate.period.as_nanos() / 1_000_000,
                rate.capacity
            ));
        }
        Ok(())
    }

    /// Reception of a node is done at `done` with a packet for it that came at `came`.
    pub fn through(&mut self, node: usize, came: u64, done: u64) -> Verdict {
        let (last_came, last_done) = std::mem::replace(&mut self.through[node], (came, done));
        if came < last_came || done < last_done {
            return Err(format!(
                "node {node} has worked off a packet before one that came earlier"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bumpless_base::Duration;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_happens_under_floods_alone_is_due_to_them_and_under_other_faults_is_not() {
        let mut checker = BearsFloods::new(2, SECOND);
        assert!(
            checker.takes_role(0, 5 * SECOND).is_ok(),
            "there is no flood"
        );
        checker.flood(5 * SECOND, 6 * SECOND);
        assert!(checker.takes_role(0, 5 * SECOND).is_err());
        assert!(checker.own_lost(0, 5 * SECOND).is_err());
        assert!(checker.missed(1, 3, 5 * SECOND).is_err());
        assert!(
            checker.missed(1, 3, 5 * SECOND).is_ok(),
            "as many as before"
        );
        checker.faults_end(4 * SECOND + 1);
        assert!(
            checker.takes_role(0, 5 * SECOND).is_ok(),
            "the pair still heals"
        );
        assert!(checker.takes_role(0, 5 * SECOND + 2).is_err());
        assert!(checker.takes_role(0, 7 * SECOND).is_ok(), "it is over");
    }

    #[test]
    fn twice_a_budget_fits_into_a_period_that_begins_anywhere_and_one_more_does_not() {
        let rate = Rate {
            capacity: 2,
            period: Duration::from_millis(100),
        };
        let mut checker = BearsFloods::new(1, 0);
        let place = (0, 0, FlowId::Icmp);
        for at in [0, 1, 2, 3] {
            assert!(checker.let_in(place, rate, at).is_ok());
        }
        assert!(checker.let_in((0, 1, FlowId::Icmp), rate, 4).is_ok());
        assert!(checker.let_in(place, rate, 99_999_999).is_err());
        assert!(checker.let_in(place, rate, 200_000_000).is_ok());
    }

    #[test]
    fn no_packet_is_worked_off_before_one_that_came_earlier() {
        let mut checker = BearsFloods::new(2, 0);
        assert!(checker.through(0, 5, 10).is_ok());
        assert!(checker.through(1, 4, 9).is_ok());
        assert!(checker.through(0, 6, 9).is_err());
        assert!(checker.through(1, 3, 12).is_err());
    }
}
