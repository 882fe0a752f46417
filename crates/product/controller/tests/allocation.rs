//! A cycle allocates nothing: the executor takes its memory when it is built.

use bumpless_base::{Counters, Duration, Epoch, Instant, NodeId};
use bumpless_controller::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness allocates beside it.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator; counting has no effect on it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has nowhere to count, and runs no cycle.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's, too.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Ticking(Instant);

impl Clock for Ticking {
    fn now(&self) -> Instant {
        self.0
    }
    fn wait_until(&mut self, until: Instant) -> Wake {
        self.0 = until;
        Wake::Reached
    }
}

struct Channel(Box<[u8]>);

impl Replication for Channel {
    fn publish(&mut self, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> u64 {
        fill(&mut self.0) as u64
    }
    fn own_usable_until(&self) -> Instant {
        Instant::ZERO
    }
    fn wait_settled(&mut self, _: u64, _: Instant) -> TransferOutcome {
        TransferOutcome::Safe
    }
    fn settled(&mut self, _: u64) -> TransferOutcome {
        TransferOutcome::Safe
    }
    fn read_latest(&mut self, _: Instant, _: &mut dyn FnMut(&[u8], StateInfo)) -> bool {
        false
    }
}

struct Always(Role);

impl OutputGate for Always {
    fn permit(&mut self) -> Option<Permit> {
        let (epoch, until) = (Epoch(1), Instant::FAR_FUTURE);
        Some(Permit { epoch, until })
    }
    fn role(&self) -> Role {
        self.0
    }
    fn backup_expected(&self) -> bool {
        true
    }
}

fn settings(commit: CommitMode) -> ExecutorSettings {
    ExecutorSettings {
        writer: NodeId(0),
        period: Duration::from_millis(10),
        expiry: Duration::from_millis(60),
        deadline: Duration::from_millis(8),
        field_timeout: Duration::from_millis(3),
        commit,
        on_failure: OnFailure::Hold,
        on_program_fault: OnProgramFault::Hold,
        begins_anew: true,
    }
}

fn applications() -> [Box<dyn Application>; 2] {
    let parameters = SyntheticParameters {
        size: 100_000,
        changed_share: 0.1,
    };
    [
        Box::new(QuadrupleTank::new(QuadrupleTankParameters::default())),
        Box::new(Synthetic::new(parameters)),
    ]
}

/// Allocations during 100 steps after the first ten.
fn allocations(application: Box<dyn Application>, commit: CommitMode, role: Role) -> u64 {
    let ports = Ports {
        field: Box::new(NoField),
        replication: Channel(vec![0; 110_000].into()),
        gate: Always(role),
        clock: Ticking(Instant::ZERO),
    };
    let mut cycles = 0;
    let observer = |_: &CycleReport, _: &Counters| cycles += 1;
    let mut executor = Executor::new(settings(commit), application, ports, observer);
    (0..10).for_each(|_| executor.step());
    let before = ALLOCATIONS.get();
    (0..100).for_each(|_| executor.step());
    let after = ALLOCATIONS.get();
    drop(executor);
    assert!(cycles >= 50);
    after - before
}

#[test]
fn a_cycle_allocates_nothing() {
    for role in [Role::Primary, Role::Backup] {
        for commit in [CommitMode::BeforeOutput, CommitMode::Async] {
            for application in applications() {
                assert_eq!(allocations(application, commit, role), 0);
            }
        }
    }
}
