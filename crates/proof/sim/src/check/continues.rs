//! continues: as long as a process that lives holds the newest state of an application, no primary begins it from an
//! older one or from the initial one.
//!
//! The newest state is the one behind the last output that the field device accepted. A node holds it if what it has
//! executed itself in this life of its process, or what lies ready for it, has come as far. A process that stands
//! still lives. States that were executed and whose outputs never came into force are nobody's loss: the process in
//! the field has never felt them, so beginning before them undoes nothing.
//!
//! After a time that the process in the field bears no longer (`hot_restart`), going on is over, and beginning from
//! the initial state is what is left.

use bumpless_base::Epoch;
use bumpless_controller::executor::Resumed;
use bumpless_controller::state::Progress;

use super::{Delivered, Exemption, Output, Published, Tally, Verdict};

/// What the checker has to know of an application.
#[derive(Clone, Copy, Debug, Default)]
pub struct Continuing {
    /// Whether its backup may be a cycle behind.
    pub behind: bool,
    /// How long after the last output its process bears a going on, nanoseconds.
    pub hot_restart: u64,
    /// By how much the nodes cannot know when the last output came into force: between the publication of a state
    /// and its output lie the wait for the acknowledgement and the request to the device, nanoseconds.
    pub unsure: u64,
}

/// An application as it goes on.
struct Line {
    terms: Continuing,
    /// The last output that was accepted, and when.
    newest: Option<(Progress, u64)>,
    /// The role was handed over in order since.
    handed_over: bool,
    /// The epoch of the first output after the last beginning from the initial state: what is older is of another
    /// line of states.
    begun: Epoch,
    /// By node: what it has executed itself.
    own: Vec<Option<Progress>>,
    /// By node: when what it has executed, and what lies ready for it, was made.
    made: Vec<[u64; 2]>,
    /// By node: what lies ready for it.
    received: Vec<Option<Progress>>,
    /// And how much earlier the node may believe it to have come: how long it had not looked before, nanoseconds.
    late: Vec<u64>,
    /// By node: it has begun in its present role.
    acting: Vec<bool>,
    /// By node: when it last asked the field device in vain, with the right to write, in a role in which it had begun.
    in_vain: Vec<u64>,
    /// Beginnings from the initial state after the first output.
    cold_starts: u64,
}

impl Line {
    fn new(terms: Continuing, nodes: usize) -> Self {
        Self {
            terms,
            newest: None,
            handed_over: false,
            begun: Epoch(0),
            own: vec![None; nodes],
            made: vec![[0; 2]; nodes],
            received: vec![None; nodes],
            late: vec![0; nodes],
            acting: vec![false; nodes],
            in_vain: vec![0; nodes],
            cold_starts: 0,
        }
    }

    /// Whether who has come this far goes on after `newest`.
    fn suffices(&self, state: Option<Progress>, newest: Progress) -> bool {
        let behind = u64::from(self.terms.behind && !self.handed_over);
        state.is_some_and(|state| state.epoch >= self.begun && state.cycle + behind >= newest.cycle)
    }

    /// Who has come as far as `newest`, and how far; those who have it itself before those who are a cycle behind,
    /// or went another way from before it.
    fn holder(&self, newest: Progress) -> Option<(usize, Progress)> {
        let both = self.own.iter().zip(&self.received).enumerate();
        let held = both.flat_map(|(node, (own, received))| [(node, *own), (node, *received)]);
        let whole =
            |state: &Option<Progress>| state.is_some_and(|state| state.cycle >= newest.cycle);
        { held }
            .filter(|(_, state)| self.suffices(*state, newest))
            .max_by_key(|(_, state)| whole(state))
            .and_then(|(node, state)| Some((node, state?)))
    }
}

/// The checker.
pub struct Continues {
    lines: Vec<Line>,
    drift_ppm: u32,
    /// Whether going on after `hot_restart` is a violation.
    enforced: bool,
    tally: Tally,
}

impl Continues {
    /// A checker that has seen nothing, of applications on these terms. Clocks differ from true time by `drift_ppm` at
    /// most; with `enforced`, going on after `hot_restart` is a violation.
    pub fn new(
        terms: &[Continuing],
        nodes: usize,
        (drift_ppm, enforced): (u32, bool),
        tally: &Tally,
    ) -> Self {
        let lines = terms.iter().map(|terms| Line::new(*terms, nodes));
        Self {
            lines: lines.collect(),
            drift_ppm,
            enforced,
            tally: tally.clone(),
        }
    }

    /// An application has executed a cycle on a node.
    pub fn published(&mut self, published: &Published) {
        let (epoch, cycle) = (published.epoch, published.cycle);
        let line = &mut self.lines[published.application];
        line.own[published.node] = Some(Progress { epoch, cycle });
        line.made[published.node][0] = published.at;
    }

    /// This state lies ready, made by `origin`; its node had not looked since `looked`.
    pub fn delivered(&mut self, delivered: &Delivered, origin: &Published, looked: u64) {
        let (epoch, cycle) = (origin.epoch, origin.cycle);
        let line = &mut self.lines[delivered.application];
        line.received[delivered.node] = Some(Progress { epoch, cycle });
        line.made[delivered.node][1] = origin.at;
        line.late[delivered.node] = delivered.at.saturating_sub(looked);
    }

    /// The process of `node` has ended, or is a new one.
    pub fn forgets(&mut self, node: usize) {
        (0..self.lines.len()).for_each(|application| self.leaves(application, node));
    }

    /// `application` does not run on `node`.
    pub fn leaves(&mut self, application: usize, node: usize) {
        let line = &mut self.lines[application];
        (line.own[node], line.received[node]) = (None, None);
        (line.acting[node], line.in_vain[node]) = (false, 0);
    }

