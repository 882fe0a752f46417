//! The tests of `wasm` with another engine, and both engines beside each other.

#[path = "../support/mod.rs"]
mod support;

#[path = "../wasm/conversion.rs"]
mod conversion;
#[path = "../wasm/cycles.rs"]
mod cycles;
#[path = "../wasm/faults.rs"]
mod faults;
#[path = "../wasm/refusals.rs"]
mod refusals;
#[path = "../wasm/state.rs"]
mod state;
#[path = "../wasm/time.rs"]
mod time;
#[path = "../wasm/traps.rs"]
mod traps;

mod both;

/// What runs the modules.
pub const ENGINE: bumpless_host::wasm::Engine = bumpless_host::wasm::Engine::Wasmtime;
