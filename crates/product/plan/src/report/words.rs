//! The plan in sentences.

use bumpless_base::Duration;
use bumpless_config::{ENVELOPE_MAX, IN_FLIGHT_MAX};

use super::units;
use crate::advice::Advice;
use crate::evaluate::{Plan, Situation, Unmet};
use crate::input::Scenario;
use crate::pair::{PairPlan, Sender, Verdict};
use crate::resource::{Blocking, Kind};
use crate::variation::{Variation, deadline_with};

/// Channels of a window that are named.
const NAMED: usize = 3;

/// The answer in one line.
pub fn verdict(pair: &str, plan: &PairPlan) -> String {
    let channels: usize = plan
        .senders
        .iter()
        .map(|sender| sender.scenario.channels.len())
        .max()
        .unwrap_or(0);
    match plan.verdict {
        Verdict::Yes if channels == 0 => format!("{pair}: yes, there is nothing to send"),
        Verdict::Yes => format!("{pair}: yes, every state is in time{}", alone(plan)),
        Verdict::No if plan.senders.iter().all(|it| it.verdict() != Verdict::No) => {
            format!("{pair}: no, the distance does not permit what is configured")
        }
        Verdict::No => format!("{pair}: no, not every state can be in time and whole"),
        Verdict::CannotSay => format!("{pair}: cannot say whether every state is in time"),
    }
}

/// What else a yes says where there are several networks: that one of them may be missing, or to whom it may not.
fn alone(plan: &PairPlan) -> String {
    let missed = not_carried(plan);
    let several = |sender: &Sender| sender.scenario.links.len() > 1;
    if missed.is_empty() {
        let any = plan.senders.iter().any(several);
        return if any {
            ", also without any one network"
        } else {
            ""
        }
        .to_owned();
    }
    let each = missed
        .iter()
        .map(|(network, channel)| format!("{channel} without network {network}"));
    format!(
        " while its networks are in service; not carried: {}",
        each.collect::<Vec<_>>().join(", ")
    )
}

/// Each network without which a channel has none, and the channel, of several networks.
pub fn not_carried(plan: &PairPlan) -> Vec<(String, String)> {
    let mut missed = Vec::new();
    for sender in &plan.senders {
        let scenario = &sender.scenario;
        let Ok(of_sender) = &sender.plan else {
            continue;
        };
        if let ([only], true) = (&scenario.links[..], plan.networks > 1) {
            for channel in &scenario.channels {
                note(&mut missed, (&only.name, &channel.name));
            }
        }
        for situation in &of_sender.situations {
            let Some(without) = situation.without else {
                continue;
            };
            let channels = scenario.channels.iter().zip(&situation.channels);
            for (channel, _) in channels.filter(|(_, state)| state.links == 0) {
                note(&mut missed, (&scenario.links[without].name, &channel.name));
            }
        }
    }
    missed
}

fn note(missed: &mut Vec<(String, String)>, (network, channel): (&str, &str)) {
    let pair = (network.to_owned(), channel.to_owned());
    if !missed.contains(&pair) {
        missed.push(pair);
    }
}

/// Why the answer is not a yes: a sentence each, those that differ only in what is out of service once.
pub fn reasons(plan: &PairPlan) -> Vec<String> {
    let far = plan.distances.iter().flat_map(|it| &it.refusals);
    let far = far.map(|refusal| refusal.text.clone());
    plan.senders.iter().flat_map(of_sender).chain(far).collect()
}

/// Why the answer for these nodes is not a yes.
pub fn of_sender(sender: &Sender) -> Vec<String> {
    let plan = match &sender.plan {
        Ok(plan) => plan,
        Err(unknown) => return unknown.iter().map(unplanned).collect(),
    };
    let mut told: Vec<String> = Vec::new();
    let mut reasons = Vec::new();
    let worst = plan.unmet.iter().filter(|unmet| is_worst(plan, unmet));
    for unmet in worst {
        // What fails with all networks in service is not told again without one of them.
        let subject = subject(&sender.scenario, plan, unmet);
        if !told.contains(&subject) {
            reasons.push(sentence(&sender.scenario, plan, unmet));
            told.push(subject);
        }
    }
    reasons
}

/// Whether no other situation loses more states of the channel that `unmet` is about.
fn is_worst(plan: &Plan, unmet: &Unmet) -> bool {
    let Unmet::Lossy {
        situation, channel, ..
    } = *unmet
    else {
        return true;
    };
    let lost = |situation: &Situation| situation.channels[channel].loss_per_year;
    let here = lost(&plan.situations[situation]);
    plan.situations.iter().all(|other| lost(other) <= here)
}

