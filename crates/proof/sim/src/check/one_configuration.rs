//! one configuration: whoever runs another configuration than a partner that is established takes no role, has no right
//! to write and writes nothing while that one lives; and the established primary notices nothing of it (C-20).
//!
//! A process is established once it had the right to write, or holds a state of one that is established: then its
//! configuration is the one in force. Who comes back with another one is the one that is wrong, whatever it believes.

use bumpless_base::Epoch;

use super::{Exemption, Permit, Tally, Verdict};
use crate::variants::Configuration;

/// What the checker has to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Together {
    /// Who has heard nothing of its partner for so long may take it for dead, nanoseconds.
    pub timeout: u64,
    /// After the last other fault the pair is as it should be, nanoseconds.
    pub heal_within: u64,
}

/// A process that runs.
#[derive(Clone, Copy)]
struct Running {
    configuration: Configuration,
    established: bool,
    /// When it last heard its partner, or began.
    heard: u64,
}

/// An established primary that must notice nothing of a newcomer with another configuration.
#[derive(Clone, Copy)]
struct Guard {
    primary: usize,
    newcomer: usize,
}

/// The checker.
pub struct OneConfiguration {
    terms: Together,
    periods: Vec<u64>,
    /// By node.
    running: Vec<Option<Running>>,
    /// Two of them have different configurations.
    apart: bool,
    /// By group, then node.
    permits: Vec<Option<Permit>>,
    /// By application: who wrote last, and when.
    written: Vec<Option<(usize, u64)>>,
    others_until: u64,
    guard: Option<Guard>,
    tally: Tally,
}

impl OneConfiguration {
    /// A checker that has seen nothing, of applications with these `periods`.
    pub fn new(
        terms: Together,
        periods: Vec<u64>,
        (groups, nodes): (usize, usize),
        tally: &Tally,
    ) -> Self {
        Self {
            terms,
            running: vec![None; nodes],
            apart: false,
            permits: vec![None; groups * nodes],
            written: vec![None; periods.len()],
            periods,
            others_until: 0,
            guard: None,
            tally: tally.clone(),
        }
    }

    /// Whether two processes run with different configurations.
    pub fn is_apart(&self) -> bool {
        self.apart
    }

    /// A process of `node` begins with this configuration.
    pub fn started(&mut self, node: usize, configuration: Configuration, at: u64) {
        self.running[node] = Some(Running {
            configuration,
            established: false,
            heard: at,
        });
        self.compare();
        let primary = self.rival(node).filter(|&rival| {
            let mut held = self.permits.chunks(self.running.len());
            held.any(|permits| permits[rival].is_some_and(|permit| permit.until > at))
        });
        let calm = at > self.others_until + self.terms.heal_within;
        self.guard = primary.map(|primary| Guard {
            primary,
            newcomer: node,
        });
        if !calm {
            self.let_go();
        }
    }

    /// The process of `node` has ended.
    pub fn ended(&mut self, node: usize) {
        self.running[node] = None;
        self.compare();
        if let Some(guard) = self.guard
            && (guard.primary == node || guard.newcomer == node)
        {
            self.guard = None;
        }
    }

    fn compare(&mut self) {
        let mut configurations = self.running.iter().flatten().map(|it| it.configuration);
        let first = configurations.next();
        self.apart = configurations.any(|it| Some(it) != first);
    }

    /// Something else goes wrong, until `felt`: the primary may notice that.
    pub fn another_fault(&mut self, felt: u64) {
        self.others_until = self.others_until.max(felt);
        self.let_go();
    }

    fn let_go(&mut self) {
        if self.guard.take().is_some() {
            self.tally.count(Exemption::DisturbedByOthers);
        }
    }

    /// What `node` took last of its partner's heartbeats was sent at `sent`.
    pub fn hears(&mut self, node: usize, sent: u64) {
        if let Some(running) = &mut self.running[node] {
            running.heard = running.heard.max(sent);
        }
    }

    /// A state of `from` lies ready at `node`.
    pub fn delivered(&mut self, node: usize, from: usize) {
        let [Some(own), Some(theirs)] = [self.running[node], self.running[from]] else {
            return;
        };
        if theirs.established && theirs.configuration == own.configuration {
            self.establish(node);
        }
    }

