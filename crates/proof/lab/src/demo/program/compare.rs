//! Every output that the device took, beside what the program gives when it runs alone with the same inputs.
//!
//! In a cycle whose output the device took, the program had the inputs that the device gave last before. For a cycle
//! without output several may come into question (its node was killed, or did not get them and went on with the last ones): all
//! of these are gone through, and what fits none of them differs.

use std::path::Path;

use bumpless_base::Duration;
use bumpless_controller::{Application, CycleContext};

use bumpless_host::Subject;
use bumpless_host::kit::Inputs;

use super::rows::Rows;
use crate::runlog::{Compared, Run, read_plant};

/// Ways to have come to a cycle that are followed at most.
const WAYS_MAX: usize = 64;

/// A way in which the program may have come to where it is.
#[derive(Clone, PartialEq)]
struct Way {
    state: Vec<u8>,
    outputs: Vec<f64>,
    /// The row of inputs that it had last, as an index into those since the last output.
    row: usize,
}

/// Compares each accepted write of `run` with what an instance of the program gives that nobody disturbs.
///
/// # Errors
/// The program does not run.
pub fn compare(run: &Run, subject: &mut Subject, inputs: &Inputs) -> Result<Vec<Compared>, String> {
    let application = subject.make()?;
    let rows = Rows::new(inputs.clone(), subject.shape().inputs);
    beside(run, Alone::new(application, subject.period(), rows))
}

/// The same for a device's log.
///
/// # Errors
/// It cannot be read, or the program does not run.
pub fn compare_log(
    log: &Path,
    subject: &mut Subject,
    inputs: &Inputs,
) -> Result<Vec<Compared>, String> {
    let log = read_plant(log).map_err(|error| error.to_string())?;
    let run = Run {
        writes: log.writes,
        reads: log.reads,
        ..Run::default()
    };
    compare(&run, subject, inputs)
}

/// The same with the instance that nobody disturbs.
fn beside(run: &Run, mut alone: Alone) -> Result<Vec<Compared>, String> {
    let (mut compared, mut reads) = (Vec::new(), run.reads.iter().peekable());
    // The row of the last output's cycle, and those that were read since.
    let mut given = vec![0];
    for write in run.writes.iter().filter(|write| write.accepted) {
        while let Some(read) = reads.next_if(|read| read.time_ns <= write.time_ns) {
            if given.last() != Some(&read.row) {
                given.push(read.row);
            }
        }
        let differs = match write.cycle.cmp(&alone.cycle) {
            // It was compared before, or is out of step, which another promise says.
            std::cmp::Ordering::Less => continue,
            std::cmp::Ordering::Equal => alone.differs(&write.outputs),
            std::cmp::Ordering::Greater => {
                alone.come_to(write.cycle, &given)?;
                alone.differs(&write.outputs)
            }
        };
        given.drain(..given.len() - 1);
        compared.push(Compared {
            time_ns: write.time_ns,
            cycle: write.cycle,
            differs,
        });
    }
    Ok(compared)
}

/// An instance that nobody disturbs.
struct Alone {
    application: Box<dyn Application>,
    period: Duration,
    rows: Rows,
    state: Vec<u8>,
    /// The last cycle that it has executed.
    cycle: u64,
    ways: Vec<Way>,
}

impl Alone {
    fn new(application: Box<dyn Application>, period: Duration, rows: Rows) -> Self {
        let outputs = vec![0.0; application.outputs()];
        let mut alone = Self {
            state: vec![0; application.state_size_max()],
            application,
            period,
            rows,
            cycle: 0,
            ways: Vec::new(),
        };
        let state = alone.saved();
        alone.ways.push(Way {
            state,
            outputs,
            row: 0,
        });
        alone
    }

    fn saved(&mut self) -> Vec<u8> {
        let length = self.application.save(&mut self.state);
        self.state[..length].to_vec()
    }

    /// Executes up to `cycle`, the last one with the last row of `given`, those between with any from where they are.
    fn come_to(&mut self, cycle: u64, given: &[u64]) -> Result<(), String> {
        for way in &mut self.ways {
            way.row = 0;
        }
        while self.cycle < cycle {
            self.cycle += 1;
            let last = self.cycle == cycle;
            let mut next: Vec<Way> = Vec::new();
            for way in std::mem::take(&mut self.ways) {
                let from = if last { given.len() - 1 } else { way.row };
                for row in from..given.len() {
                    let came = self.execute(&way, row, given[row])?;
                    if next.len() < WAYS_MAX && !next.contains(&came) {
                        next.push(came);
                    }
                }
            }
            self.ways = next;
        }
        Ok(())
    }

    fn execute(&mut self, way: &Way, row: usize, number: u64) -> Result<Way, String> {
        let loaded = self.application.load(&way.state);
        loaded.map_err(|error| error.to_string())?;
        let mut outputs = way.outputs.clone();
        let context = CycleContext {
            cycle: self.cycle,
            period: self.period,
        };
        let inputs = self.rows.row(number);
        let executed = self.application.execute(&context, inputs, &mut outputs);
        executed.map_err(|fault| format!("cycle {}: {fault}", self.cycle))?;
        Ok(Way {
            state: self.saved(),
            outputs,
            row,
        })
    }

