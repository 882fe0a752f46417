//! Which sockets are registered, and whether another one may be.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bumpless_guard::{Flow, Match, Priority, Rate, Terms, Transport};
use bumpless_reception::{CAPACITY_MAX, PERIOD_MIN, in_words};
use bumpless_registration::message::{self, Refusal};
use serde_json::{Value, json};

use super::program::Program;

/// The longest period.
const PERIOD_MAX: Duration = Duration::from_secs(60);
/// What is left by what adds up to all of it in thousands of parts is no reason to refuse, percent.
const ROUNDING: f64 = 1e-9;

/// A socket that is registered, or is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Whose.
    pub program: Program,
    /// What belongs to it.
    pub pattern: Match,
    /// On which terms.
    pub terms: message::Terms,
}

impl Registered {
    /// What status calls its flow.
    pub fn name(&self) -> String {
        format!("{} of {}", in_words(&self.pattern), self.program)
    }

    /// The flow for the guard.
    pub fn flow(&self) -> Flow {
        let nanos = u64::try_from(self.terms.period.as_nanos()).unwrap_or(u64::MAX);
        Flow {
            matches: vec![self.pattern],
            terms: Terms {
                priority: Priority(self.terms.priority),
                rate: Some(Rate {
                    capacity: self.terms.capacity,
                    period: bumpless_base::Duration::from_nanos(nanos),
                }),
                queue: u16::MAX,
            },
        }
    }

    /// What status says of it beside the flow.
    pub fn json(&self) -> Value {
        json!({
            "name": self.program.name,
            "pid": self.program.pid,
            "user": self.program.user,
            "priority": self.terms.priority,
        })
    }
}

/// How much programs may register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// So many sockets.
    pub flows: usize,
    /// What share of a processor their packets may take together, percent.
    pub percent: f64,
    /// The highest priority.
    pub priority: u8,
    /// So many packets all capacities together; `None`: as many as `percent` permits.
    pub burst: Option<u32>,
    /// Interfaces, each of which has every budget for itself.
    pub interfaces: usize,
    /// What a packet costs of a processor's time, nanoseconds.
    pub packet_ns: u64,
}

impl Limits {
    /// What a flow's packets take of a processor at most, percent.
    pub fn percent_of(&self, terms: &message::Terms) -> f64 {
        let per_s = f64::from(terms.capacity) / terms.period.as_secs_f64();
        per_s * self.interfaces as f64 * self.packet_ns as f64 / 1e7
    }
}

/// What is registered, and what was refused.
#[derive(Clone, Debug)]
pub struct Registry {
    limits: Limits,
    /// Patterns of the guard's own flows, each with its name.
    of_guard: HashMap<Match, String>,
    places: Vec<Option<Registered>>,
    /// Places that are free, the longest first: the counts of one that has just ended are not another one's.
    free: VecDeque<u16>,
    refused: [u64; Refusal::ALL.len()],
    last_refusal: String,
}

impl Registry {
    /// A registry in which nothing is registered.
    pub fn new(limits: Limits, of_guard: HashMap<Match, String>) -> Self {
        Self {
            limits,
            of_guard,
            places: vec![None; limits.flows],
            free: (0u16..).take(limits.flows).collect(),
            refused: [0; Refusal::ALL.len()],
            last_refusal: String::new(),
        }
    }

    /// What is registered, with its place.
    pub fn all(&self) -> impl Iterator<Item = (u16, &Registered)> {
        let numbered = (0u16..).zip(&self.places);
        numbered.filter_map(|(at, it)| Some((at, it.as_ref()?)))
    }

    /// So many places it has, free ones among them.
    pub const fn places(&self) -> usize {
        self.places.len()
    }

    /// Has these limits, and these flows of the file, hold for what is registered, too; what is registered keeps its place.
    ///
    /// # Errors
    /// Everything that is registered against them, a sentence each; then nothing has changed.
    pub fn follow(
        &mut self,
        limits: Limits,
        of_guard: HashMap<Match, String>,
    ) -> Result<(), Vec<String>> {
        let wrong = self.against(&limits, &of_guard);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        self.impose(limits, of_guard);
        Ok(())
    }

