//! A plan for people and programs: sentences, tables, JSON, pictures.

mod json;
mod losses;
mod page;
mod schedule;
mod table;
mod tables;
mod timeline;
pub mod units;
pub mod words;

use serde_json::Value;

use crate::advice::{Advice, advise};
use crate::headroom::{Headroom, headroom};
use crate::pair::PairPlan;

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
    /// Everything that is worth telling of `plan`. `told` is called before each of the senders with its
    /// position and their number.
    pub fn new(pair: &str, plan: PairPlan, mut told: impl FnMut(usize, usize)) -> Self {
        let (mut advice, mut room) = (Vec::new(), Vec::new());
        for (at, sender) in plan.senders.iter().enumerate() {
            told(at, plan.senders.len());
            let planned = sender.plan.as_ref().ok();
            advice.push(planned.map_or_else(Vec::new, |plan| advise(&sender.scenario, plan)));
            room.push(planned.and_then(|plan| headroom(&sender.scenario, plan)));
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
