//! What a section of the file is, for whoever reads one or tells of it.

use crate::shape::Describe;

/// What becomes of a field that the file leaves out.
#[derive(Clone, Copy)]
pub enum Presence {
    /// It is an error.
    Required,
    /// The value written here, as in the file, applies.
    Default(&'static str),
    /// What these words say applies.
    Computed(&'static str),
}

/// One field, for the sample and the reference.
pub struct FieldInfo {
    /// Its name in the file.
    pub key: &'static str,
    /// Its unit, or `none`.
    pub unit: &'static str,
    /// What it means, what it costs, what can go wrong with it.
    pub about: &'static str,
    /// What becomes of it where it is left out.
    pub presence: Presence,
    /// What it accepts.
    pub shape: &'static dyn Describe,
}

/// How often a section may stand in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Once, as `[name]`.
    Once,
    /// Any number of times, as `[[name]]`.
    Many,
}

/// One section, for the parser's messages, the sample and the reference.
pub struct SectionInfo {
    /// Its name; of one in another one, after that and a point.
    pub path: &'static str,
    /// How often it may stand there.
    pub times: Times,
    /// What it is for.
    pub about: &'static str,
    /// Its fields.
    pub fields: &'static [FieldInfo],
    /// Tables inside this one that are sections of their own.
    pub parts: &'static [&'static str],
}

impl SectionInfo {
    /// The section's header line in the file.
    pub fn header(&self) -> String {
        match self.times {
            Times::Once => format!("[{}]", self.path),
            Times::Many => format!("[[{}]]", self.path),
        }
    }
}
