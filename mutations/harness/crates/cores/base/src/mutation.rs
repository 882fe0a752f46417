//! The switch of the mutations: all are built in, and each thread switches on at most one.

extern crate std;

use core::cell::Cell;

std::thread_local! {
    static ON: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Whether the mutation of this name is switched on in this thread.
#[inline]
pub fn is_on(name: &str) -> bool {
    ON.get() == Some(name)
}

/// From here on, this thread runs with this mutation, or with none.
pub fn switch_on(name: Option<&'static str>) {
    ON.set(name);
}
