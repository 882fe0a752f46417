//! A plan for people and programs: sentences, tables, JSON, pictures.

mod distance;
mod json;
mod losses;
mod networks;
mod page;
pub mod paper;
mod schedule;
mod table;
mod tables;
mod timeline;
pub mod units;
pub mod words;

use bumpless_config::{ENVELOPE_MAX, IN_FLIGHT_MAX};
use serde_json::Value;

use crate::advice::{Advice, advise};
use crate::headroom::{Headroom, headroom, with_size};
use crate::pair::{PairPlan, Sender, Verdict};
use crate::variation::{Variation, deadline_with};

/// A drawing with its explanation.
struct Drawing {
    /// What is shown.
    caption: String,
    svg: String,
}

/// The shortest times that a configuration takes.
const SHORTEST_DEADLINE_NS: u64 = 100_000;
const SHORTEST_PERIOD_NS: u64 = 1_000_000;

/// A plan with all that is worth telling of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the pair.
    pub pair: String,
    /// The plan.
    pub plan: PairPlan,
    /// For each sender, what would make a no a yes, nearest first.
    pub advice: Vec<Vec<Advice>>,
    /// For each sender, how far a yes may go.
    pub headroom: Vec<Option<Headroom>>,
}

impl Report {
    /// Everything that is worth telling of `plan`. `told` is called now and then with how much of the search for
    /// margins is done, and of how much.
    pub fn new(pair: &str, plan: PairPlan, mut told: impl FnMut(usize, usize)) -> Self {
        let (mut advice, mut room) = (Vec::new(), Vec::new());
        let count = |sender: &Sender| match sender.verdict() {
            Verdict::Yes => sender.scenario.channels.len(),
            _ => 0,
        };
        let (mut done, all) = (0, plan.senders.iter().map(count).sum());
        for sender in &plan.senders {
            let planned = sender.plan.as_ref().ok();
            let mut possible = planned.map_or_else(Vec::new, |plan| advise(&sender.scenario, plan));
            possible.retain(|advice| can_be_configured(sender, advice));
            advice.push(possible);
            let one_more = || {
                done += 1;
                told(done, all);
            };
            let unlimited = planned.and_then(|plan| headroom(&sender.scenario, plan, one_more));
            room.push(unlimited.map(|room| configurable(sender, room)));
        }
        Self {
            pair: pair.into(),
            plan,
            advice,
            headroom: room,
        }
    }

    /// For a terminal; the first line is the answer.
    pub fn text(&self) -> String {
        tables::text(self)
    }

    /// `bumpless.plan/1` (spec/plan.md).
    pub fn json(&self) -> Value {
        json::render(self)
    }

    /// One page of HTML that needs nothing else.
    pub fn page(&self) -> String {
        page::render(self)
    }

    /// The drawings by file name, as on the page.
    pub fn drawings(&self) -> Vec<(String, String)> {
        page::drawings(self)
    }
}

/// `room` as far as a configuration can say it.
fn configurable(sender: &Sender, mut room: Headroom) -> Headroom {
    let limits = sender.scenario.channels.iter().zip(&sender.largest);
    for (at, (room, (channel, largest))) in room.channels.iter_mut().zip(limits).enumerate() {
        if room.size > *largest {
            room.size = (*largest).max(channel.size);
            room.size_budget = with_size(&sender.scenario, at, room.size).channels[at].budget;
        }
        room.deadline_ns = room.deadline_ns.max(SHORTEST_DEADLINE_NS);
        room.period_ns = room.period_ns.max(SHORTEST_PERIOD_NS);
        room.period_deadline_ns = deadline_with(channel, room.period_ns).as_nanos();
    }
    room
}

/// Whether it is a change that a configuration can say.
fn can_be_configured(sender: &Sender, advice: &Advice) -> bool {
    match advice.change {
        // States have the executor's bytes anyway.
        Variation::Size { to_bytes, .. } => to_bytes >= ENVELOPE_MAX,
        Variation::InFlight { to } => to <= IN_FLIGHT_MAX,
        // What was measured counts, whatever is stated.
        Variation::Jitter { .. } | Variation::RoundTrip { .. } | Variation::RoundTrips { .. } => {
            !sender.measured
        }
        _ => true,
    }
}
