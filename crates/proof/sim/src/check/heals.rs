//! heals: within a stated time after the last fault the pair is redundant again, and stays so.
//!
//! Datagrams that nobody sent are no fault: they must do no harm. Nor is one network for the outputs:
//! as long as every fault is one of the same network, they go on.

use super::{Exemption, Tally, Verdict};

/// Periods that may pass between two outputs of a sound pair.
const PERIODS: u64 = 5;
/// And besides, for what scheduling costs.
const SLACK: u64 = 20_000_000;

/// How the groups are at one moment, in words for whoever reads the failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Groups that are not redundant, and why.
    pub not_redundant: Vec<String>,
}

/// The checker.
pub struct Heals {
    within: u64,
    periods: Vec<u64>,
    last_output: Vec<u64>,
    /// By application: whether it is to write outputs.
    expected: Vec<bool>,
    last_fault: u64,
    /// The same, of those that were made: that a process has ended by itself is none.
    last_made: u64,
    /// By network: when the last fault ends that is not one of this network alone.
    last_elsewhere: Vec<u64>,
    tally: Tally,
}

impl Heals {
    /// Healing takes at most `within`; applications write in these periods.
    pub fn new(within: u64, periods: Vec<u64>, networks: usize, tally: &Tally) -> Self {
        Self {
            within,
            last_output: vec![0; periods.len()],
            expected: vec![true; periods.len()],
            periods,
            last_fault: 0,
            last_made: 0,
            last_elsewhere: vec![0; networks],
            tally: tally.clone(),
        }
    }

    /// A fault ends at `at`; `network`: it is one of this network alone.
    pub fn faults_end(&mut self, network: Option<usize>, at: u64) {
        self.last_made = self.last_made.max(at);
        self.heals_from(network, at);
    }

    /// The process of `node` has ended by itself; one is there again at `again`. It must have had a reason.
    pub fn process_ended(&mut self, node: usize, at: u64, again: u64) -> Verdict {
        self.heals_from(None, again);
        let since = at.saturating_sub(self.last_made);
        if since > self.within {
            return Err(format!(
                "the process of node {node} ended by itself {} ms after the last fault (healing takes {} ms at most)",
                since / 1_000_000,
                self.within / 1_000_000
            ));
        }
        self.tally.count(Exemption::ProcessEndsItself);
        Ok(())
    }

    fn heals_from(&mut self, network: Option<usize>, at: u64) {
        self.last_fault = self.last_fault.max(at);
        for (other, last) in self.last_elsewhere.iter_mut().enumerate() {
            if network != Some(other) {
                *last = at.max(*last);
            }
        }
    }

    /// From `at` on, an application writes outputs, or it does not any more; returns whether that is another than
    /// before.
    pub fn expect(&mut self, application: usize, outputs: bool, at: u64) -> bool {
        if outputs && !self.expected[application] {
            self.last_output[application] = at;
        }
        std::mem::replace(&mut self.expected[application], outputs) != outputs
    }

    /// An output was accepted.
    pub fn accepted(&mut self, application: usize, at: u64) {
        self.last_output[application] = at;
    }

    /// Looks at the pair.
    pub fn look(&self, health: &Health, at: u64) -> Verdict {
        let since = at.saturating_sub(self.last_fault);
        if let Some(first) = health.not_redundant.first() {
            if since <= self.within {
                self.tally.count(Exemption::HealingTakesTime);
                return self.look_at_outputs(at);
            }
            return Err(format!(
                "{} ms after the last fault (healing takes {} ms at most): {first}",
                since / 1_000_000,
                self.within / 1_000_000
            ));
        }
        self.look_at_outputs(at)
    }

    fn look_at_outputs(&self, at: u64) -> Verdict {
        // Without its only network the pair may stand still.
        let elsewhere = self.last_elsewhere.iter().copied().min();
        let elsewhere = elsewhere.filter(|_| self.last_elsewhere.len() > 1);
        let last = elsewhere.unwrap_or(self.last_fault).min(self.last_fault);
        let healed = at.saturating_sub(last) > self.within;
        let outputs = self.last_output.iter().zip(&self.periods).enumerate();
        for (application, (&last, period)) in outputs {
            if !self.expected[application] {
                continue;
            }
            let nothing = at.saturating_sub(last);
            if nothing > period * PERIODS + SLACK {
                if !healed {
                    self.tally.count(Exemption::OutputsReturn);
                    continue;
                }
                return Err(format!(
                    "application {application} has written nothing for {} ms although the pair is sound, \
                     or all of it but one network",
                    nothing / 1_000_000
                ));
            } else if nothing > period * 2 && healed {
                self.tally.count(Exemption::OutputsPause);
            } else if last > at {
                self.tally.count(Exemption::NewcomerBegins);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_not_redundant_or_not_writing_is_found_once_its_time_is_over() {
        let mut heals = Heals::new(1_000_000_000, vec![10_000_000], 2, &Tally::default());
        heals.faults_end(None, 5);
        let ill = Health {
            not_redundant: vec!["group 0: no primary".into()],
        };
        assert!(heals.look(&ill, 1_000_000_005).is_ok());
        assert!(heals.look(&ill, 1_000_000_006).is_err());
        let sound = Health::default();
        assert!(heals.look(&sound, 1_000_000_006).is_err());
        heals.accepted(0, 1_000_000_000);
        assert!(heals.look(&sound, 1_000_000_006).is_ok());
        heals.faults_end(None, 1_000_000_006);
        assert!(heals.look(&ill, 1_500_000_000).is_ok());
    }

    #[test]
    fn a_process_that_ends_by_itself_long_after_the_last_fault_is_found_however_often_it_does() {
        let tally = Tally::default();
        let mut heals = Heals::new(1_000_000_000, vec![10_000_000], 2, &tally);
        heals.faults_end(Some(0), 5);
        for at in [300_000_005, 600_000_005, 1_000_000_005] {
            assert_eq!(heals.process_ended(0, at, at + 200_000_000), Ok(()));
        }
        let found = heals.process_ended(0, 1_000_000_006, 1_200_000_006);
        assert!(found.is_err_and(|what| what.contains("node 0 ended by itself 1000 ms")));
        assert_eq!(tally.forgiven().get(Exemption::ProcessEndsItself), 3);
    }

    #[test]
    fn outputs_may_stop_with_the_only_network() {
        let mut heals = Heals::new(1_000_000_000, vec![10_000_000], 1, &Tally::default());
        heals.faults_end(Some(0), 5_000_000_000);
        assert!(heals.look(&Health::default(), 6_000_000_000).is_ok());
        assert!(heals.look(&Health::default(), 6_000_000_001).is_err());
    }

    #[test]
    fn outputs_that_stop_with_one_network_are_found_and_with_both_they_may() {
        let sound = Health::default();
        let after = |faults: &[usize]| {
            let mut heals = Heals::new(1_000_000_000, vec![10_000_000], 2, &Tally::default());
            faults
                .iter()
                .for_each(|&network| heals.faults_end(Some(network), 2_000_000_000));
            heals.look(&sound, 1_500_000_000)
        };
        assert!(after(&[1]).is_err());
        assert!(after(&[1, 1]).is_err());
        assert!(after(&[0, 1]).is_ok());
    }
}
