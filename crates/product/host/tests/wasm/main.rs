//! WebAssembly modules as programs.

#[path = "../support/mod.rs"]
mod support;

mod conversion;
mod cycles;
mod faults;
mod refusals;
mod state;
mod time;
mod traps;

/// What runs the modules.
pub const ENGINE: bumpless_host::wasm::Engine = bumpless_host::wasm::Engine::Wasmi;
