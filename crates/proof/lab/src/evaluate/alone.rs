//! Whether a program of the user gives what it gives when nobody disturbs it.

use super::Promise;
use crate::runlog::{OwnProgram, Phase, Run};

/// What is promised of its outputs.
pub const PROMISED: &str = "every output that the device took is, to the bit, what the program gives \
                            when it runs alone with the same inputs";

/// Why the comparison proves nothing, if it does not.
pub fn says_nothing(run: &Run, program: &OwnProgram) -> Option<&'static str> {
    let mut accepted = run.writes.iter().filter(|write| write.accepted);
    let first = accepted.next()?;
    let equal = accepted.all(|write| write.outputs == first.outputs);
    let differs = program.compared.iter().any(|it| it.differs.is_some());
    (equal && !differs).then_some(
        "no output has changed in the whole run, so a program that remembers nothing would give the same; give it inputs \
         on which it works (--data)",
    )
}

/// Each accepted output is the one of its cycle in a run without faults. `None` for the tank, which is judged by its
/// process, and where the comparison would prove nothing.
pub fn outputs_as_alone(run: &Run, phase: &Phase) -> Option<Promise> {
    let program = run.program.as_ref()?;
    if says_nothing(run, program).is_some() {
        return None;
    }
    let here = || {
        program
            .compared
            .iter()
            .filter(|it| phase.contains(it.time_ns))
    };
    let mut differing = here().filter_map(|it| Some((it.cycle, it.differs.as_ref()?)));
    let (count, values) = (here().count(), program.outputs);
    let (held, seen) = match differing.next() {
        None => (
            count > 0,
            format!("{count} cycles of {values} outputs, none differs"),
        ),
        Some((cycle, what)) => {
            let more = differing.count() + 1;
            (
                false,
                format!("{more} of {count} cycles differ, first cycle {cycle}: {what}"),
            )
        }
    };
    Some(Promise::in_phase("outputs", phase, PROMISED, held, seen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{Limits, evaluate, not_judged};
    use crate::runlog::{Compared, PhaseKind, Read, synthetic};

    /// The made-up run as one of a program.
    fn run() -> Run {
        let mut run = synthetic::run();
        let accepted = run.writes.iter().filter(|write| write.accepted);
        let compared = accepted.map(|write| Compared {
            time_ns: write.time_ns,
            cycle: write.cycle,
            differs: None,
        });
        run.program = Some(OwnProgram {
            outputs: 2,
            compared: compared.collect(),
            ..OwnProgram::default()
        });
        run.reads = vec![Read { time_ns: 1, row: 0 }];
        (run.samples, run.baseline) = Default::default();
        run
    }

    #[test]
    fn a_program_is_judged_by_its_outputs_and_what_nobody_can_tell_is_named() {
        let run = run();
        let promises = evaluate(&run, &Limits::default());
        let broken: Vec<_> = promises.iter().filter(|it| !it.held).collect();
        assert!(broken.is_empty(), "{broken:?}");
        let compared = promises.iter().filter(|it| it.id.starts_with("outputs/"));
        assert_eq!(compared.count(), run.phases.len());
        assert!(!promises.iter().any(|it| it.id.starts_with("process/")));
        let without = not_judged(&run);
        assert_eq!(without.len(), run.phases.len() - 1, "{without:?}");
        assert!(without.iter().all(|it| it.id.starts_with("process/")));
        assert!(not_judged(&synthetic::run()).is_empty());
    }

    #[test]
    fn one_output_that_differs_breaks_the_promise_of_its_phase_alone() {
        let mut run = run();
        let kill = run.phase(PhaseKind::Kill).unwrap().clone();
        let program = run.program.as_mut().unwrap();
        let mut there = program.compared.iter_mut();
        let one = there.find(|it| it.time_ns > kill.faulty().0).unwrap();
        one.differs = Some("output 1 is 3 instead of 4".into());
        let cycle = one.cycle;
        let broken: Vec<_> = evaluate(&run, &Limits::default())
            .into_iter()
            .filter(|it| !it.held)
            .collect();
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert_eq!(broken[0].id, "outputs/kill");
        let words = format!("cycle {cycle}: output 1 is 3 instead of 4");
        assert!(broken[0].seen.contains(&words), "{}", broken[0].seen);
    }

    #[test]
    fn outputs_that_never_change_prove_nothing_and_are_not_counted_as_held() {
        let mut run = run();
        run.writes
            .iter_mut()
            .for_each(|it| it.outputs = vec![1.0, 2.0]);
        let promises = evaluate(&run, &Limits::default());
        assert!(!promises.iter().any(|it| it.id.starts_with("outputs/")));
        let names: Vec<_> = not_judged(&run).into_iter().map(|it| it.id).collect();
        assert!(names.contains(&"outputs/kill".into()), "{names:?}");
        let normal = run.phases[0].clone();
        let mut compared = run.program.as_mut().unwrap().compared.iter_mut();
        let one = compared.find(|it| normal.contains(it.time_ns)).unwrap();
        one.differs = Some("wrong".into());
        let promises = evaluate(&run, &Limits::default());
        assert!(promises.iter().any(|it| !it.held), "what differs is told");
    }

    #[test]
    fn without_a_compared_output_a_phase_has_no_evidence() {
        let mut run = run();
        run.program.as_mut().unwrap().compared.clear();
        let promises = evaluate(&run, &Limits::default());
        let mut outputs = promises.iter().filter(|it| it.id.starts_with("outputs/"));
        assert!(outputs.all(|it| !it.held));
        run.reads.clear();
        let promises = evaluate(&run, &Limits::default());
        let record = promises.iter().find(|it| it.id == "record").unwrap();
        assert!(!record.held, "{}", record.seen);
    }
}
