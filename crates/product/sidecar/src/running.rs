//! A request to the program's process, and its answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bumpless_base::{Duration, Instant};
use bumpless_controller::{CycleContext, Unanswered};
use bumpless_program::layout::{command, result};

use crate::process::{Attached, Process, Waited, now};
use crate::{Cause, Shape};

/// A process with the number of its last request.
pub(crate) struct Running {
    /// The process.
    pub process: Arc<Process>,
    /// The number of the last request.
    pub request: u32,
}

impl Running {
    /// Has it execute a cycle, and waits for its answer until the limit.
    pub fn execute(
        &mut self,
        context: &CycleContext,
        limit: Duration,
        inputs: &[f64],
        outputs: &[f64],
    ) -> Result<(), Cause> {
        let began = now();
        let before = self.process.computed();
        let shared = self.process.shared();
        for (slots, values) in [(shared.inputs(), inputs), (shared.outputs(), outputs)] {
            for (slot, value) in slots.iter().zip(values) {
                slot.store(value.to_bits(), Ordering::Relaxed);
            }
        }
        let header = shared.header();
        header.cycle.store(context.cycle, Ordering::Relaxed);
        header
            .period
            .store(context.period.as_nanos(), Ordering::Relaxed);
        self.ask(command::EXECUTE, limit, (began, before))
    }

    /// Has it make its state from `old`, one of this version, and waits likewise.
    pub fn convert(&mut self, (version, old): (u64, &[u8]), limit: Duration) -> Result<(), Cause> {
        let began = (now(), self.process.computed());
        let header = self.process.shared().header();
        header.old_version.store(version, Ordering::Relaxed);
        header.old_len.store(old.len() as u64, Ordering::Relaxed);
        self.process.shared().write_state(old);
        self.ask(command::CONVERT, limit, began)
    }

    /// Gives it a command and waits for the answer, from when and with what processor time it `began`.
    fn ask(
        &mut self,
        command: u32,
        limit: Duration,
        (began, before): (Instant, Option<Duration>),
    ) -> Result<(), Cause> {
        self.request = self.request.wrapping_add(1);
        self.process.request(self.request, command);
        match self.process.wait(self.request, began + limit) {
            Waited::Answered => Ok(()),
            Waited::Gone => Err(Cause::Died(self.process.how())),
            Waited::Late => {
                let computed = self.process.computed().zip(before);
                Err(Cause::Unanswered(Unanswered {
                    limit,
                    elapsed: now().since(began),
                    computed: computed.map(|(after, before)| after - before),
                }))
            }
        }
    }

    /// Whether the answer is one of a program that keeps to what it attached with.
    pub fn judge(&self, shape: Shape, attached: &Attached) -> Result<(), Cause> {
        let header = self.process.shared().header();
        let (inputs, outputs) = (&header.program_inputs, &header.program_outputs);
        for (field, expected, found) in [
            (
                "bytes of the state",
                attached.state_len as u64,
                header.state_len.load(Ordering::Relaxed),
            ),
            (
                "version of the state",
                attached.state_version,
                header.state_version.load(Ordering::Relaxed),
            ),
            (
                "inputs",
                shape.inputs as u64,
                inputs.load(Ordering::Relaxed).into(),
            ),
            (
                "outputs",
                shape.outputs as u64,
                outputs.load(Ordering::Relaxed).into(),
            ),
        ] {
            if expected != found {
                return Err(Cause::WrongAnswer {
                    field,
                    expected,
                    found,
                });
            }
        }
        match header.result.load(Ordering::Relaxed) {
            result::DONE => Ok(()),
            result::FAILED => Err(Cause::Failed(self.process.message())),
            found => Err(Cause::WrongAnswer {
                field: "result",
                expected: result::DONE.into(),
                found: found.into(),
            }),
        }
    }
}