    /// The application's new writer has the role by an ordered hand-over.
    pub fn handed_over(&mut self, application: usize) {
        self.lines[application].handed_over = true;
    }

    /// A field device has accepted an output.
    pub fn accepted(&mut self, output: &Output, at: u64) {
        let line = &mut self.lines[output.application];
        let (epoch, cycle) = (output.epoch, output.cycle);
        if let Some((last, _)) = line.newest {
            line.handed_over &= epoch <= last.epoch;
            if cycle < last.cycle {
                line.begun = epoch;
            }
        }
        line.newest = Some((Progress { epoch, cycle }, at));
    }

    /// The field device of `application` does not answer `node`, which has the right to write.
    pub fn asks_in_vain(&mut self, application: usize, node: usize, at: u64) {
        let line = &mut self.lines[application];
        if line.acting[node] {
            line.in_vain[node] = at;
        }
    }

    /// A node takes the role of primary.
    pub fn takes_role(&mut self, node: usize) {
        for line in &mut self.lines {
            (line.acting[node], line.in_vain[node]) = (false, 0);
        }
    }

    /// How often each application began from its initial state after its first output.
    pub fn cold_starts(&self) -> impl Iterator<Item = u64> {
        self.lines.iter().map(|line| line.cold_starts)
    }

    /// Whether the last output of `application` is so old at `at` that nobody may go on from its state.
    pub fn is_outlived(&self, application: usize, at: u64) -> bool {
        let line = &self.lines[application];
        let idle = line.newest.map(|(_, written)| at.saturating_sub(written));
        idle.is_some_and(|idle| idle > line.terms.hot_restart)
    }

    /// At `at`, `application` begins on `node` `with` this.
    pub fn begins(&mut self, application: usize, node: usize, with: Resumed, at: u64) -> Verdict {
        let own = self.lines[application].own[node];
        let from = match with {
            Resumed::Loaded { epoch, cycle } | Resumed::Restored { epoch, cycle } => {
                Some(Progress { epoch, cycle })
            }
            Resumed::Kept { .. } => own,
            Resumed::ColdStart => None,
        };
        let verdict = self.judge(application, node, from, at);
        // What it had before is gone.
        let line = &mut self.lines[application];
        (line.own[node], line.acting[node]) = (from, true);
        verdict
    }

    fn judge(
        &mut self,
        application: usize,
        node: usize,
        from: Option<Progress>,
        at: u64,
    ) -> Verdict {
        let line = &mut self.lines[application];
        let Some((newest, written_at)) = line.newest else {
            self.tally.count(Exemption::NothingWritten);
            return Ok(());
        };
        line.cold_starts += u64::from(from.is_none());
        let idle = at.saturating_sub(written_at);
        if line.suffices(from, newest) {
            return self.goes_on((application, node), from, newest, (idle, at));
        }
        let Some((holder, held)) = line.holder(newest) else {
            self.tally.count(Exemption::NobodyHolds);
            return Ok(());
        };
        let terms = line.terms;
        if held.epoch < newest.epoch {
            self.tally.count(Exemption::BehindAcrossRoles);
            return Ok(());
        }
        let late = match line.own[holder] == Some(held) {
            true => 0,
            false => line.late[holder],
        };
        if idle + self.unsure(terms) <= terms.hot_restart && idle + late > terms.hot_restart {
            self.tally.count(Exemption::CameLate);
            return Ok(());
        }
        if idle + self.unsure(terms) > terms.hot_restart {
            self.tally.count(match idle > terms.hot_restart {
                true => Exemption::HotRestartOver,
                false => Exemption::HotRestartUnsure,
            });
            return Ok(());
        }
        let what = match from {
            Some(from) => format!("its state of cycle {} in epoch {}", from.cycle, from.epoch),
            None => "its initial state".to_owned(),
        };
        Err(format!(
            "application {application} begins on node {node} from {what}, {} ms after the output of cycle {} in epoch {}, \
             although node {holder} lives and has come to cycle {} in epoch {}",
            idle / 1_000_000,
            newest.cycle,
            newest.epoch,
            held.cycle,
            held.epoch
        ))
    }

    fn goes_on(
        &self,
        (application, node): (usize, usize),
        from: Option<Progress>,
        newest: Progress,
        (idle, at): (u64, u64),
    ) -> Verdict {
        if from.is_some_and(|from| from.cycle < newest.cycle) {
            self.tally.count(Exemption::LastCycleAgain);
        }
        let line = &self.lines[application];
        let terms = line.terms;
        // A state that was executed since is no older than that, though its outputs were held.
        let own = line.own[node] == from;
        let made = line.made[node][usize::from(!own)];
        let idle = idle.min(at.saturating_sub(made));
        if self.enforced && idle > terms.hot_restart {
            if own && at.saturating_sub(line.in_vain[node]) <= terms.hot_restart {
                self.tally.count(Exemption::DeviceAway);
                return Ok(());
            }
            if idle <= terms.hot_restart + self.unsure(terms) {
                self.tally.count(Exemption::HotRestartUnsure);
                return Ok(());
            }
            return Err(format!(
                "application {application} goes on at node {node} {} ms after its last output; its process bears {} ms",
                idle / 1_000_000,
                terms.hot_restart / 1_000_000
            ));
        }
        Ok(())
    }

    /// By how much a node can be wrong about `hot_restart`.
    fn unsure(&self, terms: Continuing) -> u64 {
        terms.hot_restart / 1_000_000 * u64::from(self.drift_ppm) + terms.unsure
    }
}

#[cfg(test)]
mod tests;
