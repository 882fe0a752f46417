//! What a section of the file is, for whoever reads one or tells of it.

use crate::shape::Describe;

/// What becomes of a field that the file leaves out.
#[derive(Clone, Copy)]
pub(crate) enum Presence {
    /// It is an error.
    Required,
    /// The value written here, as in the file, applies.
    Default(&'static str),
    /// What these words say applies.
    Computed(&'static str),
}

/// One field, for the sample and the reference.
pub(crate) struct FieldInfo {
    pub(crate) key: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) about: &'static str,
    pub(crate) presence: Presence,
    pub(crate) shape: &'static dyn Describe,
}

/// How often a section may stand in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    Many,
}

/// One section, for the parser's messages, the sample and the reference.
pub(crate) struct SectionInfo {
    pub(crate) path: &'static str,
    pub(crate) times: Times,
    pub(crate) about: &'static str,
    pub(crate) fields: &'static [FieldInfo],
    /// Tables inside this one that are sections of their own.
    pub(crate) parts: &'static [&'static str],
}

impl SectionInfo {
    /// The section's header line in the file.
    pub(crate) fn header(&self) -> String {
        match self.times {
            Times::Once => format!("[{}]", self.path),
            Times::Many => format!("[[{}]]", self.path),
        }
    }
}
