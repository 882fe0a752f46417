//! Fault-injecting drivers and the demonstration that uses them.
//!
//! [`fault`] is a driver around a real link. [`demo`] starts a whole pair on this machine, makes
//! faults, and gathers the logs as a [`runlog::Run`]; [`evaluate()`](evaluate::evaluate) judges
//! them, a pure function; [`report`] shows them. [`torture`] does it in namespaces; [`iprp`] has two hosts with iPRP between
//! them; [`study`] measures failovers over a wide-area network, [`programs`] has unmodified programs of many substations on it, and [`sites`] ends
//! sites of a pair on it; what these three keep has the form of [`kept`]. [`flood`] measures what packets do to a task. Nothing in the product depends on this crate.

pub mod demo;
pub mod evaluate;
pub mod fault;
pub mod flood;
pub mod iprp;
pub mod kept;
pub mod programs;
pub mod report;
pub mod runlog;
pub mod sites;
pub mod study;
mod synchrophasor;
pub mod torture;
