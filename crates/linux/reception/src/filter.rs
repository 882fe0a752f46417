//! A program with its maps, for one interface: budgets of one interface are not those of another, so that a flood on one network
//! costs no flow its packets on the other.

use std::collections::HashSet;
use std::fmt;
use std::io;

use bumpless_base::{Duration, Instant};
use bumpless_bpf::{
    Instruction, Link, Map, MapKind, Mode, Program, Purpose, interface_number, now, tick,
};
use bumpless_guard::{Flow, FlowId, Guard, Rate, Setup, SetupError, Terms};

use crate::layout::{
    BUDGET_LEN, CAPACITY_MAX, COUNTS_LEN, Cause, KEY_LEN, Layout, PERIOD_MIN, PORTS_LEN, Shapes,
    budget, quick,
};
use crate::program::{Clocks, Maps, drop_all, pass_all, program};

/// The first kernel with what the program uses: links of interfaces, the coarse clock, exchanging words.
const OLDEST: &str = "5.12";

/// The kernel's name of our programs and maps, as `bpftool` and others show it.
const NAME: &str = "bumpless_guard";

/// Patterns with an address that a flow which comes later has at most.
const PATTERNS_IN_ROOM: usize = 4;

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
    maps: MapSet,
    flows: Vec<FlowId>,
    setup: Setup,
    layout: Layout,
    /// Flows that stay as they are: the program has some of them written down.
    fixed: usize,
}

/// What the program refers to.
#[derive(Debug)]
struct MapSet {
    budgets: Map,
    counts: Map,
    ports: Map,
    senders: Map,
}

/// Has the kernel verify and keep a program.
fn load(code: &[Instruction]) -> io::Result<Program> {
    Program::load(NAME, Purpose::Driver, code)
}

