//! What a terminal shows, and the tables that the page shows too.

use std::fmt::Write;

use super::table::Table;
use super::{Report, distance, networks, schedule, units, words};
use crate::advice::Advice;
use crate::evaluate::Plan;
use crate::headroom::{ChannelHeadroom, Headroom};
use crate::input::{Channel, Distribution, Loss, Scenario};
use crate::pair::Sender;
use crate::variation::step;

/// Pieces of advice that are shown, and how many of one kind.
const ADVICE: usize = 8;
const OF_A_KIND: usize = 2;
/// Late channels that are named.
const LATE: usize = 8;

pub fn text(report: &Report) -> String {
    let mut text = words::verdict(&report.pair, &report.plan) + "\n";
    for (at, sender) in report.plan.senders.iter().enumerate() {
        let _ = writeln!(text, "\n{}", who(sender));
        for reason in words::of_sender(sender) {
            let _ = writeln!(text, "  {reason}");
        }
        let advice = &report.advice[at];
        if let Some(first) = advice_head(report, sender, advice.len()) {
            let _ = writeln!(text, "\n{first}");
        }
        for advice in shown(advice) {
            let _ = writeln!(text, "  {}", words::advice(sender, advice));
        }
        let Ok(plan) = &sender.plan else { continue };
        let room = report.headroom[at].as_ref();
        if let Some(room) = room {
            let _ = writeln!(text, "  {}", margin(room));
        }
        let _ = writeln!(text, "\n{}", channels(&sender.scenario, plan).text());
        let _ = write!(text, "{}", networks(&sender.scenario, plan).text());
        if let Some(room) = room {
            let _ = writeln!(text, "\n{}", limits_head(report, sender));
            let _ = write!(text, "{}", limits(&sender.scenario, room).text());
        }
    }
    text + &distance::text(&report.plan.distances)
}

/// The nearest of `advice`, not too many of one kind.
pub fn shown(advice: &[Advice]) -> impl Iterator<Item = &Advice> {
    let kind = |advice: &Advice| std::mem::discriminant(&advice.change);
    let few = advice.iter().enumerate().filter(move |(at, one)| {
        let before = advice[..*at].iter();
        before.filter(|other| kind(other) == kind(one)).count() < OF_A_KIND
    });
    few.map(|(_, advice)| advice).take(ADVICE)
}

/// Which nodes, and what is held there.
pub fn who(sender: &Sender) -> String {
    let (needed, most) = sender.memory;
    let several = if sender.nodes.len() > 1 {
        "each of "
    } else {
        ""
    };
    let mut text = format!(
        "As primary of all its groups, {several}{}: {} of {} for state buffers",
        sender.nodes.join(", "),
        units::bytes(needed as f64),
        units::bytes(most as f64)
    );
    if sender.partners > 1 {
        let _ = write!(
            text,
            "; receives from {} nodes, which one port carries only if their bandwidths together fit it",
            sender.partners
        );
    }
    text
}

/// What stands above the advice; `None` where there is nothing to advise.
pub fn advice_head(report: &Report, sender: &Sender, count: usize) -> Option<String> {
    let refused = sender.plan.as_ref().is_ok_and(|plan| !plan.admitted);
    // Nodes of a pool have different things to send, and a change must help all that are refused.
    let nodes = match report.plan.senders.len() {
        1 => String::new(),
        _ => format!(" for {}", sender.nodes.join(", ")),
    };
    refused.then(|| match count {
        0 => format!("No single change makes it a yes{nodes}{}", late(sender)),
        _ => format!("Any one of these makes it a yes{nodes}, the smallest first"),
    })
}

