//! The world's checkers can fail: each mutation of iPRP's core is found, by a checker that it concerns.
//! Builds only in the copy that `.ci/mutations.sh` makes.

use crate::plan::SLOW;
use crate::run;

#[test]
fn every_mutation_of_iprp_is_found_by_a_checker_that_it_concerns() {
    // Each seed as a quick world, and then as a slow one.
    let world = |seed: u64| seed / 2 | if seed.is_multiple_of(2) { 0 } else { SLOW };
    bumpless_base::mutation::find_all("iprp", (1_200, 14, false), |seed| {
        run(world(seed)).map(drop)
    });
}
