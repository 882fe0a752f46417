//! no bump: outputs are those of the last cycle or a later one, never older, unless the writer has
//! reported that it begins from the initial state, which it may only if it took the role without a
//! fresh state.
//!
//! The last cycle itself is written again only by another writer of an application that commits
//! `async`, whose backup may be one cycle behind, and not after an ordered hand-over.

use bumpless_base::Epoch;

use super::{Exemption, Tally, Verdict};

/// An output that a field device has accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The application.
    pub application: usize,
    /// Who wrote it.
    pub node: usize,
    /// Its stamp.
    pub epoch: Epoch,
    /// The cycle that computed it.
    pub cycle: u64,
}

/// The checker.
pub struct NoBump {
    /// By application: whether a backup may be a cycle behind.
    behind: Vec<bool>,
    last: Vec<Option<Output>>,
    /// The role was handed over in order since the last output.
    handed_over: Vec<bool>,
    /// For each reported cold start, the highest epoch accepted until then. A write of an earlier
    /// epoch that a device held back is not the first output after it; one of the partner may be,
    /// which has gone on from the begun state.
    cold: Vec<Vec<Epoch>>,
    tally: Tally,
}

impl NoBump {
    /// A checker that has seen nothing; `behind`: by application, whether it commits `async`.
    pub fn new(behind: Vec<bool>, tally: &Tally) -> Self {
        let applications = behind.len();
        Self {
            behind,
            last: vec![None; applications],
            handed_over: vec![false; applications],
            cold: vec![Vec::new(); applications],
            tally: tally.clone(),
        }
    }

    /// The application's new writer has the role by an ordered hand-over.
    pub fn handed_over(&mut self, application: usize) {
        self.handed_over[application] = true;
    }

    /// The application begins from its initial state on some node, which took the role with a fresh
    /// state of every application, or not; `outlived`: nobody may go on from what was written last, since that was too long ago.
    pub fn cold_start(
        &mut self,
        application: usize,
        (with_state, outlived): (bool, bool),
    ) -> Verdict {
        self.begins_older(application);
        if with_state && self.last[application].is_none() {
            self.tally.count(Exemption::BeginsBesideOthers);
        } else if with_state && outlived {
            self.tally.count(Exemption::StoppedForLong);
        } else if with_state {
            return Err(format!(
                "application {application} begins from its initial state although its node took the role \
                 with a fresh one"
            ));
        }
        Ok(())
    }

    /// The application begins from a state that may be older than its last output, and its node says so.
    pub fn begins_older(&mut self, application: usize) {
        let accepted = self.last[application].map_or(Epoch(0), |last| last.epoch);
        self.cold[application].push(accepted);
    }

    /// A field device has accepted an output.
    pub fn accepted(&mut self, output: &Output) -> Verdict {
        let last = self.last[output.application].replace(*output);
        let pending = &mut self.cold[output.application];
        let begins = pending.iter().any(|&before| output.epoch > before);
        pending.retain(|&before| output.epoch <= before);
        let Some(last) = last else { return Ok(()) };
        let other = output.epoch > last.epoch;
        let handed_over = other && std::mem::take(&mut self.handed_over[output.application]);
        let same_again = other && self.behind[output.application] && !handed_over;
        let least = last.cycle + u64::from(!same_again);
        if output.cycle < least && begins {
            self.tally.count(Exemption::BegunAnew);
        } else if output.cycle < least {
            return Err(format!(
                "application {}: node {} wrote cycle {} in epoch {} after node {} had written cycle {} \
                 in epoch {}",
                output.application,
                output.node,
                output.cycle,
                output.epoch,
                last.node,
                last.cycle,
                last.epoch
            ));
        } else if output.cycle == last.cycle {
            self.tally.count(Exemption::LastCycleWrittenAgain);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(node: usize, epoch: u32, cycle: u64) -> Output {
        Output {
            node,
            cycle,
            epoch: Epoch(epoch),
            application: 0,
        }
    }

    #[test]
    fn an_older_output_is_found_unless_its_writer_reported_a_cold_start() {
        let mut no_bump = NoBump::new(vec![true], &Tally::default());
        assert!(no_bump.accepted(&output(0, 1, 10)).is_ok());
        assert!(no_bump.accepted(&output(1, 2, 10)).is_ok());
        assert!(no_bump.accepted(&output(1, 2, 9)).is_err());
        assert!(no_bump.cold_start(0, (false, false)).is_ok());
        assert!(no_bump.accepted(&output(0, 3, 1)).is_ok());
        assert!(no_bump.cold_start(0, (false, false)).is_ok());
        assert!(no_bump.accepted(&output(0, 5, 2)).is_ok());
        assert!(no_bump.accepted(&output(0, 5, 1)).is_err());
    }

    #[test]
    fn a_cycle_written_twice_is_found_but_for_a_backup_that_may_be_behind() {
        for (behind, handed_over, again) in [
            (true, false, true),
            (true, true, false),
            (false, false, false),
        ] {
            let mut no_bump = NoBump::new(vec![behind], &Tally::default());
            assert!(no_bump.accepted(&output(0, 1, 10)).is_ok());
            if handed_over {
                no_bump.handed_over(0);
            }
            assert_eq!(no_bump.accepted(&output(1, 2, 10)).is_ok(), again);
        }
        let mut no_bump = NoBump::new(vec![true], &Tally::default());
        assert!(no_bump.accepted(&output(0, 1, 10)).is_ok());
        assert!(no_bump.accepted(&output(0, 1, 10)).is_err());
    }

    #[test]
    fn a_cold_start_with_a_fresh_state_is_found() {
        let mut no_bump = NoBump::new(vec![true], &Tally::default());
        assert!(no_bump.cold_start(0, (true, false)).is_ok(), "it comes");
        assert!(no_bump.accepted(&output(0, 1, 1)).is_ok());
        assert!(no_bump.cold_start(0, (true, false)).is_err());
        assert!(no_bump.cold_start(0, (true, true)).is_ok(), "too old");
    }

    #[test]
    fn a_write_that_a_device_held_back_does_not_use_up_a_cold_start() {
        let mut no_bump = NoBump::new(vec![true], &Tally::default());
        assert!(no_bump.accepted(&output(0, 4, 20)).is_ok());
        assert!(no_bump.cold_start(0, (false, false)).is_ok());
        assert!(no_bump.accepted(&output(0, 4, 21)).is_ok());
        assert!(no_bump.accepted(&output(0, 6, 1)).is_ok());
        assert!(no_bump.accepted(&output(0, 8, 0)).is_err());
    }
}
