//! What lies where in the shared memory: the table of `spec/sidecar.md`.
//!
//! All fields are atomic, since another process writes them at any time; so references to them are sound.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::thread::futex;

/// What the memory begins with, as its bytes lie there.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"bumpless");
/// Version of the layout.
pub const VERSION: u32 = 1;
/// Bytes before the areas.
pub const HEADER_SIZE: usize = 4096;
/// Alignment of the state in the memory: every page size that Linux has on the processors we run on.
pub const STATE_ALIGNMENT: usize = 65536;
/// Longest message in bytes.
pub const MESSAGE_MAX: usize = 320;
/// Most ranges of pages that fit behind the header.
pub const RANGES_MAX: usize = 448;
/// In place of a number of ranges: anything may have changed.
pub const ALL: u32 = u32::MAX;
/// The environment variable with the descriptor's number.
pub const VARIABLE: &str = "BUMPLESS_MEMORY";

/// The commands of the host.
pub mod command {
    /// Look at the memory and make the initial state.
    pub const ATTACH: u32 = 1;
    /// Run one cycle.
    pub const EXECUTE: u32 = 2;
    /// Leave.
    pub const END: u32 = 3;
    /// Make the state from one of another version of the program, which stands in its place.
    pub const CONVERT: u32 = 4;
}

/// The results of the program.
pub mod result {
    /// The command is carried out.
    pub const DONE: u32 = 0;
    /// It is not; the message says why.
    pub const FAILED: u32 = 1;
    /// The memory has a version that the program does not speak.
    pub const VERSION: u32 = 2;
    /// The program does not fit into the memory; the message says why.
    pub const MISFIT: u32 = 3;
}

/// The front of the memory.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// The host's version.
    pub version: AtomicU32,
    /// The program's version, 0 before it has looked.
    pub program_version: AtomicU32,
    /// Size of the whole memory.
    pub total: AtomicU64,
    /// Number of inputs.
    pub inputs: AtomicU32,
    /// Number of outputs.
    pub outputs: AtomicU32,
    /// Offset of the inputs.
    pub inputs_at: AtomicU64,
    /// Offset of the outputs.
    pub outputs_at: AtomicU64,
    /// Offset of the state.
    pub state_at: AtomicU64,
    /// Most bytes of the state.
    pub state_max: AtomicU64,
    /// Number of the last command.
    pub request: AtomicU32,
    /// What the host orders: a constant of [`command`].
    pub command: AtomicU32,
    /// Number of the cycle to execute.
    pub cycle: AtomicU64,
    /// The period in nanoseconds.
    pub period: AtomicU64,
    /// Whether changes of the state are to be tracked.
    pub track: AtomicU32,
    unused_host: AtomicU32,
    /// Version of the layout of the state that is to be converted, as the program that made it gives it.
    pub old_version: AtomicU64,
    /// Bytes of that state.
    pub old_len: AtomicU64,
    unused_host_end: [AtomicU32; 4],
    /// Number of the command that was answered last.
    pub answer: AtomicU32,
    /// What came of it.
    pub result: AtomicU32,
    /// Bytes of the state.
    pub state_len: AtomicU64,
    /// Version of the state's layout.
    pub state_version: AtomicU64,
    /// Inputs that the program takes.
    pub program_inputs: AtomicU32,
    /// Outputs that the program gives.
    pub program_outputs: AtomicU32,
    /// The only period with which it can run, 0 if any.
    pub program_period: AtomicU64,
    /// 1 if the program can say which pages of the state it has written.
    pub tracked: AtomicU64,
    /// Length of the message.
    pub message_len: AtomicU32,
    /// Number of ranges that were written since they were told last, [`ALL`] if it is not told.
    pub changes: AtomicU32,
    /// 1 if the program converts states of other versions.
    pub converts: AtomicU32,
    unused_program: AtomicU32,
    /// Why it failed.
    pub message: [AtomicU8; MESSAGE_MAX],
    /// The ranges: number of the first page of the state, and how many pages.
    pub ranges: [[AtomicU32; 2]; RANGES_MAX],
}

impl Header {
    /// The program's last act for a request: says what came of it, and that it is answered; returns its number.
    pub fn answer(&self, result: u32) -> u32 {
        self.result.store(result, Ordering::Relaxed);
        let number = self.answer.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.answer, futex::Flags::empty(), i32::MAX as u32);
        number.wrapping_add(1)
    }
}

const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(Header, total) == 16);
    assert!(offset_of!(Header, inputs) == 24);
    assert!(offset_of!(Header, inputs_at) == 32);
    assert!(offset_of!(Header, state_max) == 56);
    assert!(offset_of!(Header, request) == 64);
    assert!(offset_of!(Header, cycle) == 72);
    assert!(offset_of!(Header, track) == 88);
    assert!(offset_of!(Header, old_version) == 96);
    assert!(offset_of!(Header, old_len) == 104);
    assert!(offset_of!(Header, answer) == 128);
    assert!(offset_of!(Header, state_len) == 136);
    assert!(offset_of!(Header, program_inputs) == 152);
    assert!(offset_of!(Header, tracked) == 168);
    assert!(offset_of!(Header, message_len) == 176);
    assert!(offset_of!(Header, converts) == 184);
    assert!(offset_of!(Header, message) == 192);
    assert!(offset_of!(Header, ranges) == 512);
    assert!(size_of::<Header>() == HEADER_SIZE);
};
