//! WebAssembly modules as programs.

#[path = "../support/mod.rs"]
mod support;

mod conversion;
mod cycles;
mod faults;
mod refusals;
mod state;
mod time;
