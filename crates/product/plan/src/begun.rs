//! States that are on their way on some of the networks that share packets when the others have nothing to send.
//!
//! The longest time of a spread state is found from the last instant before it at which one of its networks has nothing
//! to send that is as urgent. No spread packet waits then, but another network may be busy with states that only go
//! there, or that go on each network at its own pace. So one state more of each such channel may be sent in the window, as
//! [`Task::again`]; how much time is left until its deadline at least, while it is not done, follows from the load of
//! the network that carries it.

use bumpless_base::LinkSet;

use crate::demand::{Task, TaskSet};
use crate::input::{Channel, Distribution, Scenario};
use crate::resource::{Kind, Resource};

/// The set of `resource`, one of `all` while the networks `up` are in service, with what may have begun before.
pub(crate) fn with_begun(
    scenario: &Scenario,
    up: LinkSet,
    all: &[Resource],
    resource: &Resource,
) -> TaskSet {
    let Kind::Networks(links) = resource.kind else {
        return resource.set();
    };
    if links.len() == 1 {
        return resource.set();
    }
    let alone: Vec<(LinkSet, Vec<u64>)> = all
        .iter()
        .filter_map(|single| match single.kind {
            Kind::Networks(one) if one.len() == 1 && !one.intersection(links).is_empty() => {
                Some((one, times_left(single, scenario.channels.len())))
            }
            _ => None,
        })
        .collect();
    let tasks = resource.channels.iter().zip(&resource.tasks);
    let tasks: Vec<Task> = tasks
        .map(|(&at, task)| {
            let usable = scenario.channels[at].links.intersection(up);
            if is_everywhere(&scenario.channels[at], usable, links) {
                return *task;
            }
            let carries = alone
                .iter()
                .filter(|(one, _)| !one.intersection(usable).is_empty());
            let left = carries.map(|(_, left)| left[at]).min();
            Task {
                again: task.cost,
                left: left.unwrap_or(0),
                ..*task
            }
        })
        .collect();
    TaskSet::new(&tasks, &resource.interference)
}

/// Whether each of `links` takes the next packet of the channel when it is free.
fn is_everywhere(channel: &Channel, usable: LinkSet, links: LinkSet) -> bool {
    channel.distribution == Distribution::Spread && usable.intersection(links) == links
}

/// For each of `channels` channels, the least time until the deadline of a state while it is on its way on the network of
/// `single`; zero where it is not judged there.
fn times_left(single: &Resource, channels: usize) -> Vec<u64> {
    let set = single.set().with_all_time_left();
    let mut left = vec![0; channels];
    for (position, task) in set.tasks().filter(|(_, task)| task.blocking.is_some()) {
        left[single.channels[position]] = task.left;
    }
    left
}
