//! The kit finds what hinders, by its name and at its cycle, and says yes to what is sound.

mod support;

/// What runs modules.
#[cfg(feature = "wasm")]
pub const ENGINE: bumpless_host::wasm::Engine = bumpless_host::wasm::Engine::Wasmi;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bumpless_base::Instant;
use bumpless_controller::{
    Application, CycleContext, LoadError, ProgramFault, ProgramFaultKind, QuadrupleTank,
    QuadrupleTankParameters, Synthetic, SyntheticParameters,
};
use bumpless_host::kit::{self, Hindrance, Inputs, Note, Report, Stage, Surroundings, Trial};
use support::{PERIOD, examined};

/// What a flawed program does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    None,
    /// A variable that no state has.
    Hidden,
    /// A variable that a loaded state does not set.
    LeftBehind,
    /// A variable that a reset does not set.
    NotReset,
    /// Each instance is another one.
    Random,
    /// An output whose bits are an instance's own, all of them NaNs.
    Nan,
    /// Bytes in the state that are an instance's own.
    Garbage,
    /// It reads a clock.
    Clock,
    /// It fails in cycle 40.
    Fails,
    /// It fails in cycle 40 if there is another one.
    FailsNow,
    /// It takes no state.
    Refuses,
    /// Its output is infinite in cycle 40.
    Infinite,
    /// Its outputs never change.
    Constant,
}

struct Program {
    flaw: Flaw,
    /// A number of the instance's own.
    own: u64,
    clock: Arc<AtomicU64>,
    sum: f64,
    hidden: f64,
}

impl Application for Program {
    fn inputs(&self) -> usize {
        1
    }
    fn outputs(&self) -> usize {
        2
    }
    fn execute(
        &mut self,
        context: &CycleContext,
        inputs: &[f64],
        outputs: &mut [f64],
    ) -> Result<(), ProgramFault> {
        self.sum += inputs[0];
        self.hidden += 1.0;
        outputs[0] = self.sum;
        match self.flaw {
            Flaw::Hidden | Flaw::LeftBehind | Flaw::NotReset => outputs[1] = self.hidden,
            Flaw::Random if context.cycle >= 50 => outputs[1] = self.own as f64,
            Flaw::Nan if context.cycle >= 50 => {
                outputs[1] = f64::from_bits(f64::NAN.to_bits() | self.own);
            }
            Flaw::Infinite if context.cycle == 40 => outputs[1] = f64::INFINITY,
            Flaw::Clock => {
                outputs[1] = (self.clock.fetch_add(1, Ordering::Relaxed) / 200) as f64;
            }
            Flaw::Constant => outputs[0] = 1.0,
            Flaw::Fails if context.cycle == 40 => {
                return Err(ProgramFault::new(ProgramFaultKind::Trap, "a wrong pointer"));
            }
            // Of the instances that were made, the first one does not.
            Flaw::FailsNow if context.cycle == 40 && self.own > 1 => {
                return Err(ProgramFault::new(ProgramFaultKind::Trap, "no socket"));
            }
            _ => {}
        }
        Ok(())
    }
    fn state_size_max(&self) -> usize {
        24
    }
    fn save(&self, into: &mut [u8]) -> usize {
        into[..8].copy_from_slice(&self.sum.to_le_bytes());
        let hidden = if self.flaw == Flaw::Hidden {
            0.0
        } else {
            self.hidden
        };
        into[8..16].copy_from_slice(&hidden.to_le_bytes());
        let garbage = if self.flaw == Flaw::Garbage {
            self.own
        } else {
            0
        };
        into[16..24].copy_from_slice(&garbage.to_le_bytes());
        24
    }
    fn load(&mut self, state: &[u8]) -> Result<(), LoadError> {
        let [sum, hidden, _] = state.as_chunks::<8>().0 else {
            return Err(LoadError::Value { field: "all" });
        };
        if self.flaw == Flaw::Refuses {
            return Err(LoadError::Value { field: "sum" });
        }
        self.sum = f64::from_le_bytes(*sum);
        let hidden = f64::from_le_bytes(*hidden);
        match self.flaw {
            Flaw::Hidden => {}
            // Right in an instance that is new, since it counts up from nothing.
            Flaw::LeftBehind => self.hidden += hidden,
            _ => self.hidden = hidden,
        }
        Ok(())
    }
    fn reset(&mut self) {
        self.sum = 0.0;
        if self.flaw != Flaw::NotReset {
            self.hidden = 0.0;
        }
    }
}

