//! A program with its maps, for one interface: budgets of one interface are not those of another, so that a flood on one network
//! costs no flow its packets on the other.

use std::fmt;
use std::io;

use bumpless_base::Instant;
use bumpless_guard::{FlowId, Guard, Rate, Setup, SetupError};

use crate::assembler::Instruction;
use crate::kernel::{self, Link, Map, MapKind, Mode, Program};
use crate::layout::{
    BUDGET_LEN, CAPACITY_MAX, COUNTS_LEN, Cause, KEY_LEN, Layout, PERIOD_MIN, PORTS_LEN,
};
use crate::program::{Maps, drop_all, pass_all, program};

/// The first kernel with what the program uses: links of interfaces, the coarse clock, exchanging words.
const OLDEST: &str = "5.12";

/// Why there is no filter.
#[derive(Debug)]
pub enum LoadError {
    /// The setup contradicts itself.
    Setup(SetupError),
    /// A rate that the program cannot hold; `None`: the overall one.
    Rate(Option<FlowId>, &'static str),
    /// The kernel has no such programs, or too old ones.
    Unsupported(io::Error),
    /// The kernel does not permit it.
    Forbidden,
    /// The kernel refuses.
    Refused {
        /// What was attempted.
        what: &'static str,
        /// What it says.
        cause: io::Error,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Rate(Some(flow), remedy) => write!(f, "the rate of {flow:?}: {remedy}"),
            Self::Rate(None, remedy) => write!(f, "the overall rate: {remedy}"),
            Self::Unsupported(error) => write!(
                f,
                "this kernel cannot judge frames at the driver ({error}): it takes Linux {OLDEST} or later with CONFIG_BPF_SYSCALL"
            ),
            Self::Forbidden => write!(
                f,
                "the kernel does not permit loading a program although capabilities are not missing: a container, a seccomp filter or \
                 lockdown (see `dmesg`) forbids bpf(2); run outside of it, or permit bpf(2) in it"
            ),
            Self::Refused { what, cause } => {
                write!(
                    f,
                    "cannot {what}: {cause}; it takes Linux {OLDEST} or later"
                )
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// What happened to the frames of a flow on one interface. Every frame that came is in one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Passed on to the kernel.
    pub passed: u64,
    /// Dropped beyond the capacity.
    pub capacity: u64,
    /// Dropped since nothing of the flow is received.
    pub closed: u64,
}

/// A program for one interface, verified by the kernel; attached to none yet.
#[derive(Debug)]
pub struct Filter {
    program: Program,
    counts: Map,
    flows: Vec<FlowId>,
    /// What the program refers to; the kernel keeps it as long as the program.
    _others: [Map; 3],
}

impl Filter {
    /// A filter that decides as `bumpless_guard` does with this setup; priorities, and queue lengths but zero, mean nothing to it.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn new(setup: &Setup) -> Result<Self, LoadError> {
        check(setup)?;
        let guard = Guard::<()>::new(setup, Instant::from_nanos(0)).map_err(LoadError::Setup)?;
        let layout = Layout::new(setup);
        let refused = |what| move |error: io::Error| classified(what, error);
        let map = |kind, key_len, value_len, entries| {
            Map::new(kind, key_len, value_len, entries).map_err(refused("make a map"))
        };
        let budgets = map(MapKind::Array, 4, BUDGET_LEN, layout.flows())?;
        let counts = map(MapKind::ArrayPerProcessor, 4, COUNTS_LEN, layout.flows())?;
        let ports = map(MapKind::Array, 4, PORTS_LEN, 1)?;
        let senders = map(MapKind::Hash, KEY_LEN, 4, layout.senders.len().max(1))?;
        let fill = |map: &Map, key: &[u8], value: &[u8]| {
            map.put(key, value).map_err(refused("fill a map"))
        };
        for (at, budget) in (0u32..).zip(layout.budgets(kernel::now())) {
            fill(&budgets, &at.to_ne_bytes(), &budget)?;
        }
        fill(&ports, &[0; 4], &layout.ports)?;
        for (key, flow) in &layout.senders {
            fill(&senders, key, &flow.to_ne_bytes())?;
        }
        let maps = Maps {
            budgets: budgets.number(),
            counts: counts.number(),
            ports: ports.number(),
            senders: senders.number(),
        };
        let code = program(layout.registered, layout.shapes, maps);
        Ok(Self {
            program: Program::load(&code).map_err(refused("load the program"))?,
            counts,
            flows: guard.flows().collect(),
            _others: [budgets, ports, senders],
        })
    }

    /// A filter that passes every frame uncounted: what the cost of another one is compared with.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn open() -> Result<Self, LoadError> {
        Self::without_maps(&pass_all())
    }

    /// A filter that drops every frame uncounted: the least that a frame costs.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn shut() -> Result<Self, LoadError> {
        Self::without_maps(&drop_all())
    }

