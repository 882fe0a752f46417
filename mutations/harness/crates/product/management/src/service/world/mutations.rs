//! The world's checkers can fail: each mutation of sessions, certificates and lists is found, by a checker that it concerns.
//! Builds only in the copy that `.ci/mutations.sh` makes.

use super::run;

#[test]
fn every_mutation_of_sessions_is_found_by_a_checker_that_it_concerns() {
    bumpless_pki::mutation::find_all("sessions", (60, 13, true), run);
}
