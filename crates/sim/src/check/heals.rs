//! heals: within a stated time after the last fault the pair is redundant again, and stays so.

use super::Verdict;

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
    last_fault: u64,
}

impl Heals {
    /// Healing takes at most `within`; applications write in these periods.
    pub fn new(within: u64, periods: Vec<u64>) -> Self {
        Self {
            within,
            last_output: vec![0; periods.len()],
            periods,
            last_fault: 0,
        }
    }

    /// A fault ends at `at`.
    pub fn faults_end(&mut self, at: u64) {
        self.last_fault = self.last_fault.max(at);
    }

    /// An output was accepted.
    pub fn accepted(&mut self, application: usize, at: u64) {
        self.last_output[application] = at;
    }

    /// Looks at the pair.
    pub fn look(&self, health: &Health, at: u64) -> Verdict {
        let since = at.saturating_sub(self.last_fault);
        if since <= self.within {
            return Ok(());
        }
        if let Some(first) = health.not_redundant.first() {
            return Err(format!(
                "{} ms after the last fault (healing takes {} ms at most): {first}",
                since / 1_000_000,
                self.within / 1_000_000
            ));
        }
        let outputs = self.last_output.iter().zip(&self.periods).enumerate();
        for (application, (&last, period)) in outputs {
            if at.saturating_sub(last) > period * PERIODS + SLACK {
                return Err(format!(
                    "application {application} has written nothing for {} ms although the pair is sound",
                    at.saturating_sub(last) / 1_000_000
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_that_is_not_redundant_or_writes_nothing_is_found_once_its_time_is_over() {
        let mut heals = Heals::new(1_000_000_000, vec![10_000_000]);
        heals.faults_end(5);
        let ill = Health {
            not_redundant: vec!["group 0: no primary".into()],
        };
        assert!(heals.look(&ill, 1_000_000_005).is_ok());
        assert!(heals.look(&ill, 1_000_000_006).is_err());
        let sound = Health::default();
        assert!(heals.look(&sound, 1_000_000_006).is_err());
        heals.accepted(0, 1_000_000_000);
        assert!(heals.look(&sound, 1_000_000_006).is_ok());
        heals.faults_end(1_000_000_006);
        assert!(heals.look(&ill, 1_500_000_000).is_ok());
    }
}