    fn without_maps(code: &[Instruction]) -> Result<Self, LoadError> {
        let program = Program::load(code).map_err(|error| classified("load the program", error))?;
        Ok(Self {
            program,
            ..Self::new(&Setup::closed(2))?
        })
    }

    /// What happened to the frames of each flow, the registered ones first.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counts(&self) -> io::Result<Vec<(FlowId, Counts)>> {
        let all = (0u32..).zip(&self.flows);
        all.map(|(at, &flow)| Ok((flow, sum(&self.counts.get(&at.to_ne_bytes())?))))
            .collect()
    }

    /// Whether the last one of `count` copies of a frame of at least 14 bytes would be passed. They are counted.
    ///
    /// # Errors
    /// The kernel's.
    pub fn passes(&self, frame: &[u8], count: u32) -> io::Result<bool> {
        const PASS: u32 = 2;
        Ok(self.program.test(frame, count)? == PASS)
    }

    /// Has `count` copies of a frame arrive as a driver brings them, and what is passed go its whole way: for measuring
    /// (Linux 5.18, an interface with a program in native mode).
    ///
    /// # Errors
    /// The kernel's.
    pub fn arrive(&self, frame: &[u8], count: u32, interface: &str) -> io::Result<()> {
        let number = kernel::interface_number(interface);
        let number = number.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        self.program.arrive(frame, count, number)
    }

    /// Has it decide in the place of the filter that this link holds.
    pub(crate) fn take_over(&self, link: &Link) -> io::Result<()> {
        link.replace(&self.program)
    }

    /// Attaches it to the interface with this number in one mode.
    pub(crate) fn attach(&self, interface: u32, mode: Mode) -> io::Result<Link> {
        self.program.attach(interface, mode)
    }
}

fn classified(what: &'static str, cause: io::Error) -> LoadError {
    match cause.raw_os_error() {
        Some(libc::ENOSYS) => LoadError::Unsupported(cause),
        Some(libc::EPERM) => LoadError::Forbidden,
        _ => LoadError::Refused { what, cause },
    }
}

fn check(setup: &Setup) -> Result<(), LoadError> {
    if setup.overall.is_some() {
        return Err(LoadError::Rate(None, "leave it out, Linux polls by itself"));
    }
    let registered = (0u16..).zip(&setup.flows);
    let registered = registered.map(|(at, flow)| (FlowId::Registered(at), flow.terms.rate));
    let built_in = [
        (FlowId::Resolution, setup.resolution.rate),
        (FlowId::Icmp, setup.icmp.rate),
        (FlowId::Fragments, setup.fragments.rate),
        (FlowId::Unregistered, setup.unregistered.rate),
        (FlowId::Unknown, setup.unknown.rate),
    ];
    for (flow, rate) in registered.chain(built_in) {
        let Some(Rate { capacity, period }) = rate else {
            continue;
        };
        if period.as_nanos() < PERIOD_MIN {
            return Err(LoadError::Rate(
                Some(flow),
                "give a period of 1 ms at least",
            ));
        }
        if capacity > CAPACITY_MAX {
            return Err(LoadError::Rate(
                Some(flow),
                "give a capacity of 8388608 at most",
            ));
        }
    }
    Ok(())
}

/// The counts of all processors together.
fn sum(bytes: &[u8]) -> Counts {
    let mut counts = Counts::default();
    for one in bytes.chunks_exact(COUNTS_LEN) {
        let at = |cause: Cause| {
            let at = cause.offset() as usize;
            one[at..]
                .first_chunk()
                .map_or(0, |it| u64::from_ne_bytes(*it))
        };
        counts.passed += at(Cause::Passed);
        counts.capacity += at(Cause::Capacity);
        counts.closed += at(Cause::Closed);
    }
    counts
}
