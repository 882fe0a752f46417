//! Measures state transfer against what else one would use for it: the same states over the same
//! networks with the same losses, each protocol in processes of its own (spec/bench.md).

pub mod bench;
pub mod calibrate;
pub mod conversation;
pub mod job;
pub mod network;
pub mod output_folder;
pub mod paper;
pub mod peer;
pub mod plan;
pub mod report;
pub mod result;
pub mod run;
pub mod statistics;
