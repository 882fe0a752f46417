//! One test for each promise of the roles, in a small seeded world.

mod epochs;
mod failover;
mod heartbeats;
mod references;
mod replays;
mod restored;
mod start;
mod switchover;
#[path = "../world/mod.rs"]
mod world;

use bumpless_redundancy::*;
use world::MS;

/// Lease, heartbeat, round trip to the witness, and one timer grain.
const TAKEOVER: u64 = 14 * MS;

fn became(role: Role, cause: RoleCause) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::RoleChanged { to, cause: c, .. } if *to == role && *c == cause)
}
