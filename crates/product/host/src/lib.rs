//! Other people's programs as applications (`spec/program.md`).
//!
//! A program of a user becomes an [`Application`](bumpless_controller::Application): `wasm` runs WebAssembly modules in
//! process (cargo feature `wasm`); `bumpless_sidecar` starts programs in processes of their own. The [`subject`] is a program's file of
//! either kind, of which instances are made. The [`kit`] takes whatever makes applications and says whether what they run can be
//! made redundant.
#![forbid(unsafe_code)]

pub mod kind;
pub mod kit;
pub mod shape;
pub mod subject;
#[cfg(feature = "wasm")]
pub mod wasm;

pub use kind::Kind;
pub use shape::{Limits, Shape, ThreadTime};
pub use subject::Subject;
