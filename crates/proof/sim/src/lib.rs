//! The whole pair in one seeded, simulated world (`spec/simulation.md`).
//!
//! Controllers with their executors, witnesses, field devices and networks live in one thread under
//! one clock. Data plane, cores, executors and their ports are the shipped ones; only what lies
//! around them differs: links, threads, clocks, devices. Everything random comes from the seed, so
//! a seed and a commit give the same run to the byte.
//!
//! | module | owns |
//! |---|---|
//! | `world` | what happens in which order |
//! | `host`, `application`, `failing` | a computer with its process; an executor's thread; a program that fails |
//! | `exchange`, `transits` | drivers' mailboxes; how long states were under way |
//! | `distance`, `echo`, `network` | how far apart everybody is; ICMP echo; what becomes of a datagram |
//! | `device`, `clock` | field devices; clocks with offset and rate |
//! | `script`, `shrink` | faults, drawn or written by hand; the few that a failure takes |
//! | `check` | the invariants |
//! | [`promise`] | what the plan promises of channel sets, and whether it is kept (`spec/plan.md`) |
//! | [`sites`], `pair_file` | a pair across sites, of which one ends (`spec/plan.md`, P-90 to P-93); its configuration |
//! | [`grid`] | a pair across a wide-area network that has outages (`spec/wan.md`, U-100 and further) |
//! | `wide` | a wide-area network between the sites, hop by hop |
//! | `trace`, `pcap` | digest, last events, files |
#![forbid(unsafe_code)]

mod application;
mod changing;
pub mod check;
mod clock;
mod device;
mod digest;
mod distance;
mod echo;
mod exchange;
mod failing;
mod frame;
pub mod grid;
mod host;
mod kept;
mod network;
mod pair_file;
mod pcap;
mod processor;
pub mod promise;
mod queue;
mod readable;
mod run;
mod script;
mod shrink;
pub mod sites;
mod size;
mod streams;
mod trace;
mod transits;
pub mod variants;
mod wide;
mod world;

/// Whether the application that `settings` describe runs in this world.
///
/// # Errors
/// Why it does not.
pub fn runs(settings: &bumpless_config::Application) -> std::io::Result<()> {
    failing::build(settings).map(drop)
}

pub use check::Window;
pub use distance::Distances;
pub use processor::FloodCounts;
pub use run::{Report, Settings, faults, run, run_unless, shortest_storm};
pub use script::{
    Aim, Bursts, Class, Complaint, End, Fault, Field, Junk, Lie, PathFault, Paths, Scenario, Timed,
    Wrong, storm,
};
pub use shrink::{as_scenario, shrink};
pub use size::Size;
pub use wide::{Cause, Counts, Places, Routing, Wide};
pub use world::heal_within;
