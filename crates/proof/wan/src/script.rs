//! Outages and impairments by script: when which links carry nothing, or less (`spec/wan.md`, U-40).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::ends::ends_of;
use crate::impairment::{self, Impairment};
use crate::topology::Topology;

/// Schema of the file.
const SCHEMA: &str = "bumpless.wan-script/1";
/// Outages and impairments of a script at most.
const EVENTS_MAX: usize = 10_000;
/// Longest time from the beginning, seconds: a week.
const END_MAX_S: f64 = 7.0 * 86_400.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    schema: String,
    #[serde(default)]
    outages: Vec<ToldOutage>,
    #[serde(default)]
    impairments: Vec<ToldImpairment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldOutage {
    at_s: f64,
    for_s: f64,
    what: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldImpairment {
    at_s: f64,
    for_s: f64,
    what: Vec<String>,
    loss_percent: Option<f64>,
    rate_mbit: Option<u32>,
}

/// When which links of a network carry nothing, or less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    steps: Vec<Step>,
}

/// What changes at one moment of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// From the beginning on.
    pub at: Duration,
    /// Links that carry nothing from here on, by number.
    pub cut: Vec<usize>,
    /// Links that carry everything again from here on.
    pub heal: Vec<usize>,
    /// Links that are impaired from here on, and how. `None`: as before the script.
    pub impair: Vec<(usize, Option<Impairment>)>,
}

impl Step {
    fn is_empty(&self) -> bool {
        self.cut.is_empty() && self.heal.is_empty() && self.impair.is_empty()
    }
}

/// What one line of a script does to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Cut,
    Impair(Impairment),
}

/// From when to when a link has an effect.
type Change = (Duration, Duration, usize, Effect);

impl Script {
    /// The script that `text` tells of, for this network. A link that several outages take at once is whole when the last
    /// of them has ended; one that several impairments take at once has the highest of their losses and the lowest of their
    /// rates.
    ///
    /// # Errors
    /// Everything that keeps it from being one.
    pub fn from_json(text: &str, topology: &Topology) -> Result<Self, Vec<String>> {
        let told: Told = serde_json::from_str(text).map_err(|error| vec![error.to_string()])?;
        if told.schema != SCHEMA {
            return Err(vec![format!(
                "its schema is {:?}, and {SCHEMA} is what is understood here",
                told.schema
            )]);
        }
        let count = told.outages.len() + told.impairments.len();
        if !(1..=EVENTS_MAX).contains(&count) {
            return Err(vec![format!(
                "it has {count} outages and impairments; a script has 1 to {EVENTS_MAX}"
            )]);
        }
        let mut read = Read {
            topology,
            wrong: Vec::new(),
            changes: Vec::new(),
        };
        for (number, it) in (1..).zip(&told.outages) {
            let when = (it.at_s, it.for_s);
            let name = format!("outage {number}");
            read.add(&name, when, &it.what, Ok(Effect::Cut));
        }
        for (number, it) in (1..).zip(&told.impairments) {
            let when = (it.at_s, it.for_s);
            let name = format!("impairment {number}");
            read.add(&name, when, &it.what, it.effect());
        }
        match read.wrong.is_empty() {
            true => Ok(Self {
                steps: steps(&read.changes),
            }),
            false => Err(read.wrong),
        }
    }

    /// What changes, in the order of time.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Leaves these links cut all the while.
    pub fn without(&mut self, links: &[usize]) {
        for step in &mut self.steps {
            step.cut.retain(|link| !links.contains(link));
            step.heal.retain(|link| !links.contains(link));
        }
        self.steps.retain(|step| !step.is_empty());
    }
}

impl ToldImpairment {
    fn effect(&self) -> Result<Effect, String> {
        match impairment::told(self.loss_percent, self.rate_mbit)? {
            none if none.is_none() => Err("it has neither loss_percent nor rate_mbit".to_owned()),
            impairment => Ok(Effect::Impair(impairment)),
        }
    }
}

/// What has been read of a script.
struct Read<'a> {
    topology: &'a Topology,
    wrong: Vec<String>,
    changes: Vec<Change>,
}

