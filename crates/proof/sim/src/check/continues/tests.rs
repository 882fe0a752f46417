use super::*;

const MS: u64 = 1_000_000;
const COLD: Resumed = Resumed::ColdStart;

/// One application on two nodes; the times are in milliseconds.
struct Pair {
    checker: Continues,
    tally: Tally,
}

fn progress(epoch: u32, cycle: u64) -> Progress {
    let epoch = Epoch(epoch);
    Progress { epoch, cycle }
}

fn published(node: usize, epoch: u32, cycle: u64) -> Published {
    Published {
        node,
        cycle,
        epoch: Epoch(epoch),
        ..Published::default()
    }
}

impl Pair {
    fn new(behind: bool, enforced: bool) -> Self {
        let terms = Continuing {
            behind,
            hot_restart: 5_000 * MS,
            unsure: 20 * MS,
        };
        let tally = Tally::default();
        Self {
            checker: Continues::new(&[terms], 2, (500, enforced), &tally),
            tally,
        }
    }

    fn executes(&mut self, node: usize, epoch: u32, cycle: u64) {
        self.checker.published(&published(node, epoch, cycle));
    }

    fn receives(&mut self, node: usize, epoch: u32, cycle: u64) {
        let origin = published(1 - node, epoch, cycle);
        let delivered = Delivered {
            node,
            ..Delivered::default()
        };
        self.checker.delivered(&delivered, &origin, 0);
    }

    fn writes(&mut self, node: usize, epoch: u32, cycle: u64, at: u64) {
        let output = Output {
            application: 0,
            node,
            epoch: Epoch(epoch),
            cycle,
        };
        self.checker.accepted(&output, at * MS);
    }

    /// Node 0 has written cycle 10 in epoch 2 at 100 ms, and node 1 has received this cycle.
    fn running(behind: bool, received: u64) -> Self {
        let mut pair = Self::new(behind, false);
        pair.executes(0, 2, 10);
        pair.receives(1, 2, received);
        pair.writes(0, 2, 10, 100);
        pair
    }

    fn begins(&mut self, node: usize, with: Resumed, at: u64) -> Verdict {
        self.checker.begins(0, node, with, at * MS)
    }

    fn forgave(&self, exemption: Exemption) -> u64 {
        self.tally.forgiven().get(exemption)
    }
}

fn loaded(epoch: u32, cycle: u64) -> Resumed {
    let Progress { epoch, cycle } = progress(epoch, cycle);
    Resumed::Loaded { epoch, cycle }
}