    fn establish(&mut self, node: usize) {
        if let Some(running) = &mut self.running[node] {
            running.established = true;
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
        let permit = permit.filter(|permit| permit.until > at);
        let place = group * self.running.len() + node;
        let before = std::mem::replace(&mut self.permits[place], permit);
        if permit.is_some() {
            self.judge(node, "has the right to write", at)?;
            self.establish(node);
        }
        match (self.guard, before) {
            (Some(guard), Some(before)) if guard.primary == node => {
                guard.keeps(group, before, permit, at)
            }
            _ => Ok(()),
        }
    }

    /// `node` sends an output.
    pub fn writes(&mut self, node: usize, at: u64) -> Verdict {
        self.judge(node, "writes", at)
    }

    /// `node` takes the role of a primary.
    pub fn takes_role(&mut self, node: usize, at: u64) -> Verdict {
        self.judge(node, "becomes primary", at)
    }

    /// A device has accepted an output of `node`.
    pub fn accepted(&mut self, application: usize, node: usize, at: u64) -> Verdict {
        let before = self.written[application].replace((node, at));
        match (self.guard, before) {
            (Some(guard), Some((writer, before))) if guard.primary == writer => {
                self.look_at_gap(guard, application, before, at)
            }
            _ => Ok(()),
        }
    }

    /// Looks whether outputs still come.
    pub fn look(&self, at: u64) -> Verdict {
        let Some(guard) = self.guard else {
            return Ok(());
        };
        for (application, written) in self.written.iter().enumerate() {
            if let Some((writer, before)) = *written
                && writer == guard.primary
            {
                self.look_at_gap(guard, application, before, at)?;
            }
        }
        Ok(())
    }

    fn look_at_gap(&self, guard: Guard, application: usize, before: u64, at: u64) -> Verdict {
        let gap = at.saturating_sub(before);
        if gap <= 2 * self.periods[application] {
            return Ok(());
        }
        Err(format!(
            "node {} writes no output of application {application} for {} us because node {} has another configuration",
            guard.primary,
            gap / 1000,
            guard.newcomer
        ))
    }

    /// An established process with another configuration than that of `node`, which is not established.
    fn rival(&self, node: usize) -> Option<usize> {
        let own = self.running[node].filter(|own| self.apart && !own.established)?;
        self.running.iter().position(|other| {
            other.is_some_and(|it| it.established && it.configuration != own.configuration)
        })
    }

    fn judge(&mut self, node: usize, what: &str, at: u64) -> Verdict {
        if !self.apart {
            return Ok(());
        }
        let (Some(rival), Some(own)) = (self.rival(node), self.running[node]) else {
            return Ok(());
        };
        if at.saturating_sub(own.heard) >= self.terms.timeout {
            self.tally.count(Exemption::CutOffFromPartner);
            // It is in force from now on, and the other one is to keep away.
            self.establish(node);
            if let Some(other) = &mut self.running[rival] {
                other.established = false;
            }
            return Ok(());
        }
        Err(format!(
            "node {node} {what} with {}, although node {rival} lives, with whose configuration the pair was established",
            own.configuration
        ))
    }
}

impl Guard {
    /// The primary's right goes on without a gap, in its epoch.
    fn keeps(self, group: usize, before: Permit, permit: Option<Permit>, at: u64) -> Verdict {
        let Guard { primary, newcomer } = self;
        let because = format!("because node {newcomer} has another configuration");
        let Permit {
            epoch: Epoch(epoch),
            until,
        } = before;
        match permit {
            Some(permit) if permit.epoch != before.epoch => Err(format!(
                "node {primary} goes from epoch {epoch} to {} in group {group} {because}",
                permit.epoch
            )),
            Some(_) if until < at => Err(format!(
                "node {primary} had no right to write for group {group} for {} us {because}",
                (at - until) / 1000
            )),
            None => Err(format!(
                "node {primary} loses the right to write for group {group} {because}"
            )),
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Wrong;

    const MS: u64 = 1_000_000;
    const WRONG: Configuration = Configuration::Wrong(Wrong::Period);

    /// A pair that runs since 0, with node 0 as primary; times are in milliseconds.
    struct Pair(OneConfiguration, Tally);

    impl Pair {
        fn new() -> Self {
            let tally = Tally::default();
            let terms = Together {
                timeout: 1_000 * MS,
                heal_within: 4_000 * MS,
            };
            let mut one = OneConfiguration::new(terms, vec![10 * MS], (1, 2), &tally);
            one.started(0, Configuration::Right, 0);
            one.started(1, Configuration::Right, 0);
            let mut pair = Self(one, tally);
            assert_eq!(pair.permit(0, 2, 0, 20_000), Ok(()));
            pair.0.delivered(1, 0);
            assert_eq!(pair.0.accepted(0, 0, 5_000 * MS), Ok(()));
            pair
        }

        fn permit(&mut self, node: usize, epoch: u32, at: u64, until: u64) -> Verdict {
            let permit = Permit {
                epoch: Epoch(epoch),
                until: until * MS,
            };
            self.0.permit(0, node, Some(permit), at * MS)
        }

        fn restarts(&mut self, node: usize, configuration: Configuration, at: u64) {
            self.0.ended(node);
            self.0.started(node, configuration, at * MS);
        }
    }

    #[test]
    fn a_newcomer_with_another_configuration_that_takes_anything_is_found() {
        let mut pair = Pair::new();
        pair.restarts(1, WRONG, 5_001);
        assert!(pair.0.is_apart());
        assert!(pair.permit(1, 3, 5_500, 6_000).is_err());
        assert!(pair.0.writes(1, 5_500 * MS).is_err());
        assert!(pair.0.takes_role(1, 5_500 * MS).is_err());
        assert_eq!(pair.0.writes(0, 5_500 * MS), Ok(()));
        pair.restarts(1, Configuration::Right, 5_600);
        assert_eq!(pair.0.takes_role(1, 5_700 * MS), Ok(()));
    }

    #[test]
    fn a_backup_is_established_as_well_and_a_process_that_has_ended_is_not() {
        let mut pair = Pair::new();
        pair.restarts(0, WRONG, 5_001);
        assert!(pair.permit(0, 4, 5_500, 6_000).is_err());
        let mut pair = Pair::new();
        pair.restarts(1, WRONG, 5_001);
        pair.0.ended(0);
        assert_eq!(pair.permit(1, 3, 5_500, 6_000), Ok(()));
        pair.0.started(0, Configuration::Right, 5_600 * MS);
        assert!(pair.0.takes_role(0, 5_700 * MS).is_err(), "the other way");
    }

    #[test]
    fn who_hears_nothing_of_its_partner_may_go_on_which_is_counted() {
        let mut pair = Pair::new();
        pair.restarts(1, WRONG, 5_001);
        pair.0.hears(1, 5_050 * MS);
        assert!(pair.0.takes_role(1, 6_040 * MS).is_err());
        assert_eq!(pair.permit(1, 3, 6_050, 6_060), Ok(()));
        assert_eq!(pair.1.forgiven().get(Exemption::CutOffFromPartner), 1);
        assert!(pair.permit(0, 4, 6_070, 6_080).is_err(), "then the other");
    }

    #[test]
    fn a_disturbed_primary_is_found_unless_something_else_goes_wrong() {
        let disturbed = |what: &dyn Fn(&mut Pair) -> Verdict| {
            let mut pair = Pair::new();
            pair.restarts(1, WRONG, 5_001);
            assert!(what(&mut pair).is_err());
            let mut pair = Pair::new();
            pair.restarts(1, WRONG, 5_001);
            pair.0.another_fault(5_100 * MS);
            assert_eq!(what(&mut pair), Ok(()));
        };
        disturbed(&|pair| pair.0.permit(0, 0, None, 5_010 * MS));
        disturbed(&|pair| pair.permit(0, 4, 5_010, 30_000));
        disturbed(&|pair| pair.permit(0, 2, 20_001, 30_000));
        disturbed(&|pair| pair.0.accepted(0, 0, 5_021 * MS));
        disturbed(&|pair| pair.0.look(5_021 * MS));
        let mut pair = Pair::new();
        pair.restarts(1, WRONG, 5_001);
        assert_eq!(pair.permit(0, 2, 5_010, 30_000), Ok(()));
        assert_eq!(pair.0.accepted(0, 0, 5_020 * MS), Ok(()));
    }
}