impl Read<'_> {
    /// Adds what one line of it says, or everything that is wrong with that.
    fn add(
        &mut self,
        name: &str,
        when: (f64, f64),
        what: &[String],
        effect: Result<Effect, String>,
    ) {
        let mut wrong = Vec::new();
        let times = times(when).map_err(|why| wrong.push(why));
        let effect = effect.map_err(|why| wrong.push(why));
        if what.is_empty() {
            wrong.push("it names no link and no node in `what`".to_owned());
        }
        let mut links = Vec::new();
        for what in what {
            match ends_of(self.topology, what) {
                Ok(found) => links.extend(found),
                Err(why) => wrong.push(why),
            }
        }
        // A node and a link of it are one cut of that link.
        links.sort_unstable();
        links.dedup();
        if let (Ok((from, to)), Ok(effect)) = (times, effect) {
            let changes = links.iter().map(|&link| (from, to, link, effect));
            self.changes.extend(changes);
        }
        let wrong = wrong.into_iter().map(|why| format!("{name}: {why}"));
        self.wrong.extend(wrong);
    }
}

/// When something begins and ends that begins at `at_s` and lasts `for_s`.
fn times((at_s, for_s): (f64, f64)) -> Result<(Duration, Duration), String> {
    let fits = |seconds: f64| (0.0..=END_MAX_S).contains(&seconds);
    if !fits(at_s) {
        return Err(format!("at_s is {at_s}; it is 0 to {END_MAX_S}"));
    }
    if !fits(for_s) || !fits(at_s + for_s) || for_s < 0.001 {
        return Err(format!(
            "for_s is {for_s}; it is at least 0.001, and ends at {END_MAX_S} s at the latest"
        ));
    }
    let from = Duration::from_secs_f64(at_s);
    Ok((from, from + Duration::from_secs_f64(for_s)))
}

/// What a script has a link be at a moment.
#[derive(Clone, Debug, Default)]
struct Held {
    outages: usize,
    impairments: Vec<Impairment>,
}

impl Held {
    fn begin(&mut self, effect: Effect) {
        match effect {
            Effect::Cut => self.outages += 1,
            Effect::Impair(impairment) => self.impairments.push(impairment),
        }
    }

    fn end(&mut self, effect: Effect) {
        match effect {
            Effect::Cut => self.outages -= 1,
            Effect::Impair(ended) => {
                let mut all = self.impairments.iter();
                if let Some(place) = all.position(|it| *it == ended) {
                    self.impairments.swap_remove(place);
                }
            }
        }
    }

    fn impairment(&self) -> Option<Impairment> {
        self.impairments.iter().copied().reduce(Impairment::and)
    }
}

/// The moments at which links change.
fn steps(changes: &[Change]) -> Vec<Step> {
    /// What begins and what ends of a link at a moment.
    type Moment = BTreeMap<usize, [Vec<Effect>; 2]>;
    let mut moments: BTreeMap<Duration, Moment> = BTreeMap::new();
    for &(from, to, link, effect) in changes {
        for (which, at) in [from, to].into_iter().enumerate() {
            let of_link = moments.entry(at).or_default().entry(link).or_default();
            of_link[which].push(effect);
        }
    }
    let mut all: BTreeMap<usize, Held> = BTreeMap::new();
    let mut steps = Vec::new();
    for (at, moment) in moments {
        let mut step = Step {
            at,
            ..Step::default()
        };
        for (link, [begin, end]) in moment {
            let held = all.entry(link).or_default();
            let (was_cut, was) = (held.outages > 0, held.impairment());
            begin.into_iter().for_each(|effect| held.begin(effect));
            end.into_iter().for_each(|effect| held.end(effect));
            match (was_cut, held.outages > 0) {
                (false, true) => step.cut.push(link),
                (true, false) => step.heal.push(link),
                _ => {}
            }
            if was != held.impairment() {
                step.impair.push((link, held.impairment()));
            }
        }
        if !step.is_empty() {
            steps.push(step);
        }
    }
    steps
}

#[cfg(test)]
mod tests;