#[test]
fn a_cold_start_is_found_while_anybody_alive_holds_the_newest_state() {
    let mut pair = Pair::running(false, 10);
    assert!(pair.begins(1, COLD, 120).is_err(), "it holds it itself");
    let mut pair = Pair::running(false, 9);
    assert!(pair.begins(1, COLD, 120).is_err(), "its partner does");
    let mut pair = Pair::running(false, 10);
    pair.checker.forgets(0);
    assert!(pair.begins(1, COLD, 4_000).is_err(), "as long as it bears");
    let mut pair = Pair::running(false, 9);
    pair.checker.forgets(1);
    assert!(pair.begins(0, COLD, 120).is_err(), "it throws its own away");
    assert_eq!(pair.tally.forgiven(), Default::default());
    assert_eq!(pair.checker.cold_starts().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_beginning_from_an_older_state_is_found_and_from_the_newest_is_not() {
    for (behind, from, sound) in [
        (false, 10, true),
        (false, 9, false),
        (true, 10, true),
        (true, 9, true),
        (true, 8, false),
    ] {
        let mut pair = Pair::running(behind, from);
        let verdict = pair.begins(1, loaded(2, from), 120);
        assert_eq!(verdict.is_ok(), sound, "{behind} {from}");
        let again = u64::from(behind && from == 9);
        assert_eq!(pair.forgave(Exemption::LastCycleAgain), again);
    }
    let mut pair = Pair::running(true, 9);
    pair.checker.handed_over(0);
    let verdict = pair.begins(1, loaded(2, 9), 120);
    assert!(verdict.is_err(), "after an ordered hand-over");
}

#[test]
fn states_without_outputs_are_nobodys_loss() {
    let mut pair = Pair::running(false, 10);
    pair.executes(0, 2, 11);
    assert!(pair.begins(1, loaded(2, 10), 120).is_ok());
    pair.executes(1, 3, 11);
    assert!(pair.begins(0, Resumed::Kept { cycle: 11 }, 150).is_ok());
}

#[test]
fn what_is_forgiven_is_counted() {
    let mut pair = Pair::new(false, false);
    assert!(pair.begins(0, COLD, 50).is_ok());
    assert_eq!(pair.forgave(Exemption::NothingWritten), 1);
    assert_eq!(pair.checker.cold_starts().collect::<Vec<_>>(), [0]);

    let mut pair = Pair::running(false, 9);
    pair.checker.forgets(0);
    assert!(pair.begins(1, COLD, 120).is_ok());
    assert_eq!(pair.forgave(Exemption::NobodyHolds), 1);

    let mut pair = Pair::running(false, 10);
    assert!(pair.begins(1, COLD, 5_070).is_err());
    assert!(pair.begins(1, COLD, 5_090).is_ok());
    assert_eq!(pair.forgave(Exemption::HotRestartUnsure), 1);
    assert!(pair.begins(1, COLD, 5_101).is_ok());
    assert_eq!(pair.forgave(Exemption::HotRestartOver), 1);
}

#[test]
fn a_state_from_before_a_beginning_is_never_the_newest() {
    let mut pair = Pair::running(false, 8);
    pair.checker.forgets(0);
    assert!(pair.begins(1, COLD, 120).is_ok());
    pair.executes(1, 3, 1);
    pair.writes(1, 3, 1, 130);
    pair.receives(0, 2, 10);
    assert!(pair.begins(0, loaded(2, 10), 140).is_err(), "node 1 lives");
    pair.checker.forgets(1);
    pair.receives(0, 3, 1);
    assert!(pair.begins(0, COLD, 150).is_err());
    pair.receives(0, 3, 1);
    assert!(pair.begins(0, loaded(3, 1), 150).is_ok());
}

#[test]
fn who_stops_running_an_application_does_not_hold_its_state() {
    let mut pair = Pair::running(false, 10);
    pair.checker.leaves(0, 0);
    pair.checker.leaves(0, 1);
    assert!(pair.begins(1, COLD, 120).is_ok());
}

#[test]
fn going_on_after_the_hot_restart_is_found_once_that_is_enforced() {
    for (enforced, at, sound) in [
        (false, 60_000, true),
        (true, 5_100, true),
        (true, 5_150, false),
    ] {
        let mut pair = Pair::running(false, 10);
        pair.checker.enforced = enforced;
        let verdict = pair.begins(1, loaded(2, 10), at);
        assert_eq!(verdict.is_ok(), sound, "{enforced} {at}");
    }
}

#[test]
fn going_on_without_a_device_is_counted_only_while_the_right_holds() {
    let goes_on = |asked: Option<u64>, acts: bool| {
        let mut pair = Pair::running(false, 10);
        pair.checker.enforced = true;
        if acts {
            let _ = pair.begins(0, Resumed::Kept { cycle: 10 }, 200);
        }
        if let Some(at) = asked {
            pair.checker.asks_in_vain(0, 0, at * MS);
        }
        let verdict = pair.begins(0, Resumed::Kept { cycle: 10 }, 9_000);
        (verdict.is_ok(), pair.forgave(Exemption::DeviceAway))
    };
    assert_eq!(goes_on(None, true), (false, 0));
    assert_eq!(goes_on(Some(3_000), true), (false, 0));
    assert_eq!(goes_on(Some(8_500), true), (true, 1));
    assert_eq!(goes_on(Some(8_500), false), (false, 0));
}
