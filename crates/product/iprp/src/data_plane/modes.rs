//! How packets use networks, as the file says of their ports.

use bumpless_iprp::{Flow, Mode, Monitored, Scope};

/// Whether the packets of `flow` leave on one network, if the file says so of either of its ports.
pub fn is_standby(modes: &[(Monitored, Mode)], flow: &Flow) -> bool {
    let modes = modes.iter().filter(|(it, _)| it.scope(flow).is_some());
    // A group has no standby (I-55).
    !flow.destination.is_multicast() && modes.into_iter().any(|(_, mode)| *mode == Mode::Standby)
}

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
