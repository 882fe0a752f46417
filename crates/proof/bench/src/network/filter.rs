//! Loss where a network ends: a program in the kernel that counts the packets that carry states and
//! drops the ones it is told to. Gone with the process that loaded it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::namespace::Namespace;
use super::program::{self, Instruction, control};

const MAP_CREATE: libc::c_long = 0;
const PROGRAM_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const ARRAY: u32 = 2;
const MAPPABLE: u32 = 1 << 10;
const CLASSIFIER: u32 = 3;
/// Since Linux 6.6: no queueing discipline, and gone with its descriptor.
const TCX_INGRESS: u32 = 46;
const PAGE: usize = 4096;

/// Least payload of a datagram that counts as a part of a state: acknowledgements and the like are smaller,
/// the smallest state is not.
const THRESHOLD: u64 = 128;
/// How heartbeats of ours begin (`HType`); what else ours sends to a backup is pieces of states.
const HEARTBEAT: u64 = 0x2001;

/// What the datagrams of a peer look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagrams {
    /// Pieces of states and heartbeats of ours, told apart by their type.
    Ours,
    /// Told apart by their size.
    Others,
}

/// What a filter is attached for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where states arrive.
    Forward,
    /// Where acknowledgements arrive.
    Backward,
}

/// Which packets are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// `count` packets from `first` on, counted from 0 since the filter was set.
    These {
        /// The first one.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Each with this probability.
    Random(f64),
    /// The first one after each so many nanoseconds.
    Every(u64),
    /// The network is cut in both directions when so many have passed.
    CutAfter(u64),
}

/// The filter of one network, in both directions.
#[derive(Debug)]
pub struct Filter {
    block: Block,
    _attached: Vec<OwnedFd>,
}

impl Filter {
    /// Filters at these interfaces.
    ///
    /// # Errors
    /// The kernel refuses (before 6.6 it knows no such attachment), or an interface is missing.
    pub fn new(ends: &[(&Namespace, Place, String)]) -> Result<Self, String> {
        let refused = |error: io::Error| {
            format!("cannot make packets fall: {error}; it takes root and Linux 6.6 or later")
        };
        let map = create_map().map_err(refused)?;
        let block = Block::new(&map).map_err(refused)?;
        let mut attached = Vec::new();
        for (host, place, interface) in ends {
            let code = match place {
                Place::Forward => program::forward(map.as_raw_fd()),
                Place::Backward => program::backward(map.as_raw_fd()),
            };
            let program = load(&code).map_err(refused)?;
            let link = host.run(|| attach(&program, interface))?.map_err(refused)?;
            attached.push(link);
        }
        let filter = Self {
            block,
            _attached: attached,
        };
        filter.expect(Datagrams::Others);
        filter.set(Loss::None);
        Ok(filter)
    }

    /// Counts the datagrams that carry states among those of `datagrams`.
    pub fn expect(&self, datagrams: Datagrams) {
        let (threshold, skip) = match datagrams {
            Datagrams::Ours => (1, HEARTBEAT),
            Datagrams::Others => (THRESHOLD, 0),
        };
        self.block.store(control::THRESHOLD, threshold);
        self.block.store(control::SKIP, skip);
    }

    /// Counts from 0, and loses as `loss` says.
    pub fn set(&self, loss: Loss) {
        // Nothing is lost while the numbers change.
        for offset in [
            control::COUNT,
            control::CHANCE,
            control::EVERY,
            control::CUT_AT,
        ] {
            self.block.store(offset, 0);
        }
        for offset in [control::SEEN, control::DROPPED, control::NEXT, control::CUT] {
            self.block.store(offset, 0);
        }
        match loss {
            Loss::None => {}
            Loss::These { first, count } => {
                self.block.store(control::FIRST, first);
                self.block.store(control::COUNT, count);
            }
            Loss::Random(chance) => {
                let chance = (chance.clamp(0.0, 1.0) * 2f64.powi(32)) as u64;
                self.block.store(control::CHANCE, chance);
            }
            Loss::Every(nanoseconds) => self.block.store(control::EVERY, nanoseconds),
            Loss::CutAfter(packets) => self.block.store(control::CUT_AT, packets.max(1)),
        }
    }

