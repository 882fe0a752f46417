//! What packets do to a processor's tasks: the test bed of chapter 4.6 of "Real-Time Aware IP-Networking for
//! Resource-Constrained Embedded Devices", as a model.
//!
//! A discrete-event model of one processor: interrupts that nothing preempts, a driver's task and a critical task with
//! priorities, a queue between interrupt and driver, a network interface with or without interrupt moderation. Policies
//! against floods are those of `bumpless_guard`, the shipped code. The same input always gives the same output.
//!
//! | module | owns |
//! |---|---|
//! | [`load`] | when packets arrive |
//! | [`capture`] | arrivals out of a recorded file |
//! | [`nic`] | when the network interface interrupts |
//! | [`machine`] | what a processor takes for a packet, and where that stands |
//! | [`policy`] | policies by name |
//! | [`processor`] | the model |
//! | [`flows`] | the model of the driver with flows (5.4), around the guard itself |
//! | [`patterns`] | random loads, every policy under each |
//! | [`chart`] | lines, bars and maps as SVG |
//! | [`paper`] | the dissertation's figures, and what the text says of each |
//! | [`report`] | the page |
//! | [`measured`] | a real task under a flood, beside the model |
//! | [`raised`] | a real flow beside a flood that is raised, figure 5.18 beside the model's |
#![forbid(unsafe_code)]

pub mod capture;
pub mod chart;
pub mod flows;
pub mod load;
pub mod machine;
pub mod measured;
pub mod nic;
pub mod paper;
pub mod patterns;
pub mod policy;
pub mod processor;
pub mod raised;
pub mod report;
