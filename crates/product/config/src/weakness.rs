//! What a configuration permits although it is weaker than it could be.

use std::fmt;

use serde::Serialize;

/// A permitted weakness. Status shows it as long as it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Weakness {
    /// Which one; stable for programs.
    pub code: WeaknessCode,
    /// The field or section from which it follows, such as `group "tank"`.
    pub subject: String,
    /// What can happen.
    pub hazard: String,
    /// What would remove it.
    pub remedy: String,
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.subject, self.hazard, self.remedy)
    }
}

/// Stable names of the weaknesses (kebab case in JSON).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeaknessCode {
    /// Messages carry no authentication.
    Unauthenticated,
    /// Wire version 1 cannot tell delayed packets of an earlier session.
    EarlierSessions,
    /// A group has no reference point at all.
    WithoutReference,
    /// A group relies on an address that only answers ICMP.
    PingReference,
    /// All reference points of a group are on one network.
    ReferencesOnOneNetwork,
    /// An application's state travels on one network only.
    SingleNetwork,
    /// A node starts although the plan refuses the configuration.
    RunAlthoughRefused,
    /// A network is not paced.
    Unpaced,
    /// A node has one address on several networks.
    SharedAddress,
    /// The process does not check the epoch of a write.
    OutputsNotFenced,
    /// The connection to a field device is open.
    FieldOpen,
    /// A password for a field device is sent over a connection that nothing protects.
    PasswordExposed,
    /// States are enciphered, and lie on disk in the clear.
    StatesOnDiskInClear,
    /// A program retains variables, and its application keeps nothing on disk.
    RetainedInMemoryAlone,
}
