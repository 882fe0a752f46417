//! Can a program be made redundant? The kit runs it side by side with itself, moves its state between instances at random
//! cycles, compares every output bit by bit, and measures (`spec/program.md`, G-40 and further).

mod difference;
mod findings;
mod inputs;
mod report;
mod runner;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bumpless_base::Duration;
use bumpless_base::random::Random;
use bumpless_controller::{Application, TimeSource};

pub use difference::Difference;
pub use findings::{Hindrance, Note, Seen};
pub use inputs::{BadTable, Drawn, Inputs, Reader, Table};
pub use report::{Percentiles, Report, Share};

use runner::{Runner, changed_share, digest, disturb};

/// Cycles that are repeated after a reset.
const AFTER_RESET: u64 = 1_000;

/// Bytes of states that are compared with the one before, at most: a large state is looked at now and then.
const COMPARED: u64 = 1 << 30;

/// What to do with the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Cycles of each run.
    pub cycles: u64,
    /// How often the state is moved in a run that moves it; at most once before each cycle.
    pub moves: u64,
    /// Draws the cycles before which it is moved.
    pub seed: u64,
    /// The period that the program is told.
    pub period: Duration,
    /// What it is given.
    pub inputs: Inputs,
}

/// Which run is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The run that is never disturbed, and is measured.
    Alone,
    /// A second instance with the same inputs.
    Twin,
    /// The state moves to new instances.
    MovedToNew,
    /// The state moves between two instances; the other one goes on with something else in between.
    MovedToUsed,
    /// From the beginning again, after a reset.
    Reset,
}

/// What the kit needs from outside.
pub struct Surroundings<'a> {
    /// Makes a new instance of the program in its initial state. Instances should share nothing; those of a program
    /// that could read a clock should begin at different times.
    pub make: &'a mut dyn FnMut() -> Result<Box<dyn Application>, String>,
    /// What the system shows of the instance that was made last, at the end of the run that is never disturbed.
    pub look: &'a mut dyn FnMut() -> Vec<Seen>,
    /// Measures.
    pub time: &'a dyn TimeSource,
    /// Is told which cycle of which run comes; may stop it all.
    pub progress: &'a mut dyn FnMut(Stage, u64) -> ControlFlow<()>,
}

/// Puts a program to the test.
pub fn examine(trial: &Trial, surroundings: Surroundings<'_>) -> Report {
    let mut examination = Examination {
        trial,
        surroundings,
        move_before: draw_moves(trial),
        record: Record::default(),
        report: Report::default(),
    };
    let ended = examination.stages();
    let mut report = examination.report;
    match ended {
        Ok(()) => {}
        Err(End::Interrupted) => report.interrupted = true,
        Err(End::NotMade { cycle, cause }) => {
            report.hindrances.push(Hindrance::NotMade { cycle, cause });
        }
    }
    report
}

/// The cycles before which the state is moved.
fn draw_moves(trial: &Trial) -> BTreeSet<u64> {
    let mut random = Random::new(trial.seed);
    let mut cycles = BTreeSet::new();
    while (cycles.len() as u64) < trial.moves.min(trial.cycles) {
        cycles.insert(1 + random.below(trial.cycles));
    }
    cycles
}

/// What the run gave that was never disturbed.
#[derive(Default)]
struct Record {
    /// Cycles that did not fail.
    cycles: u64,
    /// Whether the one after them failed.
    fails: bool,
    /// Bits of the outputs of each cycle.
    outputs: Vec<u64>,
    per_cycle: usize,
    /// Of the state after the cycles before which it is moved elsewhere.
    digests: Vec<u64>,
}

impl Record {
    fn outputs(&self, cycle: u64) -> &[u64] {
        let from = (cycle as usize - 1) * self.per_cycle;
        &self.outputs[from..from + self.per_cycle]
    }
}

/// Why a run ended before its end.
enum End {
    Interrupted,
    NotMade { cycle: u64, cause: String },
}

/// How a cycle differs from the record: by an output, or `None`: by failing or not failing.
type Differs = Option<Difference>;

struct Examination<'a, 'b> {
    trial: &'a Trial,
    surroundings: Surroundings<'b>,
    move_before: BTreeSet<u64>,
    record: Record,
    report: Report,
}

impl Examination<'_, '_> {
    fn stages(&mut self) -> Result<(), End> {
        let mut alone = self.runner(1)?;
        self.alone(&mut alone)?;
        let twin = self.runner(1)?;
        // What differs in one of these would differ in the next, too.
        if self.twin(twin)? || self.moved(Stage::MovedToNew)? || self.moved(Stage::MovedToUsed)? {
            return Ok(());
        }
        self.again(alone)
    }