/// What a condition is about, whatever is in service.
fn subject(scenario: &Scenario, plan: &Plan, unmet: &Unmet) -> String {
    match *unmet {
        Unmet::Late {
            situation,
            resource,
        } => place(
            scenario,
            plan.situations[situation].resources[resource].kind,
        ),
        Unmet::Lossy { channel, .. } => format!("channel {channel}"),
        Unmet::InFlight { link, .. } => format!("in flight {link}"),
    }
}

fn unplanned(fault: &crate::input::Fault) -> String {
    if fault.field == "bandwidth" {
        return format!(
            "{} states no bandwidth; set its bandwidth_mbit to what the slowest hop carries",
            fault.place
        );
    }
    fault.to_string()
}

/// In which situation a network is out of service, in words; empty for none.
pub fn without(scenario: &Scenario, situation: &Situation) -> String {
    situation.without.map_or(String::new(), |link| {
        format!(" (network {} out of service)", scenario.links[link].name)
    })
}

/// The name of what is shared.
pub fn resource(scenario: &Scenario, kind: Kind) -> String {
    match kind {
        Kind::Networks(links) => {
            let names: Vec<&str> = links
                .iter()
                .filter_map(|link| scenario.links.get(usize::from(link.0)))
                .map(|link| link.name.as_str())
                .collect();
            names.join("+")
        }
        Kind::Processor => "processor".into(),
    }
}

/// Which condition is not met, and where.
fn sentence(scenario: &Scenario, plan: &Plan, unmet: &Unmet) -> String {
    match *unmet {
        Unmet::Late {
            situation,
            resource,
        } => {
            let situation = &plan.situations[situation];
            late(scenario, plan, situation, resource) + &without(scenario, situation)
        }
        Unmet::Lossy {
            situation,
            channel,
            needed_budget,
        } => {
            let situation = &plan.situations[situation];
            let lost = situation.channels[channel].loss_per_year.unwrap_or(0.0);
            let channel = &scenario.channels[channel];
            let remedy = needed_budget.map_or_else(
                || "no budget is enough".into(),
                |budget| format!("it needs retransmissions = {budget}"),
            );
            let what = format!(
                "{}: {} states are lost in a year, {} are accepted; {remedy}",
                channel.name,
                units::losses(lost),
                units::losses(channel.accepted_loss_per_year.unwrap_or(0.0)),
            );
            what + &without(scenario, situation)
        }
        Unmet::InFlight { link, needed } => format!(
            "network {}: {needed} packets must be in flight to keep it busy, in_flight_max is {}{}",
            scenario.links[link].name,
            scenario.packets.in_flight_max,
            if needed > u64::from(IN_FLIGHT_MAX) {
                format!(" and may be {IN_FLIGHT_MAX} at most")
            } else {
                "; raise it".into()
            }
        ),
    }
}

fn place(scenario: &Scenario, kind: Kind) -> String {
    match kind {
        Kind::Processor => "the data plane's processor".to_owned(),
        kind => format!("network {}", resource(scenario, kind)),
    }
}

fn late(scenario: &Scenario, plan: &Plan, situation: &Situation, at: usize) -> String {
    let planned = &situation.resources[at];
    let place = place(scenario, planned.kind);
    let Some((refusal, loads)) = &planned.refusal else {
        return place;
    };
    let (Some(window), Some(demand)) = (refusal.window_ns, refusal.demand_ns) else {
        let share = units::percent(planned.utilisation);
        return format!(
            "{place}: {share} of it is asked for: {}",
            refusal.condition.words()
        );
    };
    let excess = demand.saturating_sub(window.into()) as f64;
    let mut parts: Vec<String> = loads
        .iter()
        .take(NAMED)
        .map(|load| {
            let name = &plan.channels[load.channel].name;
            let times = match load.states {
                1 => String::new(),
                states => format!("{states} times "),
            };
            format!("{times}{name} {}", units::time(load.nanos as f64))
        })
        .collect();
    if loads.len() > NAMED {
        let rest: u128 = loads.iter().skip(NAMED).map(|load| load.nanos).sum();
        let count = loads.len() - NAMED;
        parts.push(format!("{count} others {}", units::time(rest as f64)));
    }
    let states: u128 = loads.iter().map(|load| load.nanos).sum();
    let mut rest = demand.saturating_sub(states);
    if let Some((channel, blocking)) = &planned.strictest {
        rest = rest.saturating_sub(blocking.total().into());
        parts.push(waiting(&scenario.channels[*channel].name, blocking));
    }
    if rest > 0 {
        let messages = units::time(rest as f64);
        parts.push(format!("heartbeats and other messages {messages}"));
    }
    format!(
        "{place}: {} too much in the {} after all channels publish at once: {}",
        units::time(excess),
        units::time(window as f64),
        parts.join(", ")
    )
}

