//! What a daemon says of what happens, each thing once.

use std::collections::BTreeMap;

use bumpless_node::reception::programs::{Registered, Registry};
use bumpless_reception::InterfaceReport;
use serde_json::{Value, json};

use super::flows_in_words;
use super::state::Shared;
use crate::event;

/// What was told already, so that it is told once.
pub struct Told {
    json: bool,
    modes: BTreeMap<String, Option<&'static str>>,
    registered: BTreeMap<u16, Registered>,
    refusals: u64,
    /// Frames dropped, by interface and flow, and whether the last round had some.
    dropped: BTreeMap<(String, String), (u64, bool)>,
}

impl Told {
    /// Nothing was told; from now on as JSON, or in words.
    pub const fn new(json: bool) -> Self {
        Self {
            json,
            modes: BTreeMap::new(),
            registered: BTreeMap::new(),
            refusals: 0,
            dropped: BTreeMap::new(),
        }
    }

    /// Tells of the start.
    pub fn started(&mut self, shared: &Shared) {
        let state = shared.state();
        let Ok(reports) = state.reception.report() else {
            return;
        };
        for it in &reports {
            let mode = it.mode.map(|mode| mode.name());
            self.modes.insert(it.name.clone(), mode);
            let how = mode.unwrap_or("not");
            let words = match &it.weakness {
                None => format!("{}: guarded ({how})", it.name),
                Some(weakness) => format!("{}: guarded ({how}); weakness: {weakness}", it.name),
            };
            event::say(
                self.json,
                "guarded",
                json!({"interface": it.name, "mode": mode}),
                &words,
            );
        }
        let names = state.roster.names_of_own();
        let registration = match &shared.registration {
            None => "programs may not register sockets of theirs ([registration] names no group)"
                .to_owned(),
            Some(it) => format!(
                "programs of group {} may register {} sockets of theirs at {}",
                it.group,
                state.config.room(),
                it.socket.display()
            ),
        };
        let words = format!(
            "runs with {}; all budgets together take {:.1} % of a processor at most; {registration}",
            flows_in_words(names.len()),
            state.config.reserved_percent()
        );
        event::say(self.json, "started", json!({"flows": names}), &words);
    }

    /// Tells what has changed since the last time.
    pub fn round(&mut self, shared: &Shared) {
        let mut state = shared.state();
        state.reception.look_after();
        let Ok(reports) = state.reception.report() else {
            return;
        };
        if let Some(registry) = &state.roster.registry {
            self.registrations(registry);
        }
        self.left(&reports);
        let mut before = std::mem::take(&mut self.dropped);
        for it in &reports {
            self.mode(it);
            for (flow, counts) in &it.flows {
                let key = (it.name.clone(), state.roster.name(*flow).to_owned());
                let earlier = before.remove(&key).unwrap_or_default();
                self.drops(key, earlier, counts.capacity + counts.closed);
            }
        }
    }

    fn registrations(&mut self, registry: &Registry) {
        let all: BTreeMap<u16, Registered> =
            registry.all().map(|(at, it)| (at, it.clone())).collect();
        let before = std::mem::replace(&mut self.registered, all);
        for (place, it) in &before {
            if self.registered.get(place) != Some(it) {
                let words = format!("{}: registered no more", it.name());
                event::say(self.json, "unregistered", registration(it), &words);
            }
        }
        for (place, it) in &self.registered {
            if before.get(place) != Some(it) {
                let words = format!(
                    "{}: registered with {} packets in {:?}, priority {}",
                    it.name(),
                    it.terms.capacity,
                    it.terms.period,
                    it.terms.priority
                );
                event::say(self.json, "registered", registration(it), &words);
            }
        }
        let (refusals, last) = registry.refusals();
        if refusals > self.refusals {
            let words = format!("{} registrations refused: {last}", refusals - self.refusals);
            event::say(self.json, "refused", json!({"refused": refusals}), &words);
            self.refusals = refusals;
        }
    }

    /// Says which interfaces the file names no more.
    fn left(&mut self, reports: &[InterfaceReport]) {
        let json = self.json;
        self.modes.retain(|name, mode| {
            let is_there = reports.iter().any(|it| it.name == *name);
            if !is_there && mode.is_some() {
                let about = json!({"interface": name, "mode": null});
                let words = format!("{name}: guarded no more: the file does not name it");
                event::say(json, "unguarded", about, &words);
            }
            is_there
        });
    }

    fn mode(&mut self, it: &InterfaceReport) {
        let mode = it.mode.map(|mode| mode.name());
        let before = self.modes.insert(it.name.clone(), mode);
        if before == Some(mode) {
            return;
        }
        let again = if before.is_some() { " again" } else { "" };
        let about = json!({"interface": it.name, "mode": mode});
        match mode {
            Some(mode) => {
                let words = format!("{}: guarded{again} ({mode})", it.name);
                event::say(self.json, "guarded", about, &words);
            }
            None => {
                let why = it.weakness.as_deref().unwrap_or_default();
                let words = format!("{}: guarded no more: {why}", it.name);
                event::say(self.json, "unguarded", about, &words);
            }
        }
    }

    /// Says when frames of a flow begin to be dropped, and when that has ended.
    fn drops(
        &mut self,
        (interface, flow): (String, String),
        (before, was_dropping): (u64, bool),
        dropped: u64,
    ) {
        // Counts begin anew when the file is read again.
        let before = if dropped < before { 0 } else { before };
        let is_dropping = dropped > before;
        let about = json!({"interface": interface, "flow": flow, "dropped": dropped});
        match (was_dropping, is_dropping) {
            (false, true) => {
                let words = format!(
                    "{interface}: more than its budget of {flow}: {} dropped",
                    dropped - before
                );
                event::say(self.json, "dropping", about, &words);
            }
            (true, false) => {
                let words = format!(
                    "{interface}: {flow} within its budget again; {dropped} dropped since it is counted"
                );
                event::say(self.json, "not_dropping", about, &words);
            }
            _ => {}
        }
        self.dropped
            .insert((interface, flow), (dropped, is_dropping));
    }
}

fn registration(it: &Registered) -> Value {
    json!({
        "flow": it.name(),
        "program": it.json(),
        "capacity": it.terms.capacity,
        "period_ms": it.terms.period.as_secs_f64() * 1e3,
    })
}
