//! The state of the last cycle that ended well, and how it follows the shared memory (H-9, H-17, H-18).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use bumpless_program::Shared;
use rustix::param::page_size;

use crate::process::Process;

/// `struct pm_scan_arg` of `linux/fs.h`.
#[derive(Default)]
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

const PAGEMAP_SCAN: libc::c_ulong = 0xC060_6610;
/// Protect again what is reported, and refuse a range that is not registered for that.
const FLAGS: u64 = 1 | 2;
const PAGE_IS_WRITTEN: u64 = 2;
const REGIONS: usize = 128;

/// A page that is written first after it was protected costs its writer as much as copying ten.
const WORTH_ONE_IN: usize = 10;
/// For so many cycles the whole state is copied after a cycle that changed too much of it.
const PAUSE: u32 = 256;

/// Which pages of its state a process has written, as the kernel noted it.
struct Written {
    pagemap: File,
    /// Where the state begins in the memory of the process.
    address: u64,
    regions: Box<[Region]>,
    /// The page that is compared next.
    next: usize,
    /// For so many cycles the whole state is copied.
    paused: u32,
    /// Whether what is reported is the change of one cycle: not at first, nor after a pause.
    one_cycle: bool,
}

/// Tracking has missed a change, or does not work.
struct Missed;

/// How the copy follows.
enum Way {
    Whole,
    Written(Written),
}

/// The copy.
pub(crate) struct Committed {
    state: Box<[u8]>,
    way: Way,
    track_from: usize,
    lost: u64,
}

impl Committed {
    /// `track_from`: from so many bytes on, changes are tracked.
    pub fn new(state: Box<[u8]>, track_from: usize) -> Self {
        Self {
            state,
            way: Way::Whole,
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
        matches!(self.way, Way::Written(_))
    }

    /// Takes over another state of the same length.
    pub fn replace(&mut self, state: &[u8]) {
        self.state.copy_from_slice(state);
    }

    /// Follows `process` from now on.
    pub fn follow(&mut self, process: &Process) {
        let address = process
            .shared()
            .header()
            .state_address
            .load(Ordering::Relaxed);
        let aligned = address.is_multiple_of(page_size() as u64);
        let wanted = self.state.len() >= self.track_from && self.lost == 0;
        self.way = match address {
            0 => Way::Whole,
            address if wanted && aligned => {
                Written::of(process, address).map_or(Way::Whole, Way::Written)
            }
            _ => Way::Whole,
        };
    }

    /// Copies what has changed. The program must be waiting.
    pub fn commit(&mut self, shared: &Shared) {
        if let Way::Written(written) = &mut self.way {
            match written.follow(shared, &mut self.state) {
                Ok(true) => return,
                Ok(false) => {}
                Err(Missed) => {
                    self.lost += 1;
                    self.way = Way::Whole;
                }
            }
        }
        shared.copy_state(0, &mut self.state);
    }
}

impl Written {
    fn of(process: &Process, address: u64) -> io::Result<Self> {
        let pid = process.pid().as_raw_nonzero();
        Ok(Self {
            pagemap: File::open(format!("/proc/{pid}/pagemap"))?,
            address,
            regions: vec![Region::default(); REGIONS].into_boxed_slice(),
            next: 0,
            paused: 0,
            one_cycle: false,
        })
    }

    /// Copies what was written since the last call, unless that is paused: whether it has.
    fn follow(&mut self, shared: &Shared, state: &mut [u8]) -> Result<bool, Missed> {
        if let Some(left) = self.paused.checked_sub(1) {
            self.paused = left;
            self.one_cycle = false;
            return Ok(false);
        }
        let copied = self.copy(shared, state).map_err(|_| Missed)?;
        if !self.compare_one(shared, state) {
            return Err(Missed);
        }
        if self.one_cycle && copied > state.len() / WORTH_ONE_IN {
            self.paused = PAUSE;
        }
        self.one_cycle = true;
        Ok(true)
    }

    /// Copies what was written since the last scan, and says how many bytes that are.
    fn copy(&mut self, shared: &Shared, state: &mut [u8]) -> io::Result<usize> {
        let page = page_size() as u64;
        let end = self.address + (state.len() as u64).next_multiple_of(page);
        let (mut start, mut copied) = (self.address, 0);
        while start < end {
            let (count, walked) = self.scan(start, end)?;
            for region in &self.regions[..count] {
                let from = region.start.clamp(self.address, end) - self.address;
                let to = region.end.clamp(self.address, end) - self.address;
                let (from, to) = (from as usize, (to as usize).min(state.len()));
                if from < to {
                    shared.copy_state(from, &mut state[from..to]);
                    copied += to - from;
                }
            }
            if walked <= start {
                return Err(io::ErrorKind::InvalidData.into());
            }
            start = walked;
        }
        Ok(copied)
    }

    /// How many regions of written pages there are from `start` on, and how far it was looked.
    fn scan(&mut self, start: u64, end: u64) -> io::Result<(usize, u64)> {
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: FLAGS,
            start,
            end,
            vec: self.regions.as_mut_ptr() as u64,
            vec_len: self.regions.len() as u64,
            category_mask: PAGE_IS_WRITTEN,
            return_mask: PAGE_IS_WRITTEN,
            ..Scan::default()
        };
        // SAFETY: the request reads and writes one `pm_scan_arg`, which `Scan` is, and at most `vec_len` regions
        // from `vec` on, which are ours for the length of the call.
        let count = unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
        match usize::try_from(count) {
            Ok(count) => Ok((count.min(self.regions.len()), scan.walk_end)),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Whether one page, another at each call, is what was copied.
    fn compare_one(&mut self, shared: &Shared, state: &[u8]) -> bool {
        let from = self.next;
        let to = (from + page_size()).min(state.len());
        self.next = if to == state.len() { 0 } else { to };
        shared.state_is(from, &state[from..to])
    }
}
