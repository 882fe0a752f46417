//! From one configuration to another while the pair runs: in which order channels may change, so that no
//! network is overloaded on the way (first paper, 7.4.2).
//!
//! A step changes one channel as a whole: the size of a state, say, cannot change before its period does if its
//! application changes both. What only lightens the load goes first and what only adds to it last; every
//! set on the way is then part of the old or of the new one. Between them come channels that lighten the load in
//! one respect and add to it in another: for those, all orders are tried.

use serde::Serialize;

use crate::evaluate::is_admitted;
use crate::input::{Channel, Distribution, Scenario};

/// Channels that become lighter and heavier at once, of which all orders are tried; of more, only some.
const ALL_ORDERS: usize = 12;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The channel.
    pub channel: String,
    /// What becomes of it.
    pub kind: StepKind,
}

/// What becomes of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// It ends, and its buffers are freed.
    Remove,
    /// It goes on with what asks less.
    Lighten,
    /// It goes on with what asks less in one respect and more in another.
    Alter,
    /// It goes on with what asks more.
    Burden,
    /// It begins.
    Add,
}

/// How to get from one configuration to the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "way", rename_all = "snake_case")]
pub enum Order {
    /// One after another; after each step all deadlines are kept. None: the channels are the same.
    Steps {
        /// The steps.
        steps: Vec<Step>,
    },
    /// Only at once: every order that was tried overloads something on the way.
    Atomic {
        /// What would change.
        steps: Vec<Step>,
        /// Whether every order was tried.
        exhaustive: bool,
    },
}

/// The order in which the channels of `old` become those of `new`. Both hold one scenario for each node, in the
/// same order and with the same networks; a channel is the same if its name is. On the way, the
/// networks are those of `new`. Both ends should be admitted: what is not cannot be reached in order.
pub fn order(old: &[Scenario], new: &[Scenario]) -> Order {
    let changes = changes(old, new);
    let steps = |kinds: &[StepKind]| -> Vec<usize> {
        let of = |at: &usize| kinds.contains(&changes[*at].kind);
        (0..changes.len()).filter(of).collect()
    };
    let first = [steps(&[StepKind::Remove]), steps(&[StepKind::Lighten])].concat();
    let mixed = steps(&[StepKind::Alter]);
    let last = [steps(&[StepKind::Burden]), steps(&[StepKind::Add])].concat();
    let walk = Walk {
        old,
        new,
        changes: &changes,
    };
    let found = walk.through(&first, &mixed, &last);
    let in_order = |order: &[usize]| order.iter().map(|&at| changes[at].clone()).collect();
    match found {
        Some(order) => Order::Steps {
            steps: in_order(&order),
        },
        None => Order::Atomic {
            steps: in_order(&[first, mixed.clone(), last].concat()),
            exhaustive: mixed.len() <= ALL_ORDERS,
        },
    }
}

fn find<'a>(scenarios: &'a [Scenario], name: &str) -> Option<&'a Channel> {
    scenarios
        .iter()
        .flat_map(|scenario| &scenario.channels)
        .find(|channel| channel.name == name)
}

/// What is different, each channel once, in the order of the new scenarios, removed ones first.
fn changes(old: &[Scenario], new: &[Scenario]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut note = |channel: &Channel, kind: Option<StepKind>| {
        let known = steps.iter().any(|step| step.channel == channel.name);
        if let Some(kind) = kind.filter(|_| !known) {
            steps.push(Step {
                channel: channel.name.clone(),
                kind,
            });
        }
    };
    for channel in old.iter().flat_map(|scenario| &scenario.channels) {
        note(
            channel,
            find(new, &channel.name)
                .is_none()
                .then_some(StepKind::Remove),
        );
    }
    for channel in new.iter().flat_map(|scenario| &scenario.channels) {
        let kind = match find(old, &channel.name) {
            None => Some(StepKind::Add),
            Some(before) => kind(before, channel),
        };
        note(channel, kind);
    }
    steps
}

/// What becomes of a channel that stays; `None` if nothing does.
fn kind(before: &Channel, after: &Channel) -> Option<StepKind> {
    match (asks_no_more(after, before), asks_no_more(before, after)) {
        (true, true) => None,
        (true, false) => Some(StepKind::Lighten),
        (false, true) => Some(StepKind::Burden),
        (false, false) => Some(StepKind::Alter),
    }
}

