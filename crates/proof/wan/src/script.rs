//! Outages by script: when which links carry nothing (`spec/wan.md`, U-40).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::ends::ends_of;
use crate::topology::Topology;

/// Schema of the file.
const SCHEMA: &str = "bumpless.wan-script/1";
/// Outages of a script at most.
const OUTAGES_MAX: usize = 10_000;
/// Longest time from the beginning, seconds: a week.
const END_MAX_S: f64 = 7.0 * 86_400.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    schema: String,
    outages: Vec<ToldOutage>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldOutage {
    at_s: f64,
    for_s: f64,
    what: Vec<String>,
}

/// When which links of a network carry nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    steps: Vec<Step>,
}

/// What changes at one moment of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// From the beginning on.
    pub at: Duration,
    /// Links that carry nothing from here on, by number.
    pub cut: Vec<usize>,
    /// Links that carry everything again from here on.
    pub heal: Vec<usize>,
}

impl Script {
    /// The script that `text` tells of, for this network. A link that several outages take at once is whole when the last
    /// of them has ended.
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
        if told.outages.is_empty() || told.outages.len() > OUTAGES_MAX {
            return Err(vec![format!(
                "it has {} outages; a script has 1 to {OUTAGES_MAX}",
                told.outages.len()
            )]);
        }
        let (mut wrong, mut changes) = (Vec::new(), Vec::new());
        for (number, outage) in (1..).zip(&told.outages) {
            if let Err(why) = outage.times() {
                wrong.push(format!("outage {number}: {why}"));
            }
            if outage.what.is_empty() {
                wrong.push(format!(
                    "outage {number}: it names no link and no node in `what`"
                ));
            }
            let mut links = Vec::new();
            for what in &outage.what {
                match ends_of(topology, what) {
                    Ok(found) => links.extend(found),
                    Err(why) => wrong.push(format!("outage {number}: {why}")),
                }
            }
            // A node and a link of it are one cut of that link.
            links.sort_unstable();
            links.dedup();
            if let Ok((from, to)) = outage.times() {
                changes.extend(links.iter().map(|&link| (from, to, link)));
            }
        }
        match wrong.is_empty() {
            true => Ok(Self {
                steps: steps(&changes),
            }),
            false => Err(wrong),
        }
    }

    /// What changes, in the order of time.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Leaves these links as they are.
    pub fn without(&mut self, links: &[usize]) {
        for step in &mut self.steps {
            step.cut.retain(|link| !links.contains(link));
            step.heal.retain(|link| !links.contains(link));
        }
        self.steps
            .retain(|step| !step.cut.is_empty() || !step.heal.is_empty());
    }
}

impl ToldOutage {
    /// Its beginning and its end.
    fn times(&self) -> Result<(Duration, Duration), String> {
        let fits = |seconds: f64| (0.0..=END_MAX_S).contains(&seconds);
        if !fits(self.at_s) {
            return Err(format!("at_s is {}; it is 0 to {END_MAX_S}", self.at_s));
        }
        if !fits(self.for_s) || !fits(self.at_s + self.for_s) || self.for_s < 0.001 {
            return Err(format!(
                "for_s is {}; it is at least 0.001, and ends at {END_MAX_S} s at the latest",
                self.for_s
            ));
        }
        let from = Duration::from_secs_f64(self.at_s);
        Ok((from, from + Duration::from_secs_f64(self.for_s)))
    }
}

/// The moments at which links change: those of all outages, each from, to and link.
fn steps(outages: &[(Duration, Duration, usize)]) -> Vec<Step> {
    // How many outages of a link begin, less those that end, at each moment.
    let mut moments: BTreeMap<Duration, BTreeMap<usize, i64>> = BTreeMap::new();
    for &(from, to, link) in outages {
        *moments.entry(from).or_default().entry(link).or_default() += 1;
        *moments.entry(to).or_default().entry(link).or_default() -= 1;
    }
    let mut held: BTreeMap<usize, i64> = BTreeMap::new();
    let mut steps = Vec::new();
    for (at, changes) in moments {
        let mut step = Step {
            at,
            cut: Vec::new(),
            heal: Vec::new(),
        };
        for (link, change) in changes {
            let count = held.entry(link).or_default();
            let was = *count > 0;
            *count += change;
            match (was, *count > 0) {
                (false, true) => step.cut.push(link),
                (true, false) => step.heal.push(link),
                _ => {}
            }
        }
        if !step.cut.is_empty() || !step.heal.is_empty() {
            steps.push(step);
        }
    }
    steps
}

#[cfg(test)]
mod tests;
