//! Every field of the file, documented once.
//!
//! A section is a Rust struct whose fields carry, beside their documentation, the key in the file,
//! the unit, the accepted values and the default. The `section!` macro makes from it the parser
//! ([`TableReader`] calls) and a [`SectionInfo`], from which the sample file and
//! `spec/configuration.md` are written. Each field's text ends with its cost and its hazard.

mod addresses;
mod controllers;
mod numbers;
mod pair;
mod programs;
mod security;

pub(crate) use addresses::{Address, DeviceAt, unusable};
pub(crate) use controllers::{Application, FieldIo, Group, SetPoint};
pub(crate) use controllers::{FaultWord, FieldSecurityWord, KindWord, PersistWord};
pub use numbers::Whole;
pub(crate) use pair::{
    ChangeSettings, LEASE_MIN_MS, Network, Node, Pair, PlanSettings, Realtime, Reception,
    Reference, ReferenceWord, Registration, Timing, Transfer,
};
pub(crate) use programs::{Device, DeviceKindWord, Input, InputAreaWord, Output, OutputAreaWord};
pub(crate) use security::{KeyExchangeWord, PacketsWord, Security, StateSecurity};

use crate::reader::TableReader;
use crate::section::SectionInfo;

/// A section that can be read from a table.
pub(crate) trait Section: Sized {
    const INFO: &'static SectionInfo;
    fn read(table: TableReader<'_>) -> Self;
}

/// All sections in the order of the sample file.
pub(crate) const SECTIONS: [&SectionInfo; 20] = [
    Pair::INFO,
    Timing::INFO,
    Transfer::INFO,
    Security::INFO,
    Realtime::INFO,
    Reception::INFO,
    Registration::INFO,
    PlanSettings::INFO,
    ChangeSettings::INFO,
    Network::INFO,
    Node::INFO,
    Reference::INFO,
    Group::INFO,
    Application::INFO,
    SetPoint::INFO,
    FieldIo::INFO,
    Device::INFO,
    Input::INFO,
    Output::INFO,
    StateSecurity::INFO,
];

/// Declares a section. A field reads
/// `name: Type = "key", "unit", shape, presence;` where presence is `required`,
/// `default("as in the file")` or `computed("words")`. In the struct every field is an `Option`,
/// `None` where the file's value is wrong or missing against the rule (already reported), so that
/// further checks go on with what is known; a computed one is `Some(None)` where it is left out.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident = $path:literal, $times:ident, [$($part:literal),*] {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty = $key:literal, $unit:literal, $shape:expr,
                    $presence:ident $(($default:literal))?;
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            /// Where the table stands.
            #[allow(dead_code, reason = "not every section is checked further")]
            pub(crate) place: crate::reader::Place,
            $(
                $(#[doc = $doc])+
                #[doc = concat!("\n\nKey `", $key, "`, unit: ", $unit, ".")]
                pub(crate) $field: crate::schema::section!(@type $presence, $type),
            )*
        }

        impl crate::schema::Section for $name {
            const INFO: &'static crate::section::SectionInfo = &crate::section::SectionInfo {
                path: $path,
                times: crate::section::Times::$times,
                about: concat!($($about, "\n"),+),
                fields: &[$(crate::section::FieldInfo {
                    key: $key,
                    unit: $unit,
                    about: concat!($($doc, "\n"),+),
                    presence: crate::schema::section!(@presence $presence $($default)?),
                    shape: &$shape,
                }),*],
                parts: &[$($part),*],
            };
            fn read(mut table: crate::reader::TableReader<'_>) -> Self {
                $(
                    let $field =
                        crate::schema::section!(@read $presence, table, $key, $shape $(, $default)?);
                )*
                let place = table.finish(Self::INFO, &crate::schema::SECTIONS);
                Self { place, $($field),* }
            }
        }
    };
    (@type computed, $type:ty) => { Option<Option<$type>> };
    (@type $other:ident, $type:ty) => { Option<$type> };
    (@presence required) => { crate::section::Presence::Required };
    (@presence default $value:literal) => { crate::section::Presence::Default($value) };
    (@presence computed $words:literal) => { crate::section::Presence::Computed($words) };
    (@read required, $table:ident, $key:literal, $shape:expr) => {
        $table.required($key, &$shape)
    };
    (@read default, $table:ident, $key:literal, $shape:expr, $value:literal) => {
        $table.or_default($key, &$shape, $value)
    };
    (@read computed, $table:ident, $key:literal, $shape:expr, $words:literal) => {
        $table.optional($key, &$shape)
    };
}
use section;

#[cfg(test)]
mod tests;
