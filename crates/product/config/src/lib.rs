//! The configuration file of a pair: schema, every error at once, sample file.
//!
//! One TOML file describes the whole pair (or pool) and is the same on every node.
//! [`Config::parse`] reads it and reports everything that is wrong in one go. A field's meaning,
//! unit, default, cost and hazard are written once, in `schema`; the parser, [`sample`] and
//! [`reference()`] (kept as `spec/configuration.md`) come from there.
#![forbid(unsafe_code)]

mod change;
mod check;
mod config;
mod document;
mod file;
mod fingerprint;
mod lines;
mod model;
mod other_file;
mod other_shape;
mod problem;
mod programs;
mod reader;
pub mod reading;
mod schema;
mod section;
mod security;
mod shape;
mod suggest;
mod text;
mod weakness;

pub use change::{Change, Tuned, changes_program, restart};
pub use document::{reference, sample};
pub use fingerprint::pair_id;
pub use model::*;
pub use problem::Problem;
pub use security::{
    Certificates, Encryption, Integrity, KeyServerAt, Replay, Security, StateKeys, StateSecurity,
};
pub use text::{Unreadable, read_configuration, read_text_file};
pub use weakness::{Weakness, WeaknessCode};
