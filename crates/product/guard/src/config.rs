//! The file of a host: which interfaces are guarded, which flows have which budgets.

mod check;
mod schema;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use bumpless_config::reading::Reader;
use bumpless_config::{Problem, Registration, read_configuration};
use bumpless_guard::{Rate, Setup};
use bumpless_plan::reception::cost::{Budgets, Costs, Load, Registered};
use bumpless_reception::{NamedFlow, Rest, rates, setup};

pub use schema::sample;

/// What a host's file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The host itself.
    pub host: Host,
    /// Budgets of what belongs to no flow.
    pub rest: Rest,
    /// The flows.
    pub flows: Vec<NamedFlow>,
    /// What programs may register; `None`: nothing.
    pub registration: Option<Registration>,
}

/// The host itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Names of the interfaces that are guarded.
    pub interfaces: Vec<String>,
    /// Path of the socket for status; `None`: the usual one.
    pub socket: Option<PathBuf>,
    /// What share of a processor all budgets may take together, percent.
    pub processor_percent: u64,
    /// What a packet that is let in costs of a processor's time, nanoseconds.
    pub packet_ns: u64,
    /// What a packet that is dropped at the driver costs, nanoseconds.
    pub dropped_ns: u64,
    /// Packets that wait in an interface's ring at most.
    pub ring: u64,
}

impl Config {
    /// Reads and checks `text`, which messages call `name`.
    ///
    /// # Errors
    /// Everything that is wrong, each with its line and what would be right.
    pub fn parse(text: &str, name: &str) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader::new(name, text);
        let file = schema::read(&mut reader, text);
        let config = file.and_then(|file| check::resolve(&mut reader, &file));
        config.ok_or_else(|| reader.into_problems())
    }

    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// As [`Config::parse`]; also if there is no such file that can be read.
    pub fn load(path: &Path) -> Result<Self, Vec<Problem>> {
        Self::parse(&read_configuration(path)?, &path.display().to_string())
    }

    /// What is asked of the guard.
    pub fn setup(&self) -> Setup {
        setup(&self.flows, &self.rest)
    }

    /// With what reception is reckoned; what is set aside for programs that register is no part of the reserve.
    pub fn costs(&self) -> Costs {
        let of_programs = self.registered_percent();
        Costs {
            packet_ns: self.host.packet_ns,
            dropped_ns: self.host.dropped_ns,
            reserve_percent: self.host.processor_percent.saturating_sub(of_programs),
            ring: self.host.ring,
        }
    }

    /// What the file's budgets cost on all interfaces together.
    pub fn cost(&self) -> Load {
        self.cost_with(&[])
    }

    /// The same with what programs have registered, and the share that is set aside for it.
    pub fn cost_with(&self, registered: &[Rate]) -> Load {
        let (mut from_anywhere, from_known) = rates(&self.flows);
        from_anywhere.extend(registered);
        let budgets = Budgets {
            interfaces: self.host.interfaces.len(),
            from_known: &from_known,
            from_anywhere: &from_anywhere,
            rest: &self.rest.rates(),
            // What is registered is known, and what may be is not beside it.
            registered: match registered.is_empty() {
                true => self.registered(),
                false => Registered::default(),
            },
        };
        let mut costs = self.costs();
        if !registered.is_empty() {
            costs.reserve_percent += self.registered_percent();
        }
        Load::new(&costs, &budgets)
    }

    /// What programs may register at most.
    fn registered(&self) -> Registered {
        let burst = self.registration.as_ref().and_then(|it| it.burst_max);
        Registered {
            burst: burst.map_or(0, u64::from),
            percent: self.registered_percent(),
        }
    }

    /// The share of a processor that programs may register, percent.
    pub fn registered_percent(&self) -> u64 {
        self.registration
            .as_ref()
            .map_or(0, |it| it.processor_percent)
    }

    /// So many flows may come besides those of the file.
    pub fn room(&self) -> usize {
        self.registration.as_ref().map_or(0, |it| it.flows)
    }

    /// The share of a processor that all budgets take, those that programs may register among them, percent.
    pub fn reserved_percent(&self) -> f64 {
        self.cost().budgets_percent() + self.registered_percent() as f64
    }
}
