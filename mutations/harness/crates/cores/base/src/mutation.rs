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

/// Which of the mutations are searched for: from which on, and every which. `BUMPLESS_SLICE=K/N` is every Nth from
/// the Kth on, counted from 0; all without it.
///
/// # Panics
/// If the variable says anything else.
pub fn slice() -> (usize, usize) {
    let Ok(said) = std::env::var("BUMPLESS_SLICE") else {
        return (0, 1);
    };
    let parsed = said
        .split_once('/')
        .and_then(|(first, step)| Some((first.parse().ok()?, step.parse().ok()?)));
    match parsed {
        Some((first, step)) if first < step => (first, step),
        _ => std::panic!("BUMPLESS_SLICE is K/N with K below N, not {said}"),
    }
}