    /// Has these limits, and these flows, hold for whoever asks; what is registered stays, also against them: a sentence for each that is.
    pub fn impose(&mut self, limits: Limits, of_guard: HashMap<Match, String>) -> Vec<String> {
        let wrong = self.against(&limits, &of_guard);
        (self.limits, self.of_guard) = (limits, of_guard);
        let last = self.all().map(|(at, _)| usize::from(at) + 1).max();
        let places = limits.flows.max(last.unwrap_or(0));
        self.places.resize(places, None);
        let numbered = (0u16..).zip(&self.places);
        self.free = numbered
            .filter_map(|(at, it)| it.is_none().then_some(at))
            .collect();
        wrong
    }

    fn against(&self, limits: &Limits, of_guard: &HashMap<Match, String>) -> Vec<String> {
        let (count, percent) = (self.all().count(), self.percent_with(limits));
        let mut wrong = Vec::new();
        if count > limits.flows {
            wrong.push(format!(
                "{count} sockets are registered, and `flows` in [registration] is {}: end programs first, or permit as many",
                limits.flows
            ));
        }
        if percent > limits.percent + ROUNDING {
            wrong.push(format!(
                "what is registered takes {percent:.1} % of a processor, and `processor_percent` in [registration] is {}: end programs \
                 first, or permit as much",
                limits.percent
            ));
        }
        if let Some(most) = limits.burst.filter(|&most| self.burst() > u64::from(most)) {
            wrong.push(format!(
                "capacities of {} packets are registered, and `burst_max` in [registration] is {most}: end programs first, or permit as many",
                self.burst()
            ));
        }
        for (_, it) in self.all() {
            if it.terms.priority > limits.priority {
                wrong.push(format!(
                    "{} has priority {}, and `priority_max` in [registration] is {}: end the program first, or permit it",
                    it.name(),
                    it.terms.priority,
                    limits.priority
                ));
            }
            if let Some(flow) = owner(of_guard, &it.pattern) {
                wrong.push(format!(
                    "the flow {flow:?} has {}, which {} has registered: end the program first, or leave the port out",
                    in_words(&it.pattern),
                    it.program
                ));
            }
        }
        wrong
    }

    /// The place for `wanted`, which is registered from now on.
    ///
    /// # Errors
    /// The first of what is wrong with it.
    pub fn admit(&mut self, wanted: Registered) -> Result<u16, (Refusal, String)> {
        self.judge(&wanted)?;
        let place = self.free.pop_front().ok_or_else(|| self.full())?;
        self.places[usize::from(place)] = Some(wanted);
        Ok(place)
    }

    /// Whoever was in this place is registered no more.
    pub fn remove(&mut self, place: u16) {
        let held = self.places.get_mut(usize::from(place));
        if held.is_some_and(|it| it.take().is_some()) {
            self.free.push_back(place);
        }
    }

    /// Counts a refusal.
    pub fn count(&mut self, refusal: Refusal, sentence: &str) {
        self.refused[refusal as usize - 1] += 1;
        sentence.clone_into(&mut self.last_refusal);
    }

    /// How many were refused, and the last one's sentence.
    pub fn refusals(&self) -> (u64, &str) {
        (self.refused.iter().sum(), &self.last_refusal)
    }

    /// What status says of it.
    pub fn json(&self) -> Value {
        let refused = Refusal::ALL.into_iter().zip(self.refused);
        let refused: serde_json::Map<String, Value> = refused
            .map(|(it, count)| (it.name().to_owned(), count.into()))
            .collect();
        json!({
            "flows": self.all().count(),
            "flows_max": self.limits.flows,
            "percent_of_processor": self.percent(),
            "percent_of_processor_max": self.limits.percent,
            "priority_max": self.limits.priority,
            "burst": self.burst(),
            "burst_max": self.limits.burst,
            "refused": refused,
        })
    }

    /// What all that is registered takes of a processor at most, percent.
    fn percent(&self) -> f64 {
        self.percent_with(&self.limits)
    }

    fn percent_with(&self, limits: &Limits) -> f64 {
        self.all().map(|(_, it)| limits.percent_of(&it.terms)).sum()
    }

    /// Packets of all capacities together.
    fn burst(&self) -> u64 {
        self.all().map(|(_, it)| u64::from(it.terms.capacity)).sum()
    }