    fn make(&mut self, cycle: u64) -> Result<Box<dyn Application>, End> {
        (self.surroundings.make)().map_err(|cause| End::NotMade { cycle, cause })
    }

    fn runner(&mut self, cycle: u64) -> Result<Runner, End> {
        let application = self.make(cycle)?;
        Ok(Runner::new(
            application,
            &self.trial.inputs,
            self.trial.period,
        ))
    }

    fn tell(&mut self, stage: Stage, cycle: u64) -> Result<(), End> {
        match (self.surroundings.progress)(stage, cycle) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(End::Interrupted),
        }
    }

    /// The run that is never disturbed.
    fn alone(&mut self, runner: &mut Runner) -> Result<(), End> {
        self.report.inputs = runner.application.inputs();
        self.report.outputs = runner.outputs.len();
        self.report.state_max = runner.application.state_size_max();
        self.record.per_cycle = runner.outputs.len();
        let mut figures = Figures::new(self.trial.cycles, self.report.state_max);
        for cycle in 1..=self.trial.cycles {
            self.tell(Stage::Alone, cycle)?;
            runner.copy_in();
            let began = self.surroundings.time.now();
            let executed = runner.execute(cycle);
            let executed_at = self.surroundings.time.now();
            if let Err(cause) = executed {
                self.record.fails = true;
                self.report
                    .hindrances
                    .push(Hindrance::Fails { cycle, cause });
                break;
            }
            let state = runner.save();
            let saved_at = self.surroundings.time.now();
            figures.executing.push(executed_at.since(began).as_nanos());
            figures.saving.push(saved_at.since(executed_at).as_nanos());
            figures.note_state(cycle, state);
            if self.move_before.contains(&(cycle + 1)) {
                self.record.digests.push(digest(state));
            }
            self.record.cycles = cycle;
            let bits = runner.outputs.iter().map(|value| value.to_bits());
            self.record.outputs.extend(bits);
            self.note_outputs(cycle, &runner.outputs);
        }
        self.report.cycles = self.record.cycles;
        figures.put_into(&mut self.report);
        self.note_constancy();
        self.note_surroundings();
        Ok(())
    }

    fn note_outputs(&mut self, cycle: u64, outputs: &[f64]) {
        let noted = |hindrance: &Hindrance| matches!(hindrance, Hindrance::NotFinite { .. });
        if let Some(output) = outputs.iter().position(|value| !value.is_finite())
            && !self.report.hindrances.iter().any(noted)
        {
            let hindrance = Hindrance::NotFinite { cycle, output };
            self.report.hindrances.push(hindrance);
        }
    }

    fn note_surroundings(&mut self) {
        for seen in (self.surroundings.look)() {
            match seen {
                Seen::Sockets(count) => self.report.hindrances.push(Hindrance::Sockets {
                    cycle: self.record.cycles,
                    count,
                }),
                other => self.report.notes.push(Note::Outside(other)),
            }
        }
    }

    fn note_constancy(&mut self) {
        if self.record.per_cycle == 0 {
            self.report.notes.push(Note::NoOutputs);
        } else if self.record.cycles > 1 {
            let mut cycles = self.record.outputs.chunks(self.record.per_cycle);
            let first = cycles.next().unwrap_or_default();
            if cycles.all(|outputs| outputs == first) {
                self.report.notes.push(Note::OutputsNeverChange);
            }
        }
    }

    /// A second instance with the same inputs; returns whether it differed.
    fn twin(&mut self, mut runner: Runner) -> Result<bool, End> {
        let mut digests = 0;
        for cycle in 1..=self.last_cycle() {
            self.tell(Stage::Twin, cycle)?;
            runner.copy_in();
            if let Err(difference) = self.compare(&mut runner, cycle) {
                let hindrance = Hindrance::NotDeterministic { cycle, difference };
                self.report.hindrances.push(hindrance);
                return Ok(true);
            }
            if self.move_before.contains(&(cycle + 1)) && cycle <= self.record.cycles {
                let same = self.record.digests.get(digests) == Some(&digest(runner.save()));
                digests += 1;
                let noted = |note: &Note| matches!(note, Note::MeaninglessBytes { .. });
                if !same && !self.report.notes.iter().any(noted) {
                    self.report.notes.push(Note::MeaninglessBytes { cycle });
                }
            }
        }
        Ok(false)
    }

    /// The last cycle that the record knows something of.
    fn last_cycle(&self) -> u64 {
        self.record.cycles + u64::from(self.record.fails)
    }

    /// Executes a cycle and compares it with the record.
    fn compare(&self, runner: &mut Runner, cycle: u64) -> Result<(), Differs> {
        let fails = runner.execute(cycle).is_err();
        if fails || cycle > self.record.cycles {
            let should = cycle > self.record.cycles;
            return if fails == should { Ok(()) } else { Err(None) };
        }
        match Difference::between(self.record.outputs(cycle), &runner.outputs) {
            None => Ok(()),
            difference => Err(difference),
        }
    }

    /// The state is moved before each cycle that was drawn; returns whether that hindered.
    fn moved(&mut self, stage: Stage) -> Result<bool, End> {
        let mut runner = self.runner(1)?;
        let mut spare = match stage {
            Stage::MovedToUsed => Some(self.make(1)?),
            _ => None,
        };
        let mut moved = 0;
        for cycle in 1..=self.last_cycle() {
            self.tell(stage, cycle)?;
            if self.move_before.contains(&cycle) {
                let target = match spare.take() {
                    Some(mut used) => {
                        disturb(used.as_mut(), cycle, self.trial.period);
                        used
                    }
                    None => self.make(cycle)?,
                };
                let left = runner.move_to(target);
                match left {
                    Ok(left) if stage == Stage::MovedToUsed => spare = Some(left),
                    Ok(_) => {}
                    Err(cause) => {
                        let hindrance = Hindrance::StateRefused { cycle, cause };
                        self.report.hindrances.push(hindrance);
                        return Ok(true);
                    }
                }
                moved = cycle;
                self.report.moves += 1;
            }
            runner.copy_in();
            if let Err(difference) = self.compare(&mut runner, cycle) {
                self.report.hindrances.push(match stage {
                    _ if moved == 0 => Hindrance::NotDeterministic { cycle, difference },
                    Stage::MovedToUsed => Hindrance::LeftBehind {
                        cycle,
                        moved,
                        difference,
                    },
                    _ => Hindrance::HiddenState {
                        cycle,
                        moved,
                        difference,
                    },
                });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// From the beginning again, with an instance that has run all cycles.
    fn again(&mut self, mut runner: Runner) -> Result<(), End> {
        runner.reset(&self.trial.inputs);
        for cycle in 1..=self.last_cycle().min(AFTER_RESET) {
            self.tell(Stage::Reset, cycle)?;
            runner.copy_in();
            if let Err(difference) = self.compare(&mut runner, cycle) {
                let hindrance = Hindrance::ResetIncomplete { cycle, difference };
                self.report.hindrances.push(hindrance);
                break;
            }
        }
        Ok(())
    }
}

/// What is measured of the first run.
struct Figures {
    executing: Vec<u64>,
    saving: Vec<u64>,
    bytes: Vec<u64>,
    before: Vec<u8>,
    /// The cycle whose state is in `before`.
    before_at: u64,
    /// Every how many cycles two states are compared.
    every: u64,
    shares: (f64, f64, u64),
}

impl Figures {
    fn new(cycles: u64, state_max: usize) -> Self {
        let capacity = usize::try_from(cycles).unwrap_or_default().min(1 << 20);
        let most = cycles.saturating_mul(2 * state_max as u64);
        Self {
            executing: Vec::with_capacity(capacity),
            saving: Vec::with_capacity(capacity),
            bytes: Vec::with_capacity(capacity),
            before: Vec::new(),
            before_at: 0,
            every: most.div_ceil(COMPARED).max(1),
            shares: (0.0, 0.0, 0),
        }
    }

    fn note_state(&mut self, cycle: u64, state: &[u8]) {
        self.bytes.push(state.len() as u64);
        if self.before_at != 0 && self.before_at + 1 == cycle {
            let share = changed_share(&self.before, state);
            let (sum, max, count) = self.shares;
            self.shares = (sum + share, max.max(share), count + 1);
        }
        if cycle.is_multiple_of(self.every) {
            self.before.clear();
            self.before.extend_from_slice(state);
            self.before_at = cycle;
        }
    }

    fn put_into(self, report: &mut Report) {
        report.executing = Percentiles::of(self.executing);
        report.saving = Percentiles::of(self.saving);
        report.state_bytes = Percentiles::of(self.bytes);
        let (sum, max, count) = self.shares;
        report.changed = Share {
            mean: if count == 0 { 0.0 } else { sum / count as f64 },
            max,
        };
    }
}
