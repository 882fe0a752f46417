//! What becomes of a state in the next version, as far as files tell before that is started.

use std::fmt;

use bumpless_config as config;
use bumpless_config::{ApplicationKind, ProgramHost, StateOnChange};
use bumpless_sidecar::plc::Succession;

use super::files::{refuse_same, succession};

/// What becomes of the state of a program when its next version takes its place, as far as files tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its variables, one by one.
    Variables(Succession),
    /// It begins anew, as the file says.
    Fresh,
    /// The next version tells when it is started.
    ByStart,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variables(succession) => succession.fmt(f),
            Self::Fresh => {
                f.write_str("its state begins anew (state = \"fresh\"), but for what both versions retain")
            }
            Self::ByStart => f.write_str(
                "goes on with its state if the next version takes it over, which each node finds out by starting it",
            ),
        }
    }
}

/// What becomes of the state of `before` in `next`; `None`: the program stays the same, or one of the two is built in.
///
/// # Errors
/// Why it is refused.
pub fn fate(
    before: &config::Application,
    next: &config::Application,
) -> Option<Result<Fate, String>> {
    let (ApplicationKind::Program(was), ApplicationKind::Program(is)) = (&before.kind, &next.kind)
    else {
        return None;
    };
    if let Err(why) = refuse_same(before, next) {
        return Some(Err(why));
    }
    if !config::changes_program(before, next) {
        return None;
    }
    Some(match (is.state, &is.host) {
        (StateOnChange::Fresh, _) => Ok(Fate::Fresh),
        (_, ProgramHost::Plc) => succession((before, was), (next, is)).map(Fate::Variables),
        _ => Ok(Fate::ByStart),
    })
}
