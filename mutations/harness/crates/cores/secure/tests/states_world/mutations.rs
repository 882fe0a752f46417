//! The world's checkers can fail: each mutation of what seals and opens states is found, by a checker that it concerns.
//! Builds only in the copy that `.ci/mutations.sh` makes.

use crate::run;

#[test]
fn every_mutation_of_protected_states_is_found_by_a_checker_that_it_concerns() {
    bumpless_base::mutation::find_all("states", (600, 15, false), |seed| run(seed).map(drop));
}
