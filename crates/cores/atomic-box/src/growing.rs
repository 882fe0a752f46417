//! Bytes that one thread writes from the front while another one reads what is there already.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use core::ptr::{self, NonNull};
use core::slice;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicUsize, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};

/// What both ends have.
#[derive(Debug)]
struct Bytes {
    /// Of a box of `len` bytes, which is taken back when both ends are gone.
    first: NonNull<u8>,
    len: usize,
    /// So many bytes from the front are handed over: the reader's; the rest is the writer's.
    grown: AtomicUsize,
}

// SAFETY: a byte is either the writer's, of which there is one, or readable by all, and which it is, is in an atomic
// whose order makes what was written visible to whoever reads it.
unsafe impl Send for Bytes {}
// SAFETY: as for `Send`.
unsafe impl Sync for Bytes {}

impl Drop for Bytes {
    fn drop(&mut self) {
        let whole = ptr::slice_from_raw_parts_mut(self.first.as_ptr(), self.len);
        // SAFETY: the pointer and the length are those of the box that `growing` took apart, and nobody else has them.
        drop(unsafe { Box::from_raw(whole) });
    }
}

/// The end that writes. There is one for each [`Grown`].
#[derive(Debug)]
pub struct Growing {
    bytes: Arc<Bytes>,
}

/// The end that reads what was handed over.
#[derive(Debug)]
pub struct Grown {
    bytes: Arc<Bytes>,
}

/// Both ends of `len` bytes, zeros, of which nothing is handed over.
pub fn growing(len: usize) -> (Growing, Grown) {
    let zeros = Box::leak(vec![0_u8; len].into_boxed_slice());
    let bytes = Arc::new(Bytes {
        first: NonNull::from(zeros).cast(),
        len,
        grown: AtomicUsize::new(0),
    });
    let read = Grown {
        bytes: Arc::clone(&bytes),
    };
    (Growing { bytes }, read)
}

impl Growing {
    /// Whether `read` is the other end.
    pub fn is_of(&self, read: &Grown) -> bool {
        Arc::ptr_eq(&self.bytes, &read.bytes)
    }

    /// Takes all bytes back from the other end; what is in them stays. Nothing is done if `read` is not the other end,
    /// which is said.
    pub fn restart(&mut self, read: &mut Grown) -> bool {
        // Nobody reads meanwhile: the other end is borrowed for writing here.
        let is_of = self.is_of(read);
        if is_of {
            self.bytes.grown.store(0, Ordering::Relaxed);
        }
        is_of
    }

    /// What is not handed over yet.
    pub fn rest(&mut self) -> &mut [u8] {
        let grown = self.bytes.grown.load(Ordering::Relaxed);
        // SAFETY: the bytes lie within the box, as `grown` is never above `len`. They are this end's: the other end
        // reads what is handed over only, and to hand over or to take back takes `&mut self`, which is borrowed for as
        // long as they are.
        unsafe {
            slice::from_raw_parts_mut(self.bytes.first.as_ptr().add(grown), self.bytes.len - grown)
        }
    }

    /// Hands over the first `by` bytes of the rest, at most all. What was written to them is seen by who reads them.
    pub fn grow(&mut self, by: usize) {
        let grown = self.bytes.grown.load(Ordering::Relaxed);
        let by = by.min(self.bytes.len - grown);
        self.bytes.grown.store(grown + by, Ordering::Release);
    }
}

impl Grown {
    /// What is handed over. Later calls give as much or more, until all is taken back.
    pub fn bytes(&self) -> &[u8] {
        let grown = self.bytes.grown.load(Ordering::Acquire);
        // SAFETY: the bytes lie within the box and are handed over: the other end writes beyond them only, and taking
        // back takes `&mut self`, which is borrowed for as long as they are.
        unsafe { slice::from_raw_parts(self.bytes.first.as_ptr(), grown) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_is_handed_over_is_read_and_no_more() {
        let (mut write, mut read) = growing(10);
        assert!(read.bytes().is_empty());
        write.rest()[..3].copy_from_slice(b"abc");
        assert!(read.bytes().is_empty());
        write.grow(3);
        assert_eq!((read.bytes(), write.rest().len()), (&b"abc"[..], 7));
        write.grow(usize::MAX);
        assert_eq!(
            (read.bytes(), write.rest().len()),
            (&b"abc\0\0\0\0\0\0\0"[..], 0)
        );
        assert!(write.restart(&mut read));
        assert_eq!((read.bytes().len(), &write.rest()[..3]), (0, &b"abc"[..]));
    }

    #[test]
    fn another_pairs_end_takes_nothing_back() {
        let (mut write, _) = growing(4);
        let (mut other, mut read) = growing(4);
        other.grow(4);
        assert!(!write.restart(&mut read));
        assert_eq!(read.bytes().len(), 4);
    }

    #[test]
    fn a_thread_reads_what_another_has_written_while_that_goes_on() {
        const LEN: usize = if cfg!(miri) { 200 } else { 100_000 };
        let (mut write, mut read) = growing(LEN);
        for round in 1..=3_u8 {
            assert!(write.restart(&mut read));
            thread::scope(|threads| {
                threads.spawn(|| {
                    while !write.rest().is_empty() {
                        let len = write.rest().len().min(7);
                        write.rest()[..len].fill(round);
                        write.grow(len);
                    }
                });
                let mut seen = 0;
                while seen < LEN {
                    let bytes = read.bytes();
                    assert!(bytes.len() >= seen && bytes.iter().skip(seen).all(|&it| it == round));
                    seen = bytes.len();
                    std::hint::spin_loop();
                }
            });
        }
    }
}