    /// Packets counted since the filter was set, dropped ones among them.
    pub fn seen(&self) -> u64 {
        self.block.load(control::SEEN)
    }

    /// Packets dropped since the filter was set.
    pub fn dropped(&self) -> u64 {
        self.block.load(control::DROPPED)
    }

    /// Packets of both directions that a cut has swallowed.
    pub fn swallowed(&self) -> u64 {
        self.block.load(control::CUT)
    }
}

/// The numbers that programs and this process share.
#[derive(Debug)]
struct Block(NonNull<AtomicU64>);

// SAFETY: the memory is shared with the kernel's programs anyway, and read and written in atomic numbers.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    fn new(map: &OwnedFd) -> io::Result<Self> {
        // SAFETY: a fresh mapping of a page of the map; no existing memory is touched.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(memory.cast())
            .map(Self)
            .ok_or_else(io::Error::last_os_error)
    }

    fn number(&self, offset: i16) -> &AtomicU64 {
        debug_assert!((offset as usize) < control::SIZE);
        // SAFETY: the mapping holds `control::SIZE` bytes and more, is aligned to a page, and stays until
        // `self` is dropped; every offset is one of `control`.
        unsafe { self.0.add(offset as usize / size_of::<u64>()).as_ref() }
    }

    fn store(&self, offset: i16, value: u64) {
        self.number(offset).store(value, Ordering::SeqCst);
    }

    fn load(&self, offset: i16) -> u64 {
        self.number(offset).load(Ordering::SeqCst)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE) };
    }
}

/// Arguments of bpf(2) for a new map, as far as they are used; the kernel takes the rest as zero.
#[repr(C)]
struct MapArguments {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct ProgramArguments {
    kind: u32,
    count: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

#[repr(C)]
struct LinkArguments {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

fn bpf<T>(command: libc::c_long, arguments: &T) -> io::Result<OwnedFd> {
    // SAFETY: `arguments` is valid for reading its size through the call, and what it points to lives in
    // the caller.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(arguments),
            size_of::<T>() as libc::c_long,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}

fn create_map() -> io::Result<OwnedFd> {
    bpf(
        MAP_CREATE,
        &MapArguments {
            kind: ARRAY,
            key_size: 4,
            value_size: control::SIZE as u32,
            entries: 1,
            flags: MAPPABLE,
        },
    )
}

fn load(code: &[Instruction]) -> io::Result<OwnedFd> {
    let license = c"Dual MIT/GPL";
    let mut log = vec![0u8; 1 << 16];
    let mut name = [0; 16];
    name[..13].copy_from_slice(b"bumpless_loss");
    let arguments = ProgramArguments {
        kind: CLASSIFIER,
        count: code.len() as u32,
        code: code.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 1,
        log_size: log.len() as u32,
        log: log.as_mut_ptr() as u64,
        kernel: 0,
        flags: 0,
        name,
        interface: 0,
        attach: TCX_INGRESS,
    };
    bpf(PROGRAM_LOAD, &arguments).map_err(|error| {
        let said = String::from_utf8_lossy(&log);
        let said = said.trim_end_matches('\0').trim();
        io::Error::new(error.kind(), format!("{error} {said}"))
    })
}

/// Attaches to an interface of the calling thread's namespace.
fn attach(program: &OwnedFd, interface: &str) -> io::Result<OwnedFd> {
    let name = CString::new(interface)?;
    // SAFETY: `name` is a string that lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    bpf(
        LINK_CREATE,
        &LinkArguments {
            program: program.as_raw_fd() as u32,
            interface: index,
            attach: TCX_INGRESS,
            flags: 0,
        },
    )
}