/// For what a state of the channel `name` waits.
fn waiting(name: &str, blocking: &Blocking) -> String {
    let parts = [
        ("until losses are known", blocking.discovery_ns),
        ("bursts and late threads", blocking.committed_ns),
        ("what others send again", blocking.retransmissions_ns),
        ("its answer", blocking.answer_ns),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(_, nanos)| *nanos > 0)
        .map(|(what, nanos)| format!("{what} {}", units::time(nanos as f64)))
        .collect();
    let total = units::time(blocking.total() as f64);
    format!("{name} waits {total} ({})", parts.join(", "))
}

/// The bytes of a state that its application gives it: without those of the executor.
pub fn configured(size: u32) -> u32 {
    size.saturating_sub(ENVELOPE_MAX)
}

/// A piece of advice for `sender` as something to write into the configuration.
pub fn advice(sender: &Sender, advice: &Advice) -> String {
    let scenario = &sender.scenario;
    let name = |channel: usize| &scenario.channels[channel].name;
    match advice.change {
        Variation::Period { channel, to_ns } => period(sender, channel, to_ns),
        Variation::Deadline { channel, to_ns } => {
            let given = &scenario.channels[channel];
            let deadline = Duration::from_nanos(to_ns);
            format!(
                "{}: deadline_ms = {} instead of {}{}",
                given.name,
                units::millis(to_ns),
                units::millis(given.deadline.as_nanos()),
                expiry(sender, channel, given.period, deadline)
            )
        }
        Variation::Size { channel, to_bytes } => format!(
            "{}: size = {} instead of {}",
            name(channel),
            configured(to_bytes),
            configured(scenario.channels[channel].size)
        ),
        Variation::Budget { channel, to } => format!(
            "{}: retransmissions = {to} instead of {}",
            name(channel),
            scenario.channels[channel].budget
        ),
        Variation::Distribution { channel, to } => {
            format!("{}: distribution = {:?}", name(channel), to.name())
        }
        Variation::Network { channel, link } => format!(
            "{}: on network {} too",
            name(channel),
            scenario.links[link].name
        ),
        Variation::Bandwidth { link, to } => format!(
            "network {}: bandwidth_mbit = {} instead of {}",
            scenario.links[link].name,
            to as f64 / 1e6,
            scenario.links[link].bandwidth as f64 / 1e6
        ),
        Variation::RoundTrip { link, to_ns } => format!(
            "network {}: round_trip_max_ms = {} instead of {}, if it answers so soon",
            scenario.links[link].name,
            units::millis(to_ns),
            units::millis(scenario.links[link].round_trip.1.as_nanos())
        ),
        Variation::RoundTrips { at_most_ns } => format!(
            "every network that has more: round_trip_max_ms = {}, if it answers so soon",
            units::millis(at_most_ns)
        ),
        Variation::Jitter { to_ns } => format!(
            "jitter_ms = {} instead of {}, if threads are never later",
            units::millis(to_ns),
            units::millis(scenario.machine.jitter_ns)
        ),
        Variation::Faster { to_percent } => {
            format!("all networks: {to_percent} % of their bandwidth_mbit")
        }
        Variation::InFlight { to } => format!(
            "in_flight_max = {to} instead of {}",
            scenario.packets.in_flight_max
        ),
    }
}

/// Another period, and what goes with it.
fn period(sender: &Sender, channel: usize, to_ns: u64) -> String {
    let given = &sender.scenario.channels[channel];
    let deadline = deadline_with(given, to_ns);
    let (to, from) = (units::millis(to_ns), units::millis(given.period.as_nanos()));
    let change = if given.deadline == given.period {
        format!("period_ms and deadline_ms = {to} instead of {from}")
    } else if deadline == given.deadline {
        format!("period_ms = {to} instead of {from}")
    } else {
        let [shorter, was] = [deadline, given.deadline].map(|span| units::millis(span.as_nanos()));
        format!("period_ms = {to} and deadline_ms = {shorter} instead of {from} and {was}")
    };
    let expiry = expiry(sender, channel, Duration::from_nanos(to_ns), deadline);
    format!("{}: {change}{expiry}", given.name)
}

/// The expiry that a longer period or deadline asks for, where a shorter one is stated.
fn expiry(sender: &Sender, channel: usize, period: Duration, deadline: Duration) -> String {
    let (given, stated) = (&sender.scenario.channels[channel], sender.expiry[channel]);
    let needed = sender.timing.least_expiry(period, deadline);
    // One that is left out is the shortest that is possible, and grows by itself.
    let left_out = sender.timing.least_expiry(given.period, given.deadline);
    if stated >= needed || stated == left_out {
        return String::new();
    }
    let [to, from] = [needed, stated].map(|span| units::millis(span.as_nanos()));
    format!(", with expiry_ms = {to} instead of {from}")
}
