use super::*;
use proptest::prelude::*;
use std::vec::Vec;

/// What a node keeps over a restart: the file of its configuration, and the one beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Disk {
    current: u64,
    next: Option<u64>,
}

/// A process.
struct Process {
    change: Change,
    session: u64,
    /// The partner's session, the latest of its rounds, and what it said last to this process.
    adopted: u64,
    latest: u64,
    said: Option<Configurations>,
    due: bool,
}

#[derive(Clone, Copy, Debug)]
struct Statement {
    to: usize,
    session: u64,
    echo_session: u64,
    sent_at: u64,
    lease_echo: u64,
    configurations: Configurations,
}

struct World {
    disks: [Disk; 2],
    processes: [Option<Process>; 2],
    /// Everything that was ever said may arrive, again and again.
    network: Vec<Statement>,
    clock: u64,
    withdrawn: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Prepare(usize, u64),
    Withdraw(usize),
    Round(usize),
    /// Of the latest statements, this one arrives.
    Deliver(usize),
    Start(usize),
    Crash(usize),
    /// The due change is made last; the process may die right after.
    Make(usize, bool),
}

impl World {
    fn new() -> Self {
        let disk = Disk {
            current: 1,
            next: None,
        };
        let mut world = Self {
            disks: [disk; 2],
            processes: [None, None],
            network: Vec::new(),
            clock: 0,
            withdrawn: false,
        };
        world.start(0);
        world.start(1);
        world
    }

    fn start(&mut self, node: usize) {
        self.clock += 1;
        let disk = self.disks[node];
        let mut change = Change::new(disk.current, node == 0);
        if let Some(next) = disk.next {
            change.prepare(next, true, None).unwrap();
        }
        self.processes[node] = Some(Process {
            change,
            session: self.clock,
            adopted: 0,
            latest: 0,
            said: None,
            due: false,
        });
    }

    fn prepare(&mut self, node: usize, next: u64) {
        let Some(process) = &mut self.processes[node] else {
            return;
        };
        if process.change.prepare(next, false, process.said).is_ok() {
            self.disks[node].next = Some(next);
        }
    }

    fn withdraw(&mut self, node: usize) {
        let Some(process) = &mut self.processes[node] else {
            return;
        };
        if process.change.withdraw().is_ok() {
            self.disks[node].next = None;
            self.withdrawn = true;
        }
    }

    fn round(&mut self, node: usize) {
        self.clock += 1;
        let Some(process) = &mut self.processes[node] else {
            return;
        };
        process.change.announce(self.clock, process.said);
        self.network.push(Statement {
            to: 1 - node,
            session: process.session,
            echo_session: process.adopted,
            sent_at: self.clock,
            lease_echo: process.latest,
            configurations: process.change.configurations(),
        });
    }

    fn deliver(&mut self, back: usize) {
        let Some(at) = self.network.len().checked_sub(1 + back) else {
            return;
        };
        let statement = self.network[at];
        let Some(process) = &mut self.processes[statement.to] else {
            return;
        };
        // Only what was said in answer to this process lets a session be adopted.
        let fresh = statement.sent_at > process.session;
        if statement.session > process.adopted && fresh {
            process.adopted = statement.session;
            process.latest = 0;
            process.said = None;
        }
        if statement.session != process.adopted || statement.sent_at <= process.latest {
            return;
        }
        let said = statement.configurations;
        assert!(
            process.change.accepts(said),
            "node {} has {:?} and hears {said:?}",
            statement.to,
            process.change.configurations(),
        );
        process.latest = statement.sent_at;
        process.said = None;
        if statement.echo_session != process.session {
            return;
        }
        process.said = Some(said);
        match process.change.hear(said, statement.lease_echo) {
            Follows::Nothing => {}
            Follows::Due => process.due = true,
            Follows::Withdrawn => self.withdraw(statement.to),
        }
    }

    fn make(&mut self, node: usize, dies: bool) {
        let Some(process) = &mut self.processes[node] else {
            return;
        };
        if !core::mem::take(&mut process.due) {
            return;
        }
        let disk = &mut self.disks[node];
        disk.current = disk.next.take().expect("what is due is on the disk");
        if dies {
            self.processes[node] = None;
        } else {
            process.change.switched();
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Prepare(node, next) => self.prepare(node, next),
            Step::Withdraw(node) => self.withdraw(node),
            Step::Round(node) => self.round(node),
            Step::Deliver(back) => self.deliver(back),
            Step::Start(node) if self.processes[node].is_none() => self.start(node),
            Step::Start(_) => {}
            Step::Crash(node) => self.processes[node] = None,
            Step::Make(node, dies) => self.make(node, dies),
        }
        self.check();
    }

