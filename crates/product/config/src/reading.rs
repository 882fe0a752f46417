//! Reading a TOML file so that everything that is wrong in it is told at once, with its line and what would be right: for
//! the product's other files.

pub use toml_edit::{Document, Item, Table, TableLike};

pub use crate::file::{document, entries, unknown_sections};
pub use crate::lines::Lines;
pub use crate::other_file::{Examples, many, once, sample};
pub use crate::other_shape::{Each, InterfaceName, PortRange, ServerAt};
pub use crate::reader::{Place, Reader, TableReader};
pub use crate::schema::Whole;
pub use crate::section::{FieldInfo, Presence, SectionInfo, Times};
pub use crate::shape::{Choice, Describe, Fault, Name, Shape, Text, fault, quote, show};
pub use crate::suggest::nearest;