/// Which channels must change where one is not enough, as far as one start shows it.
fn late(sender: &Sender) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (_, resource) in networks::asked(sender) {
        for task in schedule::late(&resource) {
            let name = sender.scenario.channels[resource.channels[task]]
                .name
                .as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    match names.len() {
        0 => "; begin with the largest share above".into(),
        1..=LATE => format!("; late if all publish at once: {}", names.join(", ")),
        more => format!(
            "; late if all publish at once: {} and {} others",
            names[..LATE].join(", "),
            more - LATE
        ),
    }
}

/// What stands above the limits of each channel.
pub fn limits_head(report: &Report, sender: &Sender) -> String {
    let head = "How far each channel may go alone";
    match report.plan.senders.len() {
        1 => head.to_owned(),
        _ => format!("{head}, as far as {} can tell", sender.nodes.join(", ")),
    }
}

/// What is left of everything, in words.
pub fn margin(room: &Headroom) -> String {
    format!(
        "To spare: every state could take {} times as long, or all deadlines be {} shorter",
        units::factor(room.growth),
        units::time_down(room.spare_ns)
    )
}

/// A line for each channel: what it asks, and the worst of all situations.
pub fn channels(scenario: &Scenario, plan: &Plan) -> Table {
    let mut table = Table::new(&[
        "channel",
        "state",
        "packets",
        "period",
        "deadline",
        "budget",
        "sending",
        "longest",
        "left",
        "lost/year",
    ]);
    for (at, (channel, planned)) in scenario.channels.iter().zip(&plan.channels).enumerate() {
        let situations = || plan.situations.iter().map(|s| &s.channels[at]);
        let carried = || situations().filter(|s| s.links > 0);
        let late = carried().any(|s| s.response_ns.is_none());
        let longest = carried().filter_map(|s| s.response_ns).max();
        let longest = longest.filter(|_| !late);
        let sending = planned.on.iter().map(|on| on.budgeted_ns).max();
        let lost = situations().filter_map(|s| s.loss_per_year);
        let deadline = channel.deadline.as_nanos();
        let left = |response: u64| units::time_down(deadline.saturating_sub(response));
        table.row([
            channel.name.clone(),
            units::bytes(words::configured(channel.size).into()),
            planned.packets.to_string(),
            units::time(channel.period.as_nanos() as f64),
            units::time(deadline as f64),
            channel.budget.to_string(),
            units::time(sending.unwrap_or(0) as f64),
            longest.map_or("-".into(), units::time_up),
            longest.map_or("-".into(), left),
            units::losses(lost.fold(0.0, f64::max)),
        ]);
    }
    table
}

/// A line for each network, or what else is shared, in each situation.
pub fn networks(scenario: &Scenario, plan: &Plan) -> Table {
    let mut table = Table::new(&[
        "network",
        "without",
        "in use",
        "state alone",
        "states could take",
        "deadlines shorter by",
        "",
    ]);
    for situation in &plan.situations {
        // Packets of spread channels are judged where their networks are one.
        for resource in situation.resources.iter().filter(|r| r.judged > 0) {
            let without = situation.without.map(|link| &scenario.links[link].name);
            let left = |text: String| match resource.refusal {
                Some(_) => "-".into(),
                None => text,
            };
            table.row([
                words::resource(scenario, resource.kind),
                without.map_or("-".into(), Clone::clone),
                units::percent(resource.utilisation),
                units::percent(resource.payload_utilisation),
                left(format!("x {}", units::factor(resource.growth))),
                left(units::time_down(resource.spare_ns)),
                if resource.refusal.is_some() {
                    "too much".into()
                } else {
                    "in time".into()
                },
            ]);
        }
    }
    table
}

/// The largest state that an application may give, rounded down to what is printed.
fn largest(size: u32) -> String {
    let size = u64::from(words::configured(size));
    units::bytes((size - size % step(size)) as f64)
}

/// How far each channel may go while the others stay.
pub fn limits(scenario: &Scenario, room: &Headroom) -> Table {
    let mut table = Table::new(&[
        "channel",
        "largest state",
        "shortest deadline",
        "shortest period",
    ]);
    for (channel, room) in scenario.channels.iter().zip(&room.channels) {
        table.row([
            channel.name.clone(),
            if room.size_budget > channel.budget {
                format!("{} (budget {})", largest(room.size), room.size_budget)
            } else {
                largest(room.size)
            },
            as_written(room.deadline_ns),
            shortest_period(channel, room),
        ]);
    }
    table
}

/// With the deadline that goes with it, where that is not as it is.
fn shortest_period(channel: &Channel, room: &ChannelHeadroom) -> String {
    let period = as_written(room.period_ns);
    let deadline = room.period_deadline_ns;
    if deadline == channel.deadline.as_nanos() {
        return period;
    }
    format!("{period} (deadline {})", as_written(deadline))
}

/// A time as it is written into a configuration, with all its digits.
fn as_written(nanos: u64) -> String {
    format!("{} ms", units::millis(nanos))
}

/// What the plan was told of each network and channel.
pub fn assumptions(scenario: &Scenario) -> Table {
    let mut table = Table::new(&[
        "network",
        "bandwidth",
        "losses",
        "round trip up to",
        "burst",
        "other frame",
        "messages",
        "channels replicated",
        "spread",
    ]);
    for (at, link) in scenario.links.iter().enumerate() {
        let carried = |distribution| {
            let here = scenario.channels.iter().filter(|channel| {
                channel.distribution == distribution
                    && channel.links.iter().any(|id| usize::from(id.0) == at)
            });
            here.count().to_string()
        };
        let messages = link.background.iter().map(|message| {
            f64::from(message.bytes) * 8e9 / message.period.as_nanos().max(1) as f64
        });
        table.row([
            link.name.clone(),
            units::rate(link.bandwidth as f64),
            match link.loss {
                Loss::BitErrors(rate) => format!("{rate:e} of bits"),
                Loss::Frames(share) => format!("{share:e} of frames"),
            },
            units::time(link.longest_round_trip().as_nanos() as f64),
            units::bytes(link.burst() as f64),
            units::bytes(link.other_frame.into()),
            units::rate(messages.sum()),
            carried(Distribution::Replicate),
            carried(Distribution::Spread),
        ]);
    }
    table
}