    /// Whatever is lost from here on, the two can end alike.
    fn check(&self) {
        let [a, b] = self.disks;
        let reaches =
            |from: Disk, to: Disk| from.current == to.current || from.next == Some(to.current);
        assert!(reaches(a, b) || reaches(b, a), "{a:?} {b:?}");
    }

    /// Both live, and every statement arrives.
    fn settle(&mut self) {
        for node in 0..2 {
            self.take(&Step::Start(node));
        }
        for _ in 0..10 {
            for node in 0..2 {
                self.round(node);
                self.take(&Step::Deliver(0));
                self.make(0, false);
                self.make(1, false);
            }
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let node = || 0..2usize;
    prop_oneof![
        2 => (node(), 1..4u64).prop_map(|(node, next)| Step::Prepare(node, next)),
        1 => node().prop_map(Step::Withdraw),
        6 => node().prop_map(Step::Round),
        8 => (0..6usize).prop_map(Step::Deliver),
        2 => node().prop_map(Step::Start),
        1 => node().prop_map(Step::Crash),
        3 => (node(), any::<bool>()).prop_map(|(node, dies)| Step::Make(node, dies)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn whatever_is_lost_or_dies_nodes_never_bar_each_other_and_end_alike(
        steps in prop::collection::vec(step(), 0..80)
    ) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
        }
        world.settle();
        let [a, b] = world.disks;
        prop_assert_eq!(a.current, b.current);
        // Two that prepared different changes both keep the old configuration.
        prop_assert!(a.next.is_none() || a.next != b.next, "{:?} {:?}", a, b);
    }
}

/// Prepares a change on both, in either order, and lets them talk.
fn both_prepare(order: [usize; 2]) -> World {
    let mut world = World::new();
    world.settle();
    for node in order {
        world.prepare(node, 2);
        world.round(0);
        world.deliver(0);
        world.round(1);
        world.deliver(0);
    }
    world
}

#[test]
fn a_change_that_only_one_node_has_is_not_made_and_can_be_withdrawn() {
    for node in 0..2 {
        let mut world = World::new();
        world.settle();
        world.prepare(node, 2);
        world.settle();
        assert_eq!(world.disks.map(|disk| disk.current), [1, 1]);
        world.withdraw(node);
        assert_eq!(world.disks[node].next, None);
    }
}

#[test]
fn a_change_that_both_have_is_made_by_both() {
    for order in [[0, 1], [1, 0]] {
        let mut world = both_prepare(order);
        world.settle();
        let changed = Disk {
            current: 2,
            next: None,
        };
        assert_eq!(world.disks, [changed; 2]);
        assert!(!world.withdrawn);
    }
}

#[test]
fn who_decides_can_withdraw_until_it_has_decided_and_the_other_follows() {
    let mut world = World::new();
    world.settle();
    world.prepare(0, 2);
    world.round(0);
    world.deliver(0);
    world.prepare(1, 2);
    world.round(1);
    let bound = world.processes[1].as_mut().unwrap().change.withdraw();
    assert_eq!(bound, Err(WithdrawRefused::PartnerDecides));
    world.withdraw(0);
    world.round(0);
    world.deliver(0);
    assert_eq!(world.disks.map(|disk| disk.next), [None, None]);
    // What was said before arrives late, and the same change is prepared again.
    world.prepare(0, 2);
    world.round(0);
    world.deliver(2);
    assert!(!world.processes[0].as_ref().unwrap().due);
}

#[test]
fn a_change_back_waits_until_the_partner_has_followed_the_first() {
    let mut world = both_prepare([1, 0]);
    world.round(1);
    world.deliver(0);
    world.make(0, false);
    assert_eq!(world.disks[0].current, 2);
    // It has heard that the partner is not there yet.
    let process = world.processes[0].as_mut().unwrap();
    let refused = process.change.prepare(1, false, process.said);
    assert_eq!(refused, Err(PrepareRefused::PartnerBehind));
    // A new process has not.
    world.take(&Step::Crash(0));
    world.start(0);
    world.prepare(0, 1);
    world.prepare(1, 1);
    world.settle();
    assert_eq!(world.disks.map(|disk| disk.current), [2, 2]);
}

#[test]
fn a_node_that_dies_while_it_changes_ends_changed_and_so_does_the_other() {
    for order in [[0, 1], [1, 0]] {
        let mut world = both_prepare(order);
        world.round(1);
        world.deliver(0);
        assert!(world.processes[0].as_ref().unwrap().due);
        world.make(0, true);
        world.take(&Step::Crash(1));
        world.settle();
        assert_eq!(world.disks.map(|disk| disk.current), [2, 2]);
    }
}
