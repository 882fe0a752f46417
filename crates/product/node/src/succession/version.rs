//! What a version of an application is to its successors.

use bumpless_config as config;
use bumpless_config::{ApplicationKind, ProgramHost};
use bumpless_controller::Application;
use bumpless_controller::retain::Table;
use bumpless_controller::successor::Before;

use crate::persist::identity::Saved;

/// A version of an application that runs: what its successors must know of it.
#[derive(Clone)]
pub struct Version {
    /// Its settings.
    pub settings: config::Application,
    /// What tells its states from those of other versions, if anything does.
    pub owner: Option<u64>,
    /// Most bytes of its states.
    pub size_max: usize,
    /// What it retains, by name.
    pub retained: Table,
}

impl Version {
    /// What `application`, which was built from `settings`, is to its successors.
    pub fn of(settings: &config::Application, application: &dyn Application) -> Self {
        Self {
            settings: settings.clone(),
            owner: application.state_owner(),
            size_max: application.state_size_max(),
            retained: application.retained().cloned().unwrap_or_default(),
        }
    }

    /// Whether `settings` name another version of its program.
    pub fn is_another(&self, settings: &config::Application) -> bool {
        config::changes_program(&self.settings, settings)
    }

    /// What files say of it.
    pub fn saved(&self) -> Saved {
        Saved {
            told_by: self.told_by(),
            program: self.settings.program(),
            retained: self.retained.clone(),
        }
    }

    /// What tells its states from those of other versions, if it can have others.
    fn told_by(&self) -> Option<Before> {
        let owner = self.owner?;
        match &self.settings.kind {
            ApplicationKind::Program(program) if program.host == ProgramHost::Wasm => {
                module_told_by(owner)
            }
            _ => Some(Before {
                at: 0,
                owner: owner.to_le_bytes(),
            }),
        }
    }

    /// Most bytes of its states.
    pub fn size_max(&self) -> usize {
        self.size_max
    }
}

#[cfg(feature = "wasm")]
fn module_told_by(owner: u64) -> Option<Before> {
    Some(Before {
        at: bumpless_host::wasm::WASM_OWNER_AT,
        owner: owner.to_be_bytes(),
    })
}

#[cfg(not(feature = "wasm"))]
const fn module_told_by(_: u64) -> Option<Before> {
    None
}