impl Filter {
    /// A filter that decides as `bumpless_guard` does with this setup; priorities, and queue lengths but zero, mean nothing to it.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn new(setup: &Setup) -> Result<Self, LoadError> {
        Self::with_room(setup, 0)
    }

    /// The same with room for `room` flows behind those of the setup, which come and go by [`Filter::set_flow`].
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn with_room(setup: &Setup, room: usize) -> Result<Self, LoadError> {
        check(setup)?;
        Guard::<()>::new(setup, Instant::from_nanos(0)).map_err(LoadError::Setup)?;
        let (fixed, quick) = (setup.flows.len(), quick(setup));
        let setup = roomy(setup, room);
        let all = setup.flows.len();
        if all > Setup::MAX_FLOWS {
            return Err(LoadError::Setup(SetupError::TooManyFlows(all)));
        }
        let layout = Layout::new(&setup);
        let maps = MapSet::new(&layout, room).map_err(|error| classified("make a map", error))?;
        maps.fill(&layout)
            .map_err(|error| classified("fill a map", error))?;
        // A flow that comes later may have patterns of any shape.
        let shapes = match room {
            0 => layout.shapes,
            _ => Shapes::ALL,
        };
        let clocks = Clocks::with_ticks_each(tick());
        let code = program(
            (layout.registered, clocks),
            (shapes, &quick),
            maps.numbers(),
        );
        let program = load(&code).map_err(|error| classified("load the program", error))?;
        Ok(Self {
            program,
            maps,
            flows: flows(&setup),
            setup,
            layout,
            fixed,
        })
    }

    /// Has the flow with number `at` be this one from the next frame on, with its budget whole and its counts zero; one to which nothing
    /// belongs is none. The other flows' budgets and counts go on.
    ///
    /// # Errors
    /// There is no such number among those that come and go, another flow has one of its patterns, or its rate cannot be held: nothing has changed. Or the kernel's.
    pub fn set_flow(&mut self, at: u16, flow: Flow) -> Result<(), LoadError> {
        let mut setup = self.setup.clone();
        let index = usize::from(at);
        let place = setup.flows.get_mut(index);
        let Some(place) = place.filter(|_| index >= self.fixed) else {
            return Err(LoadError::Setup(SetupError::NoMatch(at)));
        };
        *place = flow;
        check(&setup)?;
        overlap(&setup, at).map_err(LoadError::Setup)?;
        let layout = Layout::new(&setup);
        let terms = |setup: &Setup| setup.flows[usize::from(at)].terms;
        let changed = self
            .maps
            .change(&self.layout, &layout, (at, &terms(&setup)));
        if let Err(error) = changed {
            // Back, as far as the kernel lets it.
            let before = (at, &terms(&self.setup));
            let _ = self.maps.change(&layout, &self.layout, before);
            return Err(classified("change a flow", error));
        }
        (self.setup, self.layout) = (setup, layout);
        Ok(())
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
        let program = load(code).map_err(|error| classified("load the program", error))?;
        Ok(Self {
            program,
            ..Self::new(&Setup::closed(2))?
        })
    }

    /// What happened to the frames of each flow, the registered ones first, those to which nothing belongs left out.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counts(&self) -> io::Result<Vec<(FlowId, Counts)>> {
        let all = (0u32..).zip(&self.flows);
        let used = all.filter(|(_, flow)| match flow {
            FlowId::Registered(at) => !self.setup.flows[usize::from(*at)].matches.is_empty(),
            _ => true,
        });
        used.map(|(at, &flow)| Ok((flow, sum(&self.maps.counts.get(&at.to_ne_bytes())?))))
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

    /// What the decision on such a frame takes in the kernel: the average of `count` runs. They are counted.
    ///
    /// # Errors
    /// The kernel's.
    pub fn takes(&self, frame: &[u8], count: u32) -> io::Result<Duration> {
        let each = self.program.time(frame, count)?;
        Ok(Duration::from_nanos(each.into()))
    }

    /// Has `count` copies of a frame arrive as a driver brings them, and what is passed go its whole way: for measuring
    /// (Linux 5.18, an interface with a program in native mode).
    ///
    /// # Errors
    /// The kernel's.
    pub fn arrive(&self, frame: &[u8], count: u32, interface: &str) -> io::Result<()> {
        let number = interface_number(interface);
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

impl MapSet {
    fn new(layout: &Layout, room: usize) -> io::Result<Self> {
        let flows = layout.flows();
        Ok(Self {
            budgets: Map::new(NAME, MapKind::Array, 4, BUDGET_LEN, flows)?,
            counts: Map::new(NAME, MapKind::ArrayPerProcessor, 4, COUNTS_LEN, flows)?,
            ports: Map::new(NAME, MapKind::Array, 4, PORTS_LEN, 1)?,
            senders: Map::new(
                NAME,
                MapKind::Hash,
                KEY_LEN,
                4,
                (layout.senders.len() + room * PATTERNS_IN_ROOM).max(1),
            )?,
        })
    }

    fn numbers(&self) -> Maps {
        Maps {
            budgets: self.budgets.number(),
            counts: self.counts.number(),
            ports: self.ports.number(),
            senders: self.senders.number(),
        }
    }

    fn fill(&self, layout: &Layout) -> io::Result<()> {
        for (at, budget) in (0u32..).zip(layout.budgets(now())) {
            self.budgets.put(&at.to_ne_bytes(), &budget)?;
        }
        self.ports.put(&[0; 4], &layout.ports)?;
        for (key, flow) in &layout.senders {
            self.senders.put(key, &flow.to_ne_bytes())?;
        }
        Ok(())
    }

    /// From one layout to another that differs in the flow `at`: budget and counts first, then what leads to them.
    fn change(&self, from: &Layout, to: &Layout, (at, terms): (u16, &Terms)) -> io::Result<()> {
        let number = u32::from(at).to_ne_bytes();
        for key in from.senders.keys() {
            if !to.senders.contains_key(key) {
                self.senders.remove(key)?;
            }
        }
        self.budgets.put(&number, &budget(terms, now()))?;
        self.counts
            .put(&number, &vec![0; self.counts.value_len()])?;
        for (key, flow) in &to.senders {
            if from.senders.get(key) != Some(flow) {
                self.senders.put(key, &flow.to_ne_bytes())?;
            }
        }
        match from.ports == to.ports {
            true => Ok(()),
            false => self.ports.put(&[0; 4], &to.ports),
        }
    }
}

/// The setup with so many flows to which nothing belongs behind its own.
fn roomy(setup: &Setup, room: usize) -> Setup {
    let mut setup = setup.clone();
    let all = setup.flows.len() + room;
    setup.flows.resize(all, Flow::NONE);
    setup
}

/// Every flow's name, in the order of the maps.
fn flows(setup: &Setup) -> Vec<FlowId> {
    let registered = (0u16..).zip(&setup.flows);
    let registered = registered.map(|(at, _)| FlowId::Registered(at));
    registered.chain(FlowId::BUILT_IN).collect()
}

/// Whether another flow has a pattern of the flow `at`.
fn overlap(setup: &Setup, at: u16) -> Result<(), SetupError> {
    let own = setup.flows[usize::from(at)].matches.iter();
    let own: HashSet<_> = own.map(|it| it.canonical()).collect();
    for (other, flow) in (0u16..).zip(&setup.flows) {
        let both = flow.matches.iter().map(|it| it.canonical());
        let both = both.filter(|_| other != at).find(|it| own.contains(it));
        if let Some(both) = both {
            return Err(SetupError::Overlap {
                first: other,
                second: at,
                both,
            });
        }
    }
    Ok(())
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
