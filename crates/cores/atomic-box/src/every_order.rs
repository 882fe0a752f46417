//! Running what threads share in every order that they can take (loom). CONTRIBUTING.md has the command.

use std::println;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs `run` in every order that its threads can take, and prints how many differ in what the threads
/// share. For tests of this crate and of those that build on it.
///
/// # Panics
/// Hardly any differ: then loom sees nothing of it.
pub fn every_order(run: impl Fn() + Send + Sync + 'static) {
    let orders = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&orders);
    loom::model(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        run();
    });
    let orders = orders.load(Ordering::Relaxed);
    println!("{orders} orders");
    assert!(orders > 10, "{orders} orders");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DirtySet;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    #[test]
    fn no_mark_is_lost_and_each_shows_what_was_written_before_it() {
        // Marked by two threads: two numbers of one word, and one of another below the same summary.
        const NUMBERS: [usize; 3] = [0, usize::BITS as usize, 1];
        every_order(|| {
            let dirty = Arc::new(DirtySet::new(usize::BITS as usize + 1));
            let written = Arc::new([0; 3].map(AtomicUsize::new));
            let marker = |positions: core::ops::Range<usize>| {
                let (dirty, written) = (Arc::clone(&dirty), Arc::clone(&written));
                thread::spawn(move || {
                    for at in positions {
                        written[at].store(1, Ordering::Relaxed);
                        dirty.mark(NUMBERS[at]);
                    }
                })
            };
            let markers = [marker(0..2), marker(2..3)];
            let mut found = [0; 3];
            let mut take = || {
                dirty.take(|number| {
                    let at = NUMBERS.iter().position(|&n| n == number).unwrap();
                    assert_eq!(written[at].load(Ordering::Relaxed), 1, "mark before data");
                    found[at] += 1;
                });
            };
            take();
            for marker in markers {
                marker.join().unwrap();
            }
            take();
            assert_eq!(found, [1; 3]);
            assert!(dirty.is_clear());
        });
    }
}
