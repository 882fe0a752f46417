//! A program of the user in place of the tank's controller: whether it can be shown, what its pair is configured with,
//! the device that it works on, and what it gives when it runs alone.

mod application;
mod compare;
pub mod device;
mod rows;

use std::cell::RefCell;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::Duration;
use bumpless_host::Subject;
use bumpless_host::kit::{self, Inputs, Surroundings, Trial};
use bumpless_host::subject::{Named, Unfit, UnfitCause};
use bumpless_net_linux::Clock;
use bumpless_sidecar::StartCause;

pub use application::text;
pub use compare::{compare, compare_log};

/// A program of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct DemoProgram {
    /// Which.
    pub named: Named,
    /// What the device gives it, a row after each output that it takes.
    pub inputs: Inputs,
    /// Where these come from, as an option of the device's process: their file, if they do not come from the seed.
    pub data: Option<std::path::PathBuf>,
}

/// Draws inputs, and the cycles before which the state is moved in the test beforehand.
pub const SEED: u64 = 1;

/// Cycles and moves of the test beforehand: what hinders at all shows in far fewer, as a rule.
const TRIED: (u64, u64) = (1_000, 10);

/// Periods that the demonstration can show: its limits rest on a device and networks that are simulated on one
/// computer, and each of its phases must have enough cycles to judge.
const PERIODS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// Most outputs: those of one write that the device can check.
const OUTPUTS_MAX: usize = 57;

/// Most inputs: all of them are read in each cycle, 31 in a request.
const INPUTS_MAX: usize = 310;

/// Most bytes of a state: with more, transfers and not the faults would be shown.
const STATE_MAX: usize = 1 << 20;

/// Why a program cannot be shown.
#[derive(Debug)]
pub enum CannotShow {
    /// It is not taken as a program.
    Unfit(Unfit),
    /// It is one that the demonstration has no place for: all reasons.
    Unsuitable {
        /// Its file.
        file: String,
        /// The reasons, each with its remedy.
        reasons: Vec<String>,
    },
    /// It cannot be made redundant: everything that the test has found.
    Hindered {
        /// Its file.
        file: String,
        /// What hinders.
        hindrances: Vec<String>,
    },
    /// The user ended the test.
    Interrupted,
}

impl fmt::Display for CannotShow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(unfit) => unfit.fmt(f)?,
            Self::Unsuitable { file, reasons } => {
                write!(f, "{file} cannot be demonstrated")?;
                reasons
                    .iter()
                    .try_for_each(|reason| write!(f, "\n  {reason}"))?;
            }
            Self::Hindered { file, hindrances } => {
                write!(
                    f,
                    "{file} cannot be made redundant (bumpless program test tells more)"
                )?;
                hindrances
                    .iter()
                    .try_for_each(|hindrance| write!(f, "\n  hindered: {hindrance}"))?;
            }
            Self::Interrupted => return f.write_str("ended early; nothing was started"),
        }
        f.write_str("\nnothing was started")
    }
}

/// A program that can be shown.
pub struct Shown {
    /// What it is.
    pub demo: DemoProgram,
    /// Makes instances.
    pub subject: RefCell<Subject>,
    /// Bytes of its largest state.
    pub state_bytes: usize,
}

impl Shown {
    /// Looks at the program, and tests it, for which it runs a thousand cycles several times.
    ///
    /// # Errors
    /// What keeps it from being shown.
    pub fn new(demo: &DemoProgram, stop: &AtomicBool) -> Result<Self, CannotShow> {
        let named = Named {
            state_max: demo.named.state_max.min(STATE_MAX),
            ..demo.named.clone()
        };
        let file = named.file.display().to_string();
        let wanted = || !stop.load(Ordering::Acquire);
        let subject = match Subject::open(named, &wanted) {
            Err(_) if !wanted() => return Err(CannotShow::Interrupted),
            Err(unfit) => return Err(not_taken(unfit, file)),
            Ok(subject) => subject,
        };
        let reasons = unsuitable(&subject, &demo.inputs);
        if !reasons.is_empty() {
            return Err(CannotShow::Unsuitable { file, reasons });
        }
        let subject = RefCell::new(subject);
        let state_bytes = tried(&subject, &demo.inputs, stop)?;
        Ok(Self {
            demo: demo.clone(),
            subject,
            state_bytes,
        })
    }

    /// Its period.
    pub fn period(&self) -> Duration {
        self.subject.borrow().period()
    }
}

/// A program that is not taken: its state may only be too large for here.
fn not_taken(unfit: Unfit, file: String) -> CannotShow {
    if let UnfitCause::Start(fault) = &unfit.cause
        && let StartCause::State { program, .. } = &fault.cause
    {
        let reason = format!(
            "its state has {program} bytes, and at most {STATE_MAX} are shown; bumpless bench measures large states"
        );
        let reasons = vec![reason];
        return CannotShow::Unsuitable { file, reasons };
    }
    CannotShow::Unfit(unfit)
}

/// Why the demonstration has no place for it.
fn unsuitable(subject: &Subject, inputs: &Inputs) -> Vec<String> {
    let (shape, period) = (subject.shape(), subject.period());
    let mut reasons = Vec::new();
    if !(1..=OUTPUTS_MAX).contains(&shape.outputs) {
        reasons.push(format!(
            "it has {} outputs; the device that checks them takes 1 to {OUTPUTS_MAX} in one write",
            shape.outputs
        ));
    }
    if shape.inputs > INPUTS_MAX {
        reasons.push(format!(
            "it has {} inputs; the device gives at most {INPUTS_MAX}",
            shape.inputs
        ));
    }
    if let Inputs::Table(table) = inputs
        && table.columns() != shape.inputs
    {
        reasons.push(format!(
            "it has {} inputs and the table of --data {} columns; give a column for each input",
            shape.inputs,
            table.columns()
        ));
    }
    if !(PERIODS.0..=PERIODS.1).contains(&period) {
        reasons.push(format!(
            "its period is {} ms; phases of seconds on one computer show something with {} to {} ms only, see --period",
            period.as_millis_f64(),
            PERIODS.0.as_millis(),
            PERIODS.1.as_millis()
        ));
    }
    reasons
}

/// Tests the program; gives the bytes of its largest state.
fn tried(
    subject: &RefCell<Subject>,
    inputs: &Inputs,
    stop: &AtomicBool,
) -> Result<usize, CannotShow> {
    let (cycles, moves) = TRIED;
    let trial = Trial {
        cycles,
        moves,
        seed: SEED,
        period: subject.borrow().period(),
        inputs: inputs.clone(),
    };
    let report = kit::examine(
        &trial,
        Surroundings {
            make: &mut || subject.borrow_mut().make(),
            look: &mut || subject.borrow().look(),
            time: &|| Clock.now(),
            progress: &mut |_, _| match stop.load(Ordering::Acquire) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            },
        },
    );
    match (report.interrupted, report.hindrances.is_empty()) {
        (true, _) => Err(CannotShow::Interrupted),
        (false, true) => Ok(report.state_bytes.max as usize),
        (false, false) => Err(CannotShow::Hindered {
            file: subject.borrow().file().display().to_string(),
            hindrances: report.hindrances.iter().map(ToString::to_string).collect(),
        }),
    }
}