    fn full(&self) -> (Refusal, String) {
        let sentence = format!(
            "{} sockets are registered, as many as may be: close one, or raise `flows` in [registration]",
            self.limits.flows
        );
        (Refusal::Full, sentence)
    }

    fn judge(&self, wanted: &Registered) -> Result<(), (Refusal, String)> {
        let terms = &wanted.terms;
        if let Some(wrong) = impossible(terms) {
            return Err((Refusal::Terms, wrong));
        }
        if terms.priority > self.limits.priority {
            let sentence = format!(
                "the priority {} is above {}, the highest that programs may have: lower it, or raise `priority_max` in [registration]",
                terms.priority, self.limits.priority
            );
            return Err((Refusal::Priority, sentence));
        }
        if let Some(other) = self.claimed_by(&wanted.pattern) {
            let sentence = format!(
                "{} belongs to {other}: give this socket another port, or end the other flow",
                in_words(&wanted.pattern)
            );
            return Err((Refusal::Taken, sentence));
        }
        // A place may be left of what was permitted before.
        if self.all().count() >= self.limits.flows {
            return Err(self.full());
        }
        if let Some(most) = self.limits.burst {
            let left = u64::from(most).saturating_sub(self.burst());
            if u64::from(terms.capacity) > left {
                let sentence = format!(
                    "the capacity is {} packets, and of the {most} that all registered sockets may have together {left} are left: lower it and \
                     shorten the period, or raise `burst_max` in [registration]",
                    terms.capacity
                );
                return Err((Refusal::Budget, sentence));
            }
        }
        let (asked, used) = (self.limits.percent_of(terms), self.percent());
        if asked + used > self.limits.percent + ROUNDING {
            let sentence = format!(
                "{} packets in {:?} on each of {} interfaces take {asked:.1} % of a processor at {} ns each, and of the {} % for registered \
                 sockets {:.1} % are left: lower the capacity, lengthen the period, or raise `processor_percent` in [registration]",
                terms.capacity,
                terms.period,
                self.limits.interfaces,
                self.limits.packet_ns,
                self.limits.percent,
                (self.limits.percent - used).max(0.0)
            );
            return Err((Refusal::Budget, sentence));
        }
        Ok(())
    }

    fn claimed_by(&self, pattern: &Match) -> Option<String> {
        let registered = self.all().find(|(_, it)| it.pattern == *pattern);
        let registered = registered.map(|(_, it)| it.program.to_string());
        registered.or_else(|| {
            let name = owner(&self.of_guard, pattern)?;
            Some(format!("the guard's flow {name:?}"))
        })
    }
}

/// The guard's own flow that has the port of a pattern, of whichever sender: what one sends to it would have the budget of a program
/// otherwise, and comes to whoever listens there.
fn owner<'a>(of_guard: &'a HashMap<Match, String>, pattern: &Match) -> Option<&'a String> {
    let port = port_of(pattern);
    let has_port = |it: &Match| port.is_some() && port_of(it) == port;
    let of_port = || of_guard.iter().filter(|(it, _)| has_port(it));
    let exact = of_guard.get(pattern);
    // Of several always the same.
    exact.or_else(|| of_port().map(|(_, name)| name).min())
}

/// The port here that a pattern is of.
const fn port_of(pattern: &Match) -> Option<(Transport, u16)> {
    match *pattern {
        Match::Port(transport, port) | Match::PortFrom(transport, port, _) => {
            Some((transport, port))
        }
        Match::Answers(..) | Match::EchoReplies(_) | Match::Resolution(_) => None,
    }
}

/// What is wrong with terms whoever asks.
fn impossible(terms: &message::Terms) -> Option<String> {
    if !(1..=CAPACITY_MAX).contains(&terms.capacity) {
        return Some(format!(
            "the capacity {} is not 1 to {CAPACITY_MAX} packets in a period",
            terms.capacity
        ));
    }
    let least = Duration::from_nanos(PERIOD_MIN);
    (!(least..=PERIOD_MAX).contains(&terms.period)).then(|| {
        format!(
            "the period of {:?} is not 1 ms to 60 s: a shorter one is not measured, a longer one bounds no flood",
            terms.period
        )
    })
}