fn trial() -> Trial {
    Trial {
        cycles: 300,
        moves: 10,
        seed: 11,
        period: PERIOD,
        inputs: Inputs::Drawn { seed: 3 },
    }
}

fn judged(flaw: Flaw) -> Report {
    let mut made = 0;
    let clock = Arc::new(AtomicU64::new(0));
    examined(&trial(), || {
        made += 1;
        Ok(Box::new(Program {
            flaw,
            own: made,
            clock: Arc::clone(&clock),
            sum: 0.0,
            hidden: 0.0,
        }))
    })
}

/// The only hindrance.
fn hindrance(flaw: Flaw) -> Hindrance {
    let report = judged(flaw);
    assert!(!report.can_be_redundant());
    let [hindrance] = &report.hindrances[..] else {
        panic!("{flaw:?}: {:?}", report.hindrances);
    };
    hindrance.clone()
}

#[test]
fn a_sound_program_is_let_through() {
    let report = judged(Flaw::None);
    assert!(
        report.can_be_redundant() && report.notes.is_empty(),
        "{report:?}"
    );
    assert_eq!((report.cycles, report.moves), (300, 20));
    assert_eq!(
        (report.inputs, report.outputs, report.state_max),
        (1, 2, 24)
    );
    // Two of three words change in a cycle, one while the input stands at an end of its range.
    assert_eq!(report.changed.max, 2.0 / 3.0);
    assert!(
        (0.6..2.0 / 3.0).contains(&report.changed.mean),
        "{:?}",
        report.changed
    );
}

#[test]
fn trap_hidden_variables_is_found_at_the_cycle_after_the_first_move() {
    let Hindrance::HiddenState {
        cycle,
        moved,
        difference,
    } = hindrance(Flaw::Hidden)
    else {
        panic!("{:?}", hindrance(Flaw::Hidden));
    };
    let difference = difference.unwrap();
    assert_eq!((cycle, difference.output), (moved, 1));
    assert_eq!(f64::from_bits(difference.expected), cycle as f64);
    assert_eq!(f64::from_bits(difference.found), 1.0);
}

#[test]
fn a_program_that_fails_is_found_once_with_cycle_and_cause() {
    let found = hindrance(Flaw::Fails);
    assert_eq!((found.name(), found.cycle()), ("fails", 40));
    assert!(
        found.to_string().contains("trap: a wrong pointer"),
        "{found}"
    );
    let found = hindrance(Flaw::FailsNow);
    assert_eq!((found.name(), found.cycle()), ("not_deterministic", 40));
    assert!(found.to_string().contains("one of them failed"), "{found}");
}

#[test]
fn what_a_loaded_state_leaves_behind_is_found() {
    assert_eq!(hindrance(Flaw::LeftBehind).name(), "left_behind");
}

#[test]
fn what_a_reset_leaves_behind_is_found_in_the_first_cycle() {
    let hindrance = hindrance(Flaw::NotReset);
    assert_eq!(
        (hindrance.name(), hindrance.cycle()),
        ("reset_incomplete", 1)
    );
}

#[test]
fn trap_random_numbers_is_found_at_its_first_cycle() {
    let hindrance = hindrance(Flaw::Random);
    assert_eq!(
        (hindrance.name(), hindrance.cycle()),
        ("not_deterministic", 50)
    );
    assert!(
        hindrance.to_string().contains("output 1 is 2 instead of 1"),
        "{hindrance}"
    );
}

