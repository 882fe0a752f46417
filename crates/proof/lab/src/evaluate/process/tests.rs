use crate::evaluate::tests::{broken, only, start_of};
use crate::runlog::PhaseKind;
use crate::runlog::synthetic::{self, MS};

#[test]
fn a_level_that_leaves_the_computed_run_is_found_but_not_its_noise() {
    let mut run = synthetic::run();
    let at = start_of(&run, PhaseKind::Kill) + 300 * MS;
    run.samples
        .iter_mut()
        .find(|sample| sample.time_ns > at)
        .unwrap()
        .levels[2] += 0.03;
    assert_eq!(broken(&run), only(&[]));
    run.samples
        .iter_mut()
        .find(|sample| sample.time_ns > at)
        .unwrap()
        .levels[2] += 0.07;
    assert_eq!(broken(&run), only(&["process/kill"]));
}
