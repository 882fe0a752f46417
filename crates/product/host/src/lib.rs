//! Other people's programs as applications (`spec/program.md`).
//!
//! A program of a user becomes an [`Application`](bumpless_controller::Application): `wasm` runs WebAssembly modules in
//! process (cargo feature `wasm`). The [`kit`] takes whatever makes applications and says whether what they run can be made redundant.
#![forbid(unsafe_code)]

pub mod kind;
pub mod kit;
pub mod shape;
#[cfg(feature = "wasm")]
pub mod wasm;

pub use kind::Kind;
pub use shape::{Limits, Shape};
