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
//! | `host`, `application` | a computer with its process; an executor's thread |
//! | `exchange`, `network` | drivers' mailboxes; what becomes of a datagram |
//! | `device`, `clock` | field devices; clocks with offset and rate |
//! | `script` | faults, drawn or written by hand |
//! | `check` | the invariants |
//! | `trace`, `pcap` | digest, last events, files |
#![forbid(unsafe_code)]

mod application;
pub mod check;
mod clock;
mod device;
mod digest;
mod exchange;
mod host;
mod network;
mod pcap;
mod queue;
mod run;
mod script;
mod size;
mod streams;
mod trace;
mod world;

pub use run::{Report, Settings, faults, run};
pub use script::{Class, End, Fault, Junk, PathFault, Paths, Timed, storm};
pub use size::Size;
pub use world::heal_within;
