//! What is in force on a node, for those who tell people of it.

use std::iter;

use bumpless_base::Table;
use bumpless_config::Config;

use crate::admission::Admission;
use crate::build::MemberSlot;
use crate::field_identity::FieldBoards;
use crate::membership::ApplicationNumber;
use crate::wiring::ROOM;

/// The configuration in force, and which application has which number.
pub struct Directory {
    /// The configuration.
    pub config: Config,
    /// Its fingerprint. The data plane's snapshot may be of a moment before; who waits for the end of a
    /// change reads this together with `change`.
    pub fingerprint: u64,
    /// What the plan says of it.
    pub admission: Admission,
    /// The position of each application in `config`.
    pub applications: Table<ApplicationNumber, Option<usize>>,
    /// What a change of the configuration is about, in words.
    pub change: Option<&'static str>,
    /// Applications that do not go on as the configuration says, a sentence each.
    pub unmade: Vec<String>,
    /// What field I/O has to tell.
    pub field: FieldBoards,
}

impl Directory {
    /// Of a node that starts with `config`.
    pub fn new(config: &Config, admission: Admission) -> Self {
        Self {
            applications: (0..config.applications.len())
                .map(Some)
                .chain(iter::repeat_n(None, ROOM))
                .collect(),
            config: config.clone(),
            fingerprint: config.fingerprint(),
            admission,
            change: None,
            unmade: Vec::new(),
            field: FieldBoards::default(),
        }
    }

    /// The number of the application `name`.
    pub fn number_of(&self, name: &str) -> Option<ApplicationNumber> {
        let mut applications = self.config.applications.iter();
        let position = applications.position(|application| application.name == name)?;
        let mut numbers = self.applications.indices();
        numbers.find(|&number| self.applications[number] == Some(position))
    }

    /// What weakens a node with this configuration, a sentence each.
    pub fn weaknesses(&self) -> Vec<String> {
        let permitted = self.config.weaknesses.iter().map(ToString::to_string);
        let permitted = permitted.chain(self.admission.weakness());
        permitted.chain(self.unmade.iter().cloned()).collect()
    }

    /// Takes over what is in force, with who is there; returns whether it is another configuration.
    pub fn follow(
        &mut self,
        (config, admission): (&Config, &Admission),
        slots: &[Option<MemberSlot>],
    ) -> bool {
        if self.config == *config {
            return false;
        }
        self.config = config.clone();
        self.fingerprint = config.fingerprint();
        self.admission = admission.clone();
        let position = |name: &str| {
            let mut applications = config.applications.iter();
            applications.position(|application| application.name == name)
        };
        self.applications.fill(None);
        for slot in slots.iter().flatten() {
            self.applications[slot.number] = position(&slot.name);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Parts;
    use crate::change::Places;
    use crate::wiring::Wiring;

    /// Of a pool in which each node runs one of two applications, and one runs both.
    const POOL: &str = r#"
[pair]
name = "pool"
[[network]]
name = "A"
bandwidth_mbit = 1000
[[node]]
name = "left"
addresses = { A = "10.0.1.1:4700" }
[[node]]
name = "right"
addresses = { A = "10.0.1.2:4700" }
[[node]]
name = "spare"
addresses = { A = "10.0.1.3:4700" }
[[group]]
name = "lefts"
nodes = ["left", "spare"]
without_reference = true
[[group]]
name = "rights"
nodes = ["right", "spare"]
without_reference = true
[[application]]
name = "one"
group = "lefts"
kind = "synthetic"
channel = 1
period_ms = 10
size = "1 kB"
[[application]]
name = "other"
group = "rights"
kind = "synthetic"
channel = 2
period_ms = 10
size = "1 kB"
"#;

    #[test]
    fn a_node_of_a_pool_tells_of_an_application_what_the_application_has_told() {
        let config = Config::parse(POOL, "test").expect("a sound configuration");
        for name in ["left", "right", "spare"] {
            let node = config.node(name).expect("it is configured");
            let wiring = Wiring::new(&config, node);
            let places = Places::new(&config, &Parts::new(&config, &wiring));
            for before in [POOL, &POOL.replace("period_ms = 10", "period_ms = 20")] {
                let before = Config::parse(before, "before").expect("a sound configuration");
                let mut directory = Directory::new(&before, Admission::unplanned());
                directory.follow((&config, &Admission::unplanned()), places.slots());
                for place in wiring.applications.indices() {
                    let name = &config.applications[wiring.applications[place]].name;
                    assert_eq!(directory.number_of(name), Some(wiring.number(place)));
                }
            }
        }
    }
}
