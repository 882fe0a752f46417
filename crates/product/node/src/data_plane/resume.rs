//! An operator's order that a stopped program go on.

use std::fmt;

use bumpless_base::{ProgramStanding, ResumeFrom};
use bumpless_wire::Role;

use super::DataPlane;
use super::drivers::Drivers;
use crate::membership::ApplicationNumber;

/// Why an order that a program go on is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeRefused {
    /// This node does not run the application.
    NotHere,
    /// Another node is to run it.
    NotPrimary,
    /// Its program is not stopped.
    NotStopped,
}

impl fmt::Display for ResumeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHere => {
                "this node does not run the application; ask one of its group's candidates"
            }
            Self::NotPrimary => {
                "this node is not primary, so its program does not run here; ask the primary"
            }
            Self::NotStopped => "its program is not stopped on this node",
        })
    }
}

impl<D: Drivers> DataPlane<D> {
    /// Passes an order that the program of `application` go on to its executor, if it is stopped here (F-39).
    pub(super) fn resume_program(
        &self,
        application: ApplicationNumber,
        from: ResumeFrom,
    ) -> Result<(), ResumeRefused> {
        let mut channels = self.channels.iter().flatten();
        let channel = channels.find(|channel| channel.application == application);
        let channel = channel.ok_or(ResumeRefused::NotHere)?;
        let group = self.groups[channel.membership.group].id;
        if self.cores.redundancy.role(group) != Some(Role::Primary) {
            return Err(ResumeRefused::NotPrimary);
        }
        if channel.mailbox.status().program == ProgramStanding::Runs {
            return Err(ResumeRefused::NotStopped);
        }
        channel.mailbox.resume_order().give(from);
        Ok(())
    }
}
