//! one writer: at no instant of true time do two nodes have the right to write the outputs of a
//! group, nobody sends one without that right, no two have outputs accepted in one epoch, and
//! accepted epochs only grow, by no more than roles can have been asked for.

use std::collections::BTreeMap;

use bumpless_base::Epoch;

use super::{Output, Verdict};

/// More epochs than roles are asked for between two outputs: the range of 32 bits must last.
const LEAP: u32 = 1 << 16;

/// A right to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Its epoch.
    pub epoch: Epoch,
    /// When it ends, true time.
    pub until: u64,
}

/// The checker.
pub struct OneWriter {
    nodes: usize,
    /// By group, then node.
    permits: Vec<Option<Permit>>,
    /// Who had outputs accepted in an epoch, by application.
    writers: BTreeMap<(usize, Epoch), usize>,
    /// The highest epoch accepted, by application.
    highest: BTreeMap<usize, Epoch>,
}

impl OneWriter {
    /// A checker that has seen nothing.
    pub fn new(groups: usize, nodes: usize) -> Self {
        Self {
            nodes,
            permits: vec![None; groups * nodes],
            writers: BTreeMap::new(),
            highest: BTreeMap::new(),
        }
    }

    /// From `at` on, `node` has this right in `group`.
    pub fn permit(
        &mut self,
        group: usize,
        node: usize,
        permit: Option<Permit>,
        at: u64,
    ) -> Verdict {
        let permits = &mut self.permits[group * self.nodes..][..self.nodes];
        let permit = permit.filter(|permit| permit.until > at);
        permits[node] = permit;
        let Some(permit) = permit else { return Ok(()) };
        for (other, theirs) in permits.iter().enumerate().filter(|(n, _)| *n != node) {
            if let Some(theirs) = theirs.filter(|theirs| theirs.until > at) {
                return Err(format!(
                    "nodes {node} and {other} may both write for group {group}, in epochs {} and {}, \
                     for another {} us",
                    permit.epoch,
                    theirs.epoch,
                    (permit.until.min(theirs.until) - at) / 1000
                ));
            }
        }
        Ok(())
    }

    /// At `at`, `node` sends an output of `group` in this epoch.
    pub fn writes(&self, group: usize, node: usize, epoch: Epoch, at: u64) -> Verdict {
        match self.permits[group * self.nodes + node] {
            Some(permit) if permit.epoch == epoch && at < permit.until => Ok(()),
            held => Err(format!(
                "node {node} writes for group {group} in epoch {epoch} without the right to; it has {held:?}"
            )),
        }
    }

    /// A field device has accepted an output.
    pub fn accepted(&mut self, output: &Output) -> Verdict {
        let key = (output.application, output.epoch);
        let writer = *self.writers.entry(key).or_insert(output.node);
        if writer != output.node {
            return Err(format!(
                "application {}: nodes {writer} and {} both had outputs accepted in epoch {}",
                output.application, output.node, output.epoch
            ));
        }
        let highest = self.highest.entry(output.application).or_default();
        if output.epoch < *highest {
            return Err(format!(
                "application {}: node {} had an output of epoch {} accepted after one of epoch {highest}",
                output.application, output.node, output.epoch
            ));
        }
        let leap = output.epoch.0 - highest.0;
        if leap > LEAP {
            return Err(format!(
                "application {}: node {} had an output of epoch {} accepted after one of epoch {highest}, {leap} below it",
                output.application, output.node, output.epoch
            ));
        }
        *highest = output.epoch;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit(epoch: u32, until: u64) -> Option<Permit> {
        Some(Permit {
            epoch: Epoch(epoch),
            until,
        })
    }

    #[test]
    fn overlapping_rights_are_found_and_rights_one_after_the_other_are_not() {
        let mut one = OneWriter::new(2, 2);
        assert!(one.permit(0, 0, permit(2, 100), 10).is_ok());
        assert!(one.permit(1, 1, permit(3, 100), 20).is_ok());
        assert!(one.permit(0, 1, permit(3, 200), 100).is_ok());
        assert!(one.permit(0, 0, permit(2, 150), 149).is_err());
        assert!(one.permit(0, 1, None, 149).is_ok());
        assert!(one.permit(0, 0, permit(4, 300), 150).is_ok());
    }

    #[test]
    fn an_output_without_a_right_of_its_epoch_is_found() {
        let mut one = OneWriter::new(1, 2);
        assert!(one.writes(0, 0, Epoch(2), 10).is_err());
        assert!(one.permit(0, 0, permit(2, 100), 10).is_ok());
        assert!(one.writes(0, 0, Epoch(2), 99).is_ok());
        assert!(one.writes(0, 0, Epoch(4), 99).is_err());
        assert!(one.writes(0, 0, Epoch(2), 100).is_err());
        assert!(one.writes(0, 1, Epoch(2), 99).is_err());
    }

    #[test]
    fn outputs_of_two_nodes_in_one_epoch_and_of_an_older_epoch_are_found() {
        let mut one = OneWriter::new(1, 2);
        let mut accept = |node, epoch| {
            one.accepted(&Output {
                application: 0,
                node,
                epoch: Epoch(epoch),
                cycle: 1,
            })
        };
        assert!(accept(0, 2).is_ok() && accept(1, 3).is_ok());
        assert!(accept(0, 3).is_err());
        assert!(accept(0, 2).is_err());
        assert!(accept(1, 65_539).is_ok());
        assert!(accept(0, 1 << 31).is_err());
    }
}
