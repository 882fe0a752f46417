//! A cycle allocates nothing while its states go to disk, whether the disk keeps up or not: an allocator counts what
//! the executor's thread asks for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bumpless_base::Role;
use bumpless_base::{Counters, Duration, Epoch, Instant, NodeId, Permit};
use bumpless_config::Config;
use bumpless_controller::state::{Progress, encode_envelope};
use bumpless_controller::{Clock, CycleReport, Executor, NoField, Ports, Wake};
use bumpless_node::build::{Parts, build_cores};
use bumpless_node::executor::{ChannelReplication, Environment, GroupOutputGate};
use bumpless_node::persist::way::{Outlet, way};
use bumpless_node::program::{build, executor_settings};
use bumpless_node::wiring::Wiring;
use bumpless_transfer::ChannelPlace;

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness allocates beside it.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    // A thread that is ending has nowhere to count, and runs no cycle.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is passed on unchanged to the system's allocator; counting has no effect on it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's, too.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note();
        // SAFETY: `pointer` came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PAIR: &str = r#"
[pair]
name = "kept"
[security]
packets = "open"
[[network]]
name = "A"
[[node]]
name = "left"
addresses = { A = "10.0.1.1:4700" }
state_dir = "left"
[[node]]
name = "right"
addresses = { A = "10.0.1.2:4700" }
state_dir = "right"
[[group]]
name = "pair"
nodes = ["left", "right"]
without_reference = true
[[application]]
name = "only"
group = "pair"
kind = "synthetic"
channel = 1
period_ms = 10
size = "100 kB"
persist = "file"
persist_every_ms = 20
"#;

#[derive(Clone)]
struct Time(Rc<Cell<Instant>>);

impl Environment for Time {
    fn now(&self) -> Instant {
        self.0.get()
    }
    fn wake_data_plane(&self) {}
}

impl Clock for Time {
    fn now(&self) -> Instant {
        self.0.get()
    }
    fn wait_until(&mut self, until: Instant) -> Wake {
        self.0.set(until);
        Wake::Reached
    }
}

/// What is counted while `steps` pass, each followed by what `disk` does with what waits.
fn counted(steps: usize, mut step: impl FnMut(), outlet: &Outlet, slow: bool) -> (u64, usize) {
    let mut written = 0;
    let mut held = None;
    let before = ALLOCATIONS.get();
    for round in 0..steps {
        step();
        if slow && round % 50 > 0 {
            continue;
        }
        if let Some(copy) = held.take() {
            outlet.give_back(copy);
        }
        held = outlet.take();
        written += usize::from(held.is_some());
    }
    (ALLOCATIONS.get() - before, written)
}

#[test]
fn a_cycle_that_keeps_its_state_allocates_nothing() {
    let config = Config::parse(PAIR, "kept.toml").expect("a sound configuration");
    let settings = &config.applications[0];
    let wiring = Wiring::new(&config, NodeId(0));
    for slow in [false, true] {
        let time = Time(Rc::new(Cell::new(Instant::from_nanos(1_000_000_000))));
        let (_cores, (mut publishers, mut subscribers)) =
            build_cores(&config, &wiring, 1, time.0.get()).expect("a sound setup");
        let shared = Parts::new(&config, &wiring).shared(ChannelPlace(0));
        shared.gate.set_role(Role::Primary, time.0.get());
        shared.gate.set_permit(Some(Permit {
            epoch: Epoch(2),
            until: Instant::FAR_FUTURE,
        }));
        shared.gate.set_simplex(true);
        let every = settings.persist.expect("it persists");
        let (keeper, outlet) = way(settings.state_max as usize, every, None, &Arc::default());
        let replication = ChannelReplication {
            publisher: publishers.remove(0),
            subscriber: subscribers.remove(0),
            expiry: settings.expiry,
            hot_restart: settings.hot_restart,
            keeper: Some(keeper),
            guard: None,
            mailbox: Arc::clone(&shared.mailbox),
            gate: Arc::clone(&shared.gate),
            environment: time.clone(),
        };
        let gate = GroupOutputGate {
            gate: shared.gate,
            mailbox: shared.mailbox,
            environment: time.clone(),
        };
        let ports = Ports {
            field: Box::new(NoField),
            replication,
            gate,
            clock: time,
        };
        let executor = executor_settings(settings, NodeId(0));
        let observer = |_: &CycleReport, _: &Counters| {};
        let mut executor = Executor::new(executor, build(settings).unwrap(), ports, observer);
        (0..10).for_each(|_| executor.step());
        let (allocations, written) = counted(400, || executor.step(), &outlet, slow);
        assert_eq!(allocations, 0, "slow: {slow}");
        // Every other step is a cycle, and every other cycle's state is kept.
        let expected = if slow { 7..=8 } else { 95..=105 };
        assert!(expected.contains(&written), "{written}");
    }
}

#[test]
fn a_backup_that_keeps_what_has_come_allocates_nothing() {
    let mut state = vec![0; 50_000];
    let progress = Progress {
        epoch: Epoch(1),
        cycle: 1,
    };
    encode_envelope(progress, &[], &mut state).expect("there is room");
    for slow in [false, true] {
        let (mut keeper, outlet) = way(60_000, Duration::ZERO, None, &Arc::default());
        let mut cycle = 0;
        let step = || {
            cycle += 1;
            let at = Instant::from_nanos(u64::from(cycle) * 1_000_000);
            keeper.keep_received(&state, cycle, at, at);
        };
        let (allocations, written) = counted(400, step, &outlet, slow);
        assert_eq!((allocations, written), (0, if slow { 8 } else { 400 }));
    }
}
