//! no bump: outputs are those of the last cycle or a later one, never older, unless the writer has
//! reported that it begins from the initial state.

use bumpless_base::Epoch;

use super::Verdict;

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
    last: Vec<Option<Output>>,
    /// For each reported cold start, the highest epoch accepted until then. A write of an earlier
    /// epoch that a device held back is not the first output after it; one of the partner may be,
    /// which has gone on from the begun state.
    cold: Vec<Vec<Epoch>>,
    /// Cold starts after the first output of an application.
    pub cold_starts: u64,
}

impl NoBump {
    /// A checker that has seen nothing.
    pub fn new(applications: usize) -> Self {
        Self {
            last: vec![None; applications],
            cold: vec![Vec::new(); applications],
            cold_starts: 0,
        }
    }

    /// The application begins from its initial state on some node.
    pub fn cold_start(&mut self, application: usize) {
        self.cold_starts += u64::from(self.last[application].is_some());
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
        if output.cycle < last.cycle && !begins {
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
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_output_is_found_unless_its_writer_reported_a_cold_start() {
        let mut no_bump = NoBump::new(1);
        let output = |node, epoch, cycle| Output {
            node,
            cycle,
            epoch: Epoch(epoch),
            application: 0,
        };
        assert!(no_bump.accepted(&output(0, 1, 10)).is_ok());
        assert!(no_bump.accepted(&output(1, 2, 10)).is_ok());
        assert!(no_bump.accepted(&output(1, 2, 9)).is_err());
        no_bump.cold_start(0);
        assert!(no_bump.accepted(&output(0, 3, 1)).is_ok());
        no_bump.cold_start(0);
        assert!(no_bump.accepted(&output(0, 5, 2)).is_ok());
        assert!(no_bump.accepted(&output(0, 5, 1)).is_err());
    }

    #[test]
    fn a_write_that_a_device_held_back_does_not_use_up_a_cold_start() {
        let mut no_bump = NoBump::new(1);
        let output = |epoch, cycle| Output {
            cycle,
            epoch: Epoch(epoch),
            ..Output::default()
        };
        assert!(no_bump.accepted(&output(4, 20)).is_ok());
        no_bump.cold_start(0);
        assert!(no_bump.accepted(&output(4, 21)).is_ok());
        assert!(no_bump.accepted(&output(6, 1)).is_ok());
        assert!(no_bump.accepted(&output(8, 0)).is_err());
    }
}
