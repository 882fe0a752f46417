//! Keeping what a process knows from whom it is no business of.

use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Keeps the memory of this process, with the keys in it, out of core dumps and from other processes of its user. Programs
/// that it starts are not affected.
///
/// # Errors
/// The system's; Linux has none to give here.
pub fn keep_out_of_core_dumps() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::dumpable_behavior;

    #[test]
    fn what_a_process_knows_is_in_no_core_dump() {
        keep_out_of_core_dumps().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