/// Whether, whatever else is there, `a` asks no more of any network than `b`, nor waits for less.
fn asks_no_more(a: &Channel, b: &Channel) -> bool {
    let same_way = a.distribution == b.distribution
        && match a.distribution {
            Distribution::Replicate => a.links.intersection(b.links) == a.links,
            // On fewer networks each of them has more to carry.
            Distribution::Spread => a.links == b.links,
        };
    same_way
        && a.size <= b.size
        && a.period >= b.period
        && a.deadline >= b.deadline
        && a.budget <= b.budget
}

struct Walk<'a> {
    old: &'a [Scenario],
    new: &'a [Scenario],
    changes: &'a [Step],
}

impl Walk<'_> {
    /// An order in which everything on the way is admitted.
    fn through(&self, first: &[usize], mixed: &[usize], last: &[usize]) -> Option<Vec<usize>> {
        let mut order = self.all_in_turn(Vec::new(), first)?;
        if mixed.len() <= ALL_ORDERS {
            order = self.any_order(order, mixed)?;
        } else {
            let mut left = mixed.to_vec();
            while !left.is_empty() {
                let next = (0..left.len()).find(|&at| self.is_admitted(&with(&order, left[at])))?;
                order.push(left.remove(next));
            }
        }
        self.all_in_turn(order, last)
    }

    fn all_in_turn(&self, mut order: Vec<usize>, steps: &[usize]) -> Option<Vec<usize>> {
        for &step in steps {
            order.push(step);
            self.is_admitted(&order).then_some(())?;
        }
        Some(order)
    }

    /// Any order of `mixed` after `before`: what is admitted depends on what has changed, not on when, so sets of
    /// changes are looked at instead of orders.
    fn any_order(&self, before: Vec<usize>, mixed: &[usize]) -> Option<Vec<usize>> {
        let whole = (1usize << mixed.len()) - 1;
        let mut came_by: Vec<Option<usize>> = vec![None; whole + 1];
        let mut reached = vec![false; whole + 1];
        reached[0] = true;
        for set in 0..=whole {
            if !reached[set] {
                continue;
            }
            for step in (0..mixed.len()).filter(|step| set & (1 << step) == 0) {
                let next = set | (1 << step);
                if !reached[next] {
                    let done = (0..mixed.len()).filter(|at| next & (1 << at) != 0);
                    let done: Vec<usize> = before
                        .iter()
                        .copied()
                        .chain(done.map(|at| mixed[at]))
                        .collect();
                    reached[next] = self.is_admitted(&done);
                    came_by[next] = Some(step);
                }
            }
        }
        let (mut set, mut backwards) = (whole, Vec::new());
        while set != 0 {
            let step = came_by[set].filter(|_| reached[set])?;
            backwards.push(mixed[step]);
            set &= !(1 << step);
        }
        backwards.reverse();
        Some([before, backwards].concat())
    }

    /// Whether every node is admitted once the changes `done` are made.
    fn is_admitted(&self, done: &[usize]) -> bool {
        self.between(done).iter().all(is_admitted)
    }

    /// Each node's scenario once the changes `done` are made.
    fn between(&self, done: &[usize]) -> Vec<Scenario> {
        let is_done = |name: &str| done.iter().any(|&at| self.changes[at].channel == name);
        let both = self.old.iter().zip(self.new);
        both.map(|(old, new)| {
            let stay = old
                .channels
                .iter()
                .filter(|channel| !is_done(&channel.name));
            let came = new.channels.iter().filter(|channel| is_done(&channel.name));
            Scenario {
                channels: stay.chain(came).cloned().collect(),
                ..new.clone()
            }
        })
        .collect()
    }
}

fn with(order: &[usize], step: usize) -> Vec<usize> {
    order.iter().copied().chain([step]).collect()
}

/// The scenarios on the way, one set for each step of `order`, for whoever wants to look at them.
pub fn on_the_way(old: &[Scenario], new: &[Scenario], steps: &[Step]) -> Vec<Vec<Scenario>> {
    let walk = Walk {
        old,
        new,
        changes: steps,
    };
    (0..=steps.len())
        .map(|count| walk.between(&(0..count).collect::<Vec<_>>()))
        .collect()
}
