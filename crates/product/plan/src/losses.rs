//! What a channel loses on the networks that are in service, beside what is accepted.

use bumpless_base::LinkSet;

use crate::input::{Channel, Distribution, MAX_BUDGET, Scenario};
use crate::reliability::{budget_for, lost_on_all, state_loss, states_per_year};

/// Probability that a packet of `channel` is lost wherever it is sent; `None` if it is sent nowhere.
pub(crate) fn of_packet(scenario: &Scenario, channel: &Channel, up: LinkSet) -> Option<f64> {
    let usable = channel.links.intersection(up);
    let each = scenario.members(usable).map(|link| {
        link.loss
            .of_frame(scenario.packets.frame_on(link, channel.size))
    });
    (!usable.is_empty()).then(|| match channel.distribution {
        Distribution::Replicate => lost_on_all(each),
        Distribution::Spread => each.fold(0.0, f64::max),
    })
}

/// Whether no channel of `scenario` loses more than it accepts, in time or not.
pub(crate) fn are_accepted(scenario: &Scenario) -> bool {
    scenario.services().all(|service| {
        let accepted = |channel: &Channel| is_accepted(scenario, channel, service.up);
        scenario.channels.iter().all(accepted)
    })
}

fn is_accepted(scenario: &Scenario, channel: &Channel, up: LinkSet) -> bool {
    let Some(accepted) = channel.accepted_loss_per_year else {
        return true;
    };
    let packets = scenario.packets.count(channel.size);
    of_packet(scenario, channel, up).is_none_or(|p| {
        state_loss(packets, channel.budget, p) * states_per_year(channel.period) <= accepted
    })
}

/// The smallest budget with which the channel at `at` loses no more than accepted, with all its networks and
/// without any one of them; the largest possible where none is enough; zero where nothing is accepted.
pub(crate) fn smallest_budget(scenario: &Scenario, at: usize) -> u32 {
    let channel = &scenario.channels[at];
    let Some(accepted) = channel.accepted_loss_per_year else {
        return 0;
    };
    let packets = scenario.packets.count(channel.size);
    let needed = scenario
        .services()
        .filter_map(|service| of_packet(scenario, channel, service.up))
        .map(|p| budget_for(packets, p, channel.period, accepted).unwrap_or(MAX_BUDGET));
    needed.max().unwrap_or(0)
}
