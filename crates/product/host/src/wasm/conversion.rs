//! The state of another version of a module, made into one of this by the module itself (G-31).

use bumpless_base::Duration;
use bumpless_controller::successor::{Before, Conversion};
use bumpless_controller::{Application, LoadError};

use super::engine::Budget;
use super::interface::Shown;
use super::rewrite::name;

use super::{Cause, WASM_OWNER_AT, Wasm};

/// By `bumpless_convert` of the next version, which the version before shows its state.
pub struct ByModule {
    before: Before,
    old: Wasm,
}

impl ByModule {
    /// From states of `old`.
    pub fn new(old: Wasm) -> Self {
        let owner = old.state_owner().unwrap_or_default().to_be_bytes();
        Self {
            before: Before {
                at: WASM_OWNER_AT,
                owner,
            },
            old,
        }
    }
}

impl Conversion<Wasm> for ByModule {
    fn is_before(&self, state: &[u8]) -> bool {
        self.before.has_saved(state)
    }

    fn convert(&mut self, state: &[u8], application: &mut Wasm) -> Result<(), LoadError> {
        self.old.load(state)?;
        let shown = self.old.shown();
        let converted = application.convert(shown);
        converted.map_err(|cause| LoadError::Conversion {
            reason: reason(&cause),
        })
    }
}

fn reason(cause: &Cause) -> &'static str {
    match cause {
        Cause::Trap(_) => "its bumpless_convert stopped by itself, as a panic does",
        Cause::Misuse(_) => {
            "its bumpless_convert used an index, an address or a name that is not there (old_has tells which names are)"
        }
        Cause::Time(_) | Cause::Steps { .. } => {
            "its bumpless_convert was not ready within execute_limit_ms, and was stopped"
        }
        Cause::Memory { .. } | Cause::State { .. } => {
            "its bumpless_convert makes a state that is larger than allowed (state_max)"
        }
        Cause::NotConverted(_) => "its bumpless_convert says so by a number other than 0",
        Cause::Torn => "it has failed before",
    }
}

impl Wasm {
    /// Whether it makes something of states of other versions.
    pub fn converts(&self) -> bool {
        self.module.exports("bumpless_convert")
    }

    /// What it shows of its state to the next version.
    fn shown(&mut self) -> Shown {
        let instance = &mut self.instance;
        let exported = self.module.parts().exports.iter();
        let globals = exported.filter_map(|export| {
            let bits = instance.shown_global(export.global?)?;
            Some((export.name.clone(), bits))
        });
        let globals = globals.collect();
        let memory = match self.blocks.is_empty() {
            true => Vec::new(),
            false => self.instance.memory(0).to_vec(),
        };
        Shown { globals, memory }
    }

    /// Goes on from its initial state with what it makes of `old`, within the limits of a cycle. A state that it fails at is torn.
    fn convert(&mut self, old: Shown) -> Result<(), Cause> {
        self.reset();
        let converted = self.convert_within_limits(old);
        self.instance.io_mut().old = None;
        self.torn |= converted.is_err();
        converted
    }

    fn convert_within_limits(&mut self, old: Shown) -> Result<(), Cause> {
        let io = self.instance.io_mut();
        io.inputs.fill(0.0);
        io.outputs.fill(0.0);
        (io.cycle, io.period) = (0, Duration::ZERO);
        io.old = Some(old);
        let budget = Budget::of_a_cycle(self.module.engine(), &self.limits, self.time.as_ref());
        let said = self.instance.number(name::CONVERT, &budget);
        match said.transpose()? {
            Some(0) => self.look(),
            said => Err(Cause::NotConverted(said.unwrap_or(-1))),
        }
    }
}
