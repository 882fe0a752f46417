//! The flows of a guard: its own, and behind them places for those that programs register.

use std::collections::HashMap;

use bumpless_guard::{Flow, FlowId, Match, Rate, Setup};
use bumpless_reception::{NamedFlow, Reception};
use bumpless_registration::message::Refusal;
use serde_json::Value;

use super::registry::{Registered, Registry};

/// The flows of a guard, with their names.
pub struct Roster {
    setup: Setup,
    names: Vec<String>,
    /// So many of the flows are the guard's own.
    own: usize,
    /// Sockets of programs; `None`: none may be registered.
    pub registry: Option<Registry>,
}

/// The patterns of flows, with the flows' names.
pub fn patterns(flows: &[NamedFlow]) -> HashMap<Match, String> {
    let named = flows.iter();
    let of = |flow: &NamedFlow| {
        let name = flow.name.clone();
        let patterns = flow.matches.clone().into_iter();
        patterns.map(move |it| (it.canonical(), name.clone()))
    };
    named.flat_map(of).collect()
}

impl Roster {
    /// A guard's own flows, of which `setup` is made, and what is registered besides.
    pub fn new(mut setup: Setup, flows: &[NamedFlow], registry: Option<Registry>) -> Self {
        let own = setup.flows.len();
        let mut names: Vec<_> = flows.iter().map(|flow| flow.name.clone()).collect();
        let room = registry.as_ref().map_or(0, Registry::places);
        setup.flows.resize(own + room, Flow::NONE);
        names.resize(own + room, String::new());
        let mut roster = Self {
            setup,
            names,
            own,
            registry: None,
        };
        for (place, it) in registry.iter().flat_map(Registry::all) {
            roster.put(place, it.flow(), it.name());
        }
        roster.registry = registry;
        roster
    }

    /// All of it, places that are free among it.
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// So many flows may come besides the guard's own.
    pub const fn room(&self) -> usize {
        self.names.len() - self.own
    }

    /// Names of the guard's own flows.
    pub fn names_of_own(&self) -> &[String] {
        &self.names[..self.own]
    }

    /// Names of all flows, empty for places that are free.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a flow.
    pub fn name(&self, flow: FlowId) -> &str {
        crate::reception::name(flow, &self.names)
    }

    /// Flows of programs, each with its number.
    pub fn registered(&self) -> Vec<(u16, Flow)> {
        let all = self.registry.iter().flat_map(Registry::all);
        all.map(|(place, it)| (self.number(place), it.flow()))
            .collect()
    }

    /// Rates of what programs have registered.
    pub fn rates(&self) -> Vec<Rate> {
        let all = self.registered().into_iter();
        all.filter_map(|(_, flow)| flow.terms.rate).collect()
    }

    /// Says of each flow that a program has registered which one that is.
    pub fn add_programs(&self, interfaces: &mut [Value]) {
        let registry = self.registry.iter();
        let registered: HashMap<String, Value> = registry
            .flat_map(Registry::all)
            .map(|(_, it)| (it.name(), it.json()))
            .collect();
        let all = interfaces.iter_mut();
        for flow in all.flat_map(|it| it["flows"].as_array_mut().into_iter().flatten()) {
            let program = flow["name"].as_str().and_then(|name| registered.get(name));
            flow["program"] = program.cloned().unwrap_or_default();
        }
    }

    /// Registers a program's socket and has `reception` receive it: its place.
    ///
    /// # Errors
    /// What is wrong with it, or the kernel's; then nothing has changed.
    pub fn admit(
        &mut self,
        reception: &mut Reception,
        wanted: Registered,
    ) -> Result<u16, (Refusal, String)> {
        let (flow, name) = (wanted.flow(), wanted.name());
        let Some(registry) = &mut self.registry else {
            let sentence = "programs may not register with this guard".to_owned();
            return Err((Refusal::Full, sentence));
        };
        let place = registry.admit(wanted)?;
        if let Err(error) = reception.set_flow(self.number(place), &flow) {
            self.registry.iter_mut().for_each(|it| it.remove(place));
            let sentence = format!("the guard cannot receive it: {error}");
            return Err((Refusal::Kernel, sentence));
        }
        self.put(place, flow, name);
        Ok(place)
    }

    /// Takes back the flow in this place.
    pub fn remove(&mut self, reception: &mut Reception, place: u16) {
        // A place that the kernel does not give back now has its flow replaced by the next one.
        if reception.set_flow(self.number(place), &Flow::NONE).is_ok() {
            self.put(place, Flow::NONE, String::new());
        }
        self.registry.iter_mut().for_each(|it| it.remove(place));
    }

    /// Counts a refusal.
    pub fn refused(&mut self, refusal: Refusal, sentence: &str) {
        self.registry
            .iter_mut()
            .for_each(|it| it.count(refusal, sentence));
    }

    /// The guard's number of the flow in this place.
    fn number(&self, place: u16) -> u16 {
        u16::try_from(self.own + usize::from(place)).unwrap_or(u16::MAX)
    }

    fn put(&mut self, place: u16, flow: Flow, name: String) {
        let at = self.own + usize::from(place);
        if let (Some(held), Some(named)) = (self.setup.flows.get_mut(at), self.names.get_mut(at)) {
            (*held, *named) = (flow, name);
        }
    }
}
