//! The world's checkers can fail: each mutation of iPRP's core is found, by a checker that it concerns.
//! Builds only in the copy that `.ci/mutations.sh` makes.

use crate::run;

#[test]
fn every_mutation_of_iprp_is_found_by_a_checker_that_it_concerns() {
    bumpless_base::mutation::find_all("iprp", (600, 12, false), |seed| run(seed).map(drop));
}
