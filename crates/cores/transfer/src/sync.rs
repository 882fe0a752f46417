//! What notes are made of: atomics of the machine or, with `--cfg loom`, of loom, which tries
//! every order in which threads can go on and every value that they may then read.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
