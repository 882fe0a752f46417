//! What marks and notes are made of: atomics of the machine or, with `--cfg loom`, of loom, which tries
//! every order in which threads can go on and every value that they may then read.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};

/// Runs `run` in every order that its threads can take, and prints how many differ in what the threads
/// share. Fails if hardly any do: then loom sees nothing of it.
#[cfg(all(test, loom))]
pub(crate) fn every_order(run: impl Fn() + Send + Sync + 'static) {
    use std::sync::atomic::AtomicU32;
    let orders = alloc::sync::Arc::new(AtomicU32::new(0));
    let counted = alloc::sync::Arc::clone(&orders);
    loom::model(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        run();
    });
    let orders = orders.load(Ordering::Relaxed);
    std::println!("{orders} orders");
    assert!(orders > 10, "{orders} orders");
}
