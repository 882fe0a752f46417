//! How many inputs and outputs a module is for, if it tells (G-21).

use super::engine::Budget;
use super::fault::{LoadFault, Problem};
use super::module::Module;
use super::rewrite::name;
use crate::{Limits, Shape};

/// How many inputs and outputs a module is for, as far as it tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inputs.
    pub inputs: Option<i32>,
    /// Outputs.
    pub outputs: Option<i32>,
}

impl Counts {
    /// What `module` tells, in instances that are thrown away.
    ///
    /// # Errors
    /// A function that should tell fails.
    pub fn told_by(module: &Module, limits: &Limits) -> Result<Self, LoadFault> {
        Ok(Self {
            inputs: count(module, limits, name::INPUTS, "bumpless_inputs")?,
            outputs: count(module, limits, name::OUTPUTS, "bumpless_outputs")?,
        })
    }

    /// What does not agree with `shape`.
    pub(super) fn against(&self, shape: Shape) -> Vec<Problem> {
        let both = [
            ("inputs", self.inputs, shape.inputs),
            ("outputs", self.outputs, shape.outputs),
        ];
        let problem = |(what, told, configured): (_, Option<i32>, usize)| {
            let program = told.map(i64::from)?;
            (program != configured as i64).then_some(Problem::Count {
                what,
                program,
                configured,
            })
        };
        both.into_iter().filter_map(problem).collect()
    }
}

fn count(
    module: &Module,
    limits: &Limits,
    exported: &str,
    function: &'static str,
) -> Result<Option<i32>, LoadFault> {
    if !module.exports(function) {
        return Ok(None);
    }
    let nothing = Shape {
        inputs: 0,
        outputs: 0,
        state_max: usize::MAX,
    };
    let fault = |problem| LoadFault::one(module.file(), problem);
    let instance = module.compiled().instance(module.parts(), nothing, limits);
    let mut instance = instance.map_err(fault)?;
    let budget = Budget::before_the_first_cycle(limits);
    let told = instance.number(exported, &budget).transpose();
    told.map_err(|cause| fault(Problem::Beginning { function, cause }))
}
