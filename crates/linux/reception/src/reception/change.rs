//! Another setup, and other interfaces, while filters decide.

use bumpless_guard::{Flow, Setup};

use super::{Attached, Guarded, Reception, StartError, attach};
use crate::filter::{Filter, LoadError};

/// What is to be guarded, and where.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The flows that stay, and the budgets of the rest.
    pub setup: &'a Setup,
    /// So many flows may come and go behind those of the setup ([`Reception::set_flow`]).
    pub room: usize,
    /// Those that are there, each with its number.
    pub registered: &'a [(u16, Flow)],
    /// Names of the interfaces.
    pub interfaces: &'a [String],
}

impl Wanted<'_> {
    /// A filter for it, with the flows that are registered.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn filter(&self) -> Result<Filter, LoadError> {
        let mut filter = Filter::with_room(self.setup, self.room)?;
        for (at, flow) in self.registered {
            filter.set_flow(*at, flow.clone())?;
        }
        Ok(filter)
    }
}

impl Reception {
    /// Has this be guarded in the place of what is there, whole or not at all. An interface that stays has the one program replaced by the
    /// other between two frames, and its driver does not begin anew; counts and budgets do. One that is not named is free again.
    ///
    /// # Errors
    /// Everything that is wrong with interfaces that were not guarded before, or there is no such filter; then nothing has changed.
    pub fn follow(&mut self, wanted: Wanted<'_>) -> Result<(), Vec<StartError>> {
        let (mut prepared, mut errors) = (Vec::new(), Vec::new());
        for name in wanted.interfaces {
            let filter = wanted
                .filter()
                .map_err(|error| vec![StartError::Load(error)])?;
            let is_there = self.interfaces.iter().any(|it| it.name == *name);
            let attached = (!is_there).then(|| attach(&filter, name)).transpose();
            match attached {
                Ok(attached) => prepared.push((name, filter, attached)),
                Err(error) => errors.push(StartError::Attach(name.clone(), error)),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let before = std::mem::take(&mut self.interfaces);
        let mut before: Vec<_> = before.into_iter().map(Some).collect();
        for (name, filter, attached) in prepared {
            let mut stays = before
                .iter_mut()
                .filter(|it| it.as_ref().is_some_and(|it| it.name == *name));
            let guarded = match (attached, stays.next().and_then(Option::take)) {
                (None, Some(mut it)) => {
                    it.renew(filter);
                    it
                }
                (attached, _) => Guarded::found(name, filter, attached),
            };
            self.interfaces.push(guarded);
        }
        Ok(())
    }
}

impl Guarded {
    /// An interface with what was attached, or what can be.
    fn found(name: &str, filter: Filter, attached: Option<Attached>) -> Self {
        let state = attached.map_or_else(|| attach(&filter, name), Ok);
        Self {
            name: name.to_owned(),
            filter,
            state,
        }
    }
}
