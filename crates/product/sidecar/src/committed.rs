//! The state of the last cycle that ended well, how it follows the shared memory (H-9, H-17, H-18), and what of it has
//! changed since it was last published (H-45).

use std::sync::atomic::Ordering;

use bumpless_base::pieces::overlay;
use bumpless_program::Shared;
use bumpless_program::layout::ALL;
use rustix::param::page_size;

/// A page that is written first after it was protected costs its writer as much as copying some. One that is not written
/// is spared twice: on the way here, and from here to a buffer.
const WORTH_ONE_IN: usize = 5;
/// For so many cycles the whole state is compared after a cycle that changed too much of it.
const PAUSE: u32 = 256;

/// How the copy follows what the program says of its changes.
#[derive(Default)]
struct Changes {
    /// The byte from which on the next page is compared.
    next: usize,
    /// For so many cycles the whole state is compared.
    paused: u32,
    /// Whether what is told is the change of one cycle: not at first, nor after a pause.
    one_cycle: bool,
}

/// The program has not told of a change.
struct Missed;

/// The copy.
pub(crate) struct Committed {
    state: Box<[u8]>,
    /// How often it has changed.
    revision: u64,
    /// In which revision each page of it was last written.
    written: Box<[u64]>,
    changes: Option<Changes>,
    track_from: usize,
    lost: u64,
}

impl Committed {
    /// `track_from`: from so many bytes on, changes are tracked.
    pub fn new(state: Box<[u8]>, track_from: usize) -> Self {
        Self {
            revision: 0,
            written: vec![0; state.len().div_ceil(page_size())].into_boxed_slice(),
            state,
            changes: None,
            track_from,
            lost: 0,
        }
    }

    pub fn state(&self) -> &[u8] {
        &self.state
    }

    /// How often tracking was given up.
    pub fn tracking_lost(&self) -> u64 {
        self.lost
    }

    /// Whether changes are tracked.
    pub fn is_tracked(&self) -> bool {
        self.changes.is_some()
    }

    /// How often it has changed: two states of one number are the same.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Copies its bytes from `at` on over `piece`; where `piece` has those of revision `since`, only the pages that were
    /// written after it.
    pub fn copy(&self, at: usize, piece: &mut [u8], since: Option<u64>) {
        let Some(since) = since else {
            return overlay(piece, at, &self.state, 0);
        };
        let page = page_size();
        for number in at / page..(at + piece.len()).div_ceil(page).min(self.written.len()) {
            let from = number * page;
            let to = (from + page).min(self.state.len());
            if self.written[number] > since {
                overlay(piece, at, &self.state[from..to], from);
            }
        }
    }

    /// Takes over another state of the same length.
    pub fn replace(&mut self, state: &[u8]) {
        self.state.copy_from_slice(state);
        self.revision += 1;
        self.written.fill(self.revision);
    }

    /// Follows another process from now on.
    pub fn follow(&mut self, shared: &Shared) {
        let wanted = self.state.len() >= self.track_from && self.lost == 0;
        let can = shared.header().tracked.load(Ordering::Relaxed) == 1;
        self.changes = (wanted && can).then(Changes::default);
    }

    /// Says to the program whether its changes are of use in the next cycle.
    pub fn announce(&self, shared: &Shared) {
        let wanted = self.changes.as_ref().is_some_and(|it| it.paused == 0);
        shared
            .header()
            .track
            .store(wanted.into(), Ordering::Relaxed);
    }

    /// Copies what has changed. The program must be waiting.
    pub fn commit(&mut self, shared: &Shared) {
        self.revision += 1;
        let mut copy = Pages {
            state: &mut self.state,
            written: &mut self.written,
            revision: self.revision,
        };
        if let Some(changes) = &mut self.changes {
            match changes.follow(shared, &mut copy) {
                Ok(true) => return,
                Ok(false) => {}
                Err(Missed) => {
                    self.lost += 1;
                    self.changes = None;
                }
            }
        }
        copy.take_what_differs(shared);
    }
}

/// The copy while it follows.
struct Pages<'a> {
    state: &'a mut [u8],
    written: &'a mut [u64],
    revision: u64,
}

impl Pages<'_> {
    /// Copies the pages from number `first` on, `count` of them, and says how many bytes those are. What lies beyond the
    /// state is nothing.
    fn take(&mut self, shared: &Shared, first: usize, count: usize) -> usize {
        let page = page_size();
        let first = first.min(self.written.len());
        let end = first.saturating_add(count).min(self.written.len());
        self.written[first..end].fill(self.revision);
        let len = self.state.len();
        let bytes = (first * page).min(len)..(end * page).min(len);
        shared.copy_state(bytes.start, &mut self.state[bytes.clone()]);
        bytes.len()
    }

    /// Copies the pages that are others than here. *To compare one takes as long as to copy it, and spares the copy from
    /// here on.*
    fn take_what_differs(&mut self, shared: &Shared) {
        for (number, written) in self.written.iter_mut().enumerate() {
            let from = number * page_size();
            let to = (from + page_size()).min(self.state.len());
            let page = &mut self.state[from..to];
            if !shared.state_is(from, page) {
                shared.copy_state(from, page);
                *written = self.revision;
            }
        }
    }
}

impl Changes {
    /// Copies what was written since the last call, if that is told: whether it has.
    fn follow(&mut self, shared: &Shared, copy: &mut Pages<'_>) -> Result<bool, Missed> {
        if let Some(left) = self.paused.checked_sub(1) {
            self.paused = left;
            self.one_cycle = false;
            return Ok(false);
        }
        let one_cycle = std::mem::replace(&mut self.one_cycle, true);
        let Some(copied) = copy_told(shared, copy) else {
            return Ok(false);
        };
        if !self.compare_one(shared, copy.state) {
            return Err(Missed);
        }
        if one_cycle && copied > copy.state.len() / WORTH_ONE_IN {
            self.paused = PAUSE;
        }
        Ok(true)
    }

    /// Whether one page, another at each call, is what was copied.
    fn compare_one(&mut self, shared: &Shared, state: &[u8]) -> bool {
        let from = self.next;
        let to = (from + page_size()).min(state.len());
        self.next = if to == state.len() { 0 } else { to };
        shared.state_is(from, &state[from..to])
    }
}

/// Copies the ranges that the program names, and says how many bytes that are.
fn copy_told(shared: &Shared, copy: &mut Pages<'_>) -> Option<usize> {
    let header = shared.header();
    let count = header.changes.load(Ordering::Relaxed);
    if count == ALL {
        return None;
    }
    let mut copied = 0;
    for range in header.ranges.iter().take(count as usize) {
        let [first, pages] = [&range[0], &range[1]].map(|it| it.load(Ordering::Relaxed) as usize);
        copied += copy.take(shared, first, pages);
    }
    Some(copied)
}
