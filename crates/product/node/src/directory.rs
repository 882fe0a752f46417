//! What is in force on a node, for those who tell people of it.

use bumpless_base::Table;
use bumpless_config::Config;

use crate::admission::Admission;
use crate::build::MemberSlot;
use crate::field_identity::FieldBoards;
use crate::membership::ApplicationNumber;

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
            applications: (0..config.applications.len()).map(Some).collect(),
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

    /// Takes over what is in force, with who has which place; returns whether it is another configuration.
    pub fn follow(
        &mut self,
        (config, admission): (&Config, &Admission),
        slots: &[Option<MemberSlot>],
    ) -> bool {
        if self.config == *config && self.applications.len() == slots.len() {
            return false;
        }
        self.config = config.clone();
        self.fingerprint = config.fingerprint();
        self.admission = admission.clone();
        let position = |name: &str| {
            let mut applications = config.applications.iter();
            applications.position(|application| application.name == name)
        };
        self.applications = slots
            .iter()
            .map(|slot| slot.as_ref().and_then(|slot| position(&slot.name)))
            .collect();
        true
    }
}