    /// How `outputs` differ from every way; ways that do are given up, unless all do.
    fn differs(&mut self, outputs: &[f64]) -> Option<String> {
        let difference = |way: &Way| {
            let pairs = way.outputs.iter().zip(outputs).enumerate();
            let mut pairs =
                pairs.map(|(at, (expected, found))| (at, *expected as f32, *found as f32));
            pairs.find(|(_, expected, found)| expected.to_bits() != found.to_bits())
        };
        let fits: Vec<bool> = self
            .ways
            .iter()
            .map(|way| difference(way).is_none())
            .collect();
        if fits.contains(&true) {
            let mut fits = fits.into_iter();
            self.ways.retain(|_| fits.next() == Some(true));
            return None;
        }
        let (at, expected, found) = difference(self.ways.first()?)?;
        Some(format!("output {at} is {found} instead of {expected}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runlog::{Read, Write};
    use bumpless_controller::{LoadError, ProgramFault};

    /// A sum of its inputs, and the number of cycles.
    #[derive(Clone, Copy, Default)]
    struct Sum {
        sum: f64,
        cycles: f64,
    }

    impl Application for Sum {
        fn inputs(&self) -> usize {
            1
        }
        fn outputs(&self) -> usize {
            2
        }
        fn execute(
            &mut self,
            _: &CycleContext,
            inputs: &[f64],
            outputs: &mut [f64],
        ) -> Result<(), ProgramFault> {
            self.sum += inputs[0];
            self.cycles += 1.0;
            outputs.copy_from_slice(&[self.sum, self.cycles]);
            Ok(())
        }
        fn state_size_max(&self) -> usize {
            16
        }
        fn save(&self, into: &mut [u8]) -> usize {
            into[..8].copy_from_slice(&self.sum.to_le_bytes());
            into[8..16].copy_from_slice(&self.cycles.to_le_bytes());
            16
        }
        fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
            let [sum, cycles] = state.as_chunks::<8>().0 else {
                return Err(LoadError::Value { field: "all" });
            };
            (self.sum, self.cycles) = (f64::from_le_bytes(*sum), f64::from_le_bytes(*cycles));
            Ok(())
        }
        fn reset(&mut self) {
            *self = Self::default();
        }
    }

    const INPUTS: Inputs = Inputs::Drawn { seed: 9 };

    /// What a pair leaves behind that executes as told.
    struct Pair {
        run: Run,
        now: u64,
        program: Sum,
        rows: Rows,
        after: u64,
        cycle: u64,
    }

    impl Pair {
        fn new() -> Self {
            Self {
                run: Run::default(),
                now: 0,
                program: Sum::default(),
                rows: Rows::new(INPUTS, 1),
                after: 0,
                cycle: 0,
            }
        }

        /// A cycle with the inputs of this row; its output is written if `taken`.
        fn cycle(&mut self, row: u64, taken: bool) {
            self.cycle += 1;
            let context = CycleContext {
                cycle: self.cycle,
                period: Duration::from_millis(10),
            };
            let mut outputs = vec![0.0; 2];
            let inputs = self.rows.row(row).to_vec();
            self.program
                .execute(&context, &inputs, &mut outputs)
                .unwrap();
            self.now += 1;
            if taken {
                self.after = self.cycle;
                self.run.writes.push(Write {
                    time_ns: self.now,
                    writer: 0,
                    epoch: 1,
                    cycle: self.cycle,
                    outputs: outputs.iter().map(|&it| f64::from(it as f32)).collect(),
                    accepted: true,
                });
            }
        }

        fn read(&mut self) -> u64 {
            self.now += 1;
            let row = self.after;
            self.run.reads.push(Read {
                time_ns: self.now,
                row,
            });
            row
        }

        fn normal(&mut self, cycles: u64) {
            for _ in 0..cycles {
                let row = self.read();
                self.cycle(row, true);
            }
        }

        fn differing(&self) -> Vec<u64> {
            let period = Duration::from_millis(10);
            let alone = Alone::new(Box::new(Sum::default()), period, Rows::new(INPUTS, 1));
            let compared = beside(&self.run, alone).unwrap();
            assert_eq!(compared.len(), self.run.writes.len());
            let differing = compared.iter().filter(|it| it.differs.is_some());
            differing.map(|it| it.cycle).collect()
        }
    }

    #[test]
    fn cycles_without_output_are_followed_with_any_inputs_that_they_may_have_had() {
        let mut pair = Pair::new();
        pair.normal(5);
        // Two cycles whose outputs were not written: one with new inputs, one before with the last ones.
        let last = pair.after - 1;
        pair.cycle(last, false);
        let row = pair.read();
        pair.cycle(row, false);
        pair.normal(5);
        // A node that was killed between its read and its write, and one that executes the same cycle again.
        let before = (pair.program, pair.cycle);
        let row = pair.read();
        pair.cycle(row, false);
        (pair.program, pair.cycle) = before;
        pair.normal(5);
        assert_eq!(pair.differing(), [0; 0]);
    }

    #[test]
    fn a_state_that_is_lost_or_old_shows_in_the_first_output_and_all_others() {
        let mut pair = Pair::new();
        pair.normal(5);
        pair.program = Sum::default();
        pair.normal(3);
        assert_eq!(pair.differing(), [6, 7, 8]);
        let mut pair = Pair::new();
        pair.normal(5);
        let old = pair.program;
        pair.normal(1);
        pair.program = old;
        pair.normal(2);
        assert_eq!(pair.differing(), [7, 8], "one cycle old");
    }

    #[test]
    fn an_output_out_of_step_differs() {
        let mut pair = Pair::new();
        pair.normal(5);
        let mut repeated = pair.run.writes[3].clone();
        (repeated.time_ns, repeated.cycle) = (pair.now + 1, 5);
        pair.run.writes.push(repeated);
        assert_eq!(pair.differing(), [5]);
        let mut pair = Pair::new();
        pair.normal(5);
        pair.run.writes[2].outputs[1] += 1.0;
        assert_eq!(pair.differing(), [3], "and the ones after do not");
    }
}
