//! hands over: in a sound pair an order to switch over, or several that meet, costs the outputs a hand-over and no more.

use super::{Exemption, Tally, Verdict};

/// Periods that may pass between two outputs around an order: the successor writes in the cycle after the last one, or, if
/// that begins while the role changes hands, in the one after that.
const PERIODS: u64 = 2;

/// The checker.
pub struct HandsOver {
    /// After a fault, the time that healing may take, nanoseconds.
    within: u64,
    /// By application, as the nodes are configured: a change tunes it.
    periods: Vec<u64>,
    last_output: Vec<u64>,
    /// By application: whether it is to write outputs.
    expected: Vec<bool>,
    /// When the last fault that is no order has ended.
    last_fault: u64,
    last_order: Option<u64>,
    tally: Tally,
}

impl HandsOver {
    /// Healing takes at most `within`; applications begin with these periods.
    pub fn new(within: u64, periods: Vec<u64>, tally: &Tally) -> Self {
        Self {
            within,
            last_output: vec![0; periods.len()],
            expected: vec![true; periods.len()],
            periods,
            last_fault: 0,
            last_order: None,
            tally: tally.clone(),
        }
    }

    /// A fault that is no order ends at `at`.
    pub fn faults_end(&mut self, at: u64) {
        self.last_fault = self.last_fault.max(at);
    }

    /// Somebody orders a switchover.
    pub fn ordered(&mut self, at: u64) {
        self.last_order = Some(at);
    }

    /// From `at` on, an application writes outputs in this period, or it does not any more.
    pub fn expect(&mut self, application: usize, period: Option<u64>, at: u64) {
        if let Some(period) = period {
            if !self.expected[application] {
                self.last_output[application] = at;
            }
            self.periods[application] = period;
        }
        self.expected[application] = period.is_some();
    }

    /// An output was accepted.
    pub fn accepted(&mut self, application: usize, at: u64) -> Verdict {
        let verdict = self.judge(application, at);
        self.last_output[application] = at;
        verdict
    }

    /// Looks whether outputs that have not come yet are due.
    pub fn look(&self, at: u64) -> Verdict {
        (0..self.periods.len()).try_for_each(|application| self.judge(application, at))
    }

    fn judge(&self, application: usize, at: u64) -> Verdict {
        let last = self.last_output[application];
        let nothing = at.saturating_sub(last);
        let most = self.periods[application] * PERIODS;
        let ordered = self.last_order.filter(|order| order + self.within > last);
        let Some(order) = ordered.filter(|_| self.expected[application] && nothing > most) else {
            return Ok(());
        };
        if self.last_fault + self.within > last.min(order) {
            self.tally.count(Exemption::HandOverDisturbed);
            return Ok(());
        }
        Err(format!(
            "application {application} has written nothing for {}.{:03} ms around an order to switch over of a sound pair \
             (at most {} ms)",
            nothing / 1_000_000,
            nothing / 1_000 % 1_000,
            most / 1_000_000
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sound() -> HandsOver {
        let mut checker = HandsOver::new(1_000 * MS, vec![10 * MS], &Tally::default());
        checker.faults_end(MS);
        checker.accepted(0, 2_000 * MS).expect("no order yet");
        checker
    }

    #[test]
    fn a_hand_over_that_takes_longer_than_it_may_is_found_when_outputs_return_and_before() {
        let mut checker = sound();
        checker.ordered(2_001 * MS);
        assert_eq!(checker.look(2_020 * MS), Ok(()));
        let found = checker.look(2_020 * MS + 1);
        assert!(found.is_err_and(|what| what.contains("20.000 ms")));
        assert!(checker.accepted(0, 2_021 * MS).is_err());
        assert_eq!(checker.accepted(0, 2_041 * MS), Ok(()));
    }

    #[test]
    fn outputs_that_pause_without_an_order_or_after_a_fault_are_for_others_to_judge() {
        let mut checker = sound();
        assert_eq!(checker.accepted(0, 2_100 * MS), Ok(()));
        checker.ordered(2_101 * MS);
        checker.faults_end(2_102 * MS);
        assert_eq!(checker.accepted(0, 2_200 * MS), Ok(()));
        assert_eq!(
            checker.tally.forgiven().get(Exemption::HandOverDisturbed),
            1
        );
    }

    #[test]
    fn who_is_not_to_write_is_not_waited_for() {
        let mut checker = sound();
        checker.ordered(2_001 * MS);
        checker.expect(0, None, 2_005 * MS);
        assert_eq!(checker.look(2_500 * MS), Ok(()));
        checker.expect(0, Some(10 * MS), 2_600 * MS);
        assert_eq!(checker.look(2_620 * MS), Ok(()));
        assert!(checker.look(2_631 * MS).is_err());
    }

    #[test]
    fn an_application_that_was_tuned_is_judged_by_its_period_of_then() {
        let mut checker = sound();
        checker.expect(0, Some(20 * MS), 2_000 * MS);
        checker.ordered(2_001 * MS);
        assert_eq!(checker.look(2_040 * MS), Ok(()));
        assert!(checker.look(2_040 * MS + 1).is_err());
        checker.expect(0, Some(5 * MS), 2_000 * MS);
        assert!(checker.look(2_010 * MS + 1).is_err());
    }
}
