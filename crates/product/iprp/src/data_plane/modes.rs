//! How packets use networks, as the file says of their ports.

use bumpless_iprp::{Mode, Monitored, Scope};

/// How packets of `scope` use networks: as the file says of this port, whichever side of them it is on.
pub fn mode_of(modes: &[(Monitored, Mode)], scope: &Scope) -> Mode {
    let is_meant = |(it, _): &&(Monitored, Mode)| {
        it.protocol == scope.protocol && (it.first..=it.last).contains(&scope.port)
    };
    modes
        .iter()
        .find(is_meant)
        .map_or(Mode::Redundant, |(_, mode)| *mode)
}