#[test]
fn trap_nan_bits_that_differ_are_found() {
    let report = judged(Flaw::Nan);
    let found = report
        .hindrances
        .iter()
        .find(|one| one.name() == "not_deterministic")
        .unwrap();
    assert_eq!(found.cycle(), 50);
    assert!(
        found
            .to_string()
            .contains("is a NaN with bits 0x7ff8000000000002"),
        "{found}"
    );
}

#[test]
fn trap_meaningless_bytes_are_noted_and_hinder_nothing() {
    let report = judged(Flaw::Garbage);
    assert!(report.can_be_redundant(), "{report:?}");
    assert!(
        matches!(report.notes[..], [Note::MeaninglessBytes { .. }]),
        "{report:?}"
    );
}

#[test]
fn trap_clock_is_found_even_if_it_tells_seconds_only() {
    // 200 looks at it are a second.
    let hindrance = hindrance(Flaw::Clock);
    assert_eq!(hindrance.name(), "not_deterministic");
}

#[test]
fn who_asks_for_progress_may_stop_it() {
    let mut seen = Vec::new();
    let mut make = || -> Result<Box<dyn Application>, String> {
        Ok(Box::new(Synthetic::new(SyntheticParameters {
            size: 64,
            changed_share: 0.5,
        })))
    };
    let report = kit::examine(
        &trial(),
        Surroundings {
            make: &mut make,
            look: &mut Vec::new,
            time: &|| Instant::ZERO,
            progress: &mut |stage, cycle| {
                seen.push((stage, cycle));
                match stage {
                    Stage::Twin if cycle == 9 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            },
        },
    );
    assert!(report.interrupted && !report.can_be_redundant() && report.hindrances.is_empty());
    assert_eq!(seen.last(), Some(&(Stage::Twin, 9)));
    assert_eq!(report.notes, [Note::NoOutputs]);
}

#[test]
fn an_instance_that_cannot_be_made_is_a_hindrance_with_its_cause() {
    let mut left = 2;
    let report = examined(&trial(), || {
        left -= 1;
        match left >= 0 {
            true => Ok(Box::new(QuadrupleTank::new(
                QuadrupleTankParameters::default(),
            ))),
            false => Err("no more".into()),
        }
    });
    let [Hindrance::NotMade { cause, .. }] = &report.hindrances[..] else {
        panic!("{report:?}");
    };
    assert_eq!(cause, "no more");
}

#[test]
fn the_built_in_applications_are_let_through() {
    let tank = examined(&trial(), || {
        Ok(Box::new(QuadrupleTank::new(
            QuadrupleTankParameters::default(),
        )))
    });
    assert!(tank.can_be_redundant(), "{tank:?}");
    let synthetic = examined(&trial(), || {
        let parameters = SyntheticParameters {
            size: 8_008,
            changed_share: 0.1,
        };
        Ok(Box::new(Synthetic::new(parameters)))
    });
    assert!(synthetic.can_be_redundant(), "{synthetic:?}");
    // A tenth of the words and the counter.
    assert!(
        (0.1..0.102).contains(&synthetic.changed.mean),
        "{:?}",
        synthetic.changed
    );
}

#[test]
fn its_own_state_refused_is_found_before_the_first_move() {
    let hindrance = hindrance(Flaw::Refuses);
    assert_eq!(hindrance.name(), "state_refused");
    assert!(
        hindrance.to_string().contains("field \"sum\""),
        "{hindrance}"
    );
}

#[test]
fn outputs_that_are_no_numbers_or_never_change_are_said() {
    let hindrance = hindrance(Flaw::Infinite);
    assert_eq!((hindrance.name(), hindrance.cycle()), ("not_finite", 40));
    assert_eq!(judged(Flaw::Constant).notes, [Note::OutputsNeverChange]);
}
