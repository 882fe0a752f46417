//! What `bumpless apply` tells of a change: which applications it concerns, and what becomes of the states of their programs.

use bumpless_config::{Change, Config, Tuned};
use bumpless_node::succession::{Fate, fate};
use serde_json::{Value, json};

use crate::commands::program::compare::variables;

/// Names of the applications that go, go on with other settings, and come.
pub fn lists((old, new, change): (&Config, &Config, &Change)) -> [(&'static str, Vec<String>); 3] {
    let names = |config: &Config, positions: &[usize]| -> Vec<String> {
        let name = |&at: &usize| config.applications[at].name.clone();
        positions.iter().map(name).collect()
    };
    let tuned: Vec<usize> = change.tuned.iter().map(|tuned| tuned.to).collect();
    [
        ("removed", names(old, &change.removed)),
        ("tuned", names(new, &tuned)),
        ("added", names(new, &change.added)),
    ]
}

/// Whether those that go on with other settings do so together.
pub fn together((old, new, change): (&Config, &Config, &Change)) -> bool {
    bumpless_node::change::changes_together(old, new, change)
}

/// The same in lines.
pub fn lines(all: (&Config, &Config, &Change)) -> Vec<String> {
    let line = |(what, names): &(&str, Vec<String>)| {
        let how = match *what == "tuned" && together(all) {
            true => ", all together or none",
            false => "",
        };
        format!("{what}: {}{how}", names.join(", "))
    };
    let lists = lists(all);
    let told = lists.iter().filter(|(_, names)| !names.is_empty());
    told.map(line).collect()
}

/// What becomes of the states of the programs of which another version is to run, by application.
pub struct Fates(Vec<(String, Result<Fate, String>)>);

impl Fates {
    pub fn of(old: &Config, new: &Config, change: &Change) -> Self {
        let fate = |tuned: &Tuned| {
            let (before, next) = (&old.applications[tuned.from], &new.applications[tuned.to]);
            Some((next.name.clone(), fate(before, next)?))
        };
        Self(change.tuned.iter().filter_map(fate).collect())
    }

    pub fn refused(&self) -> impl Iterator<Item = String> {
        let refused = self.0.iter();
        refused.filter_map(|(name, fate)| {
            Some(format!("application '{name}': {}", fate.as_ref().err()?))
        })
    }

    pub fn lines(&self) -> Vec<String> {
        let told = self.0.iter();
        let told =
            told.filter_map(|(name, fate)| Some(format!("'{name}': {}", fate.as_ref().ok()?)));
        told.collect()
    }

    pub fn as_json(&self) -> Value {
        let of = |(name, fate): &(String, Result<Fate, String>)| {
            let (word, more) = match fate {
                Ok(Fate::Variables(succession)) => ("by_variables", variables(succession)),
                Ok(Fate::Fresh) => ("fresh", Value::Null),
                Ok(Fate::ByStart) => ("by_start", Value::Null),
                Err(why) => ("refused", json!({ "why": why })),
            };
            json!({"application": name, "state": word, "variables": more})
        };
        self.0.iter().map(of).collect()
    }
}
